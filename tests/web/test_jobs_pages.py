"""Jobs and workers on the console."""

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.identity.store import IdentityStore
from rookery.jobs.store import Jobs
from rookery.jobs.tables import jobs
from tests.web.crew import person
from tests.web.guest import Guest, words_of

LATER_MS = 3_600_000


def defer(owner: Guest, kind: str = "memory.sweep", tenant: str = "default", **values: object) -> int:
    """A job that waits, or one with these columns."""

    def work(tx: Tx) -> int:
        job_id = Jobs(tx, tenant).defer(kind, {"secret": "<script>alert(1)</script>"}, delay_ms=LATER_MS)
        if values:
            tx.run(sa.update(jobs).where(jobs.c.id == job_id).values(**values))
        return job_id

    return owner.fleet.platform.database.direct(work, write=True)


def state(owner: Guest, job_id: int) -> str:
    row = owner.fleet.platform.database.direct(lambda tx: tx.one(sa.select(jobs.c.state).where(jobs.c.id == job_id)))
    assert row is not None
    return row.state


def a_kind(owner: Guest, *, told: bool) -> str:
    """A kind of job that is told of its failures, or one that is not."""
    kinds = owner.fleet.platform.kinds
    return next(name for name, kind in sorted(kinds.items()) if (kind.on_ended is not None) == told)


async def test_whoever_is_not_signed_in_sees_no_jobs(guest: Guest) -> None:
    assert (await guest.get("/automation/jobs")).status_code == 303


async def test_a_viewer_sees_jobs_and_gives_none_up(owner: Guest) -> None:
    job_id = defer(owner, a_kind(owner, told=False))
    viewer = person(owner, "viewer")
    page = (await viewer.get("/automation/jobs")).text
    assert f"job-{job_id}" in page
    assert "/cancel" not in page
    assert (await viewer.post(f"/automation/jobs/{job_id}/cancel")).status_code == 403
    assert state(owner, job_id) == "waiting"


async def test_what_a_job_does_is_said_in_words(owner: Guest) -> None:
    job_id = defer(owner, "owner.expire_asks")
    page = (await owner.get("/automation/jobs?kind=owner.expire_asks")).text
    row = words_of(page.split(f'id="job-{job_id}">')[1].split("</tr>")[0])
    assert row.startswith(f"Owner: expire asks {job_id}")
    assert f"Give up job {job_id} (Owner: expire asks)?" in page
    assert '<option value="owner.expire_asks" selected>Owner: expire asks</option>' in page


async def test_jobs_of_another_tenant_are_not_there(owner: Guest) -> None:
    owner.fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    job_id = defer(owner, tenant="other")
    assert f"job-{job_id}" not in (await owner.get("/automation/jobs")).text
    assert (await owner.post(f"/automation/jobs/{job_id}/cancel")).status_code == 404


async def test_a_form_without_its_token_gives_nothing_up(owner: Guest) -> None:
    job_id = defer(owner, a_kind(owner, told=False))
    assert (await owner.client.post(f"/automation/jobs/{job_id}/cancel", data={})).status_code == 403
    assert state(owner, job_id) == "waiting"


async def test_a_job_that_waits_is_cancelled_and_one_that_failed_is_tried_again(owner: Guest) -> None:
    kind = a_kind(owner, told=False)
    waits, failed = defer(owner, kind), defer(owner, kind, state="failed", error="no <b>disk</b>", failures=3)
    page = (await owner.get("/automation/jobs")).text
    assert "no &lt;b&gt;disk&lt;/b&gt;" in page
    assert "&lt;script&gt;alert(1)" in page
    assert (await owner.post(f"/automation/jobs/{waits}/cancel")).status_code == 303
    assert (await owner.post(f"/automation/jobs/{failed}/retry")).status_code == 303
    assert (state(owner, waits), state(owner, failed)) == ("cancelled", "waiting")


async def test_what_had_consequences_is_not_offered_again(owner: Guest) -> None:
    job_id = defer(owner, a_kind(owner, told=True), state="failed", error="too late")
    assert "/retry" not in (await owner.get("/automation/jobs")).text
    assert (await owner.post(f"/automation/jobs/{job_id}/retry")).status_code == 409


async def test_filters_choose_states_and_kinds(owner: Guest) -> None:
    kind = a_kind(owner, told=False)
    waits, failed = defer(owner, kind), defer(owner, kind, state="failed")
    page = (await owner.part("/automation/jobs?state=failed", "jobs")).text
    assert f'id="job-{failed}"' in page
    assert f'id="job-{waits}"' not in page
    assert "No such jobs" in await owner.words("/automation/jobs?kind=nothing.such")
    assert (await owner.get("/automation/jobs?state=%3Cscript%3E")).status_code == 200


async def test_workers_are_shown_with_their_last_sign_of_life(owner: Guest) -> None:
    kind = a_kind(owner, told=False)
    defer(owner, kind, state="running", worker="heron-1", started_ms=1_000_000, lease_ms=1_700_000_020_000)
    defer(owner, kind, state="done", worker="heron-2", started_ms=1_000_000, ended_ms=1_600_000_000_000)
    page = (await owner.get("/automation/jobs")).text
    assert page.index("heron-1") < page.index("heron-2")
    assert 'datetime="2023-11-14T22:13:20+00:00"' in page
