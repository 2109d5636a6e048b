from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.core.pages import encode_cursor
from rookery.lifecycle.run_store import NewRun, Usage
from tests.domains.runs.conftest import Ward


async def listed(ward: Ward, actor: Actor | None = None, **wanted: Any) -> list[str]:
    answer = await ward.fleet.call(actor or ward.fleet.owner, "list_runs", **wanted)
    return [run.id for run in answer.runs]


@pytest.mark.parametrize("profile", [None, "worker", "judge", "researcher"])
async def test_agents_do_not_list_runs(ward: Ward, profile: str | None) -> None:
    ward.start()
    actor = ward.fleet.actor(profile=profile)
    assert "list_runs" not in ward.fleet.names(actor)
    with pytest.raises(PermissionDenied) as caught:
        await listed(ward, actor)
    assert caught.value.layer == "principal"


async def test_another_tenant_sees_no_runs_and_not_the_issue(ward: Ward, stranger: Actor) -> None:
    ward.start()
    assert await listed(ward, stranger) == []
    with pytest.raises(NotFound, match="there is no issue SYM-001"):
        await listed(ward, stranger, issue_id="SYM-001")


async def test_an_unknown_issue_is_not_found(ward: Ward) -> None:
    ward.start()
    with pytest.raises(NotFound, match="there is no issue SYM-2"):
        await listed(ward, issue_id="SYM-2")


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"status": "done"}, "status"),
        ({"limit": 0}, "limit"),
        ({"limit": 501}, "limit"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": encode_cursor("17")}, "cursor"),
        ({"cursor": encode_cursor("x run-1")}, "cursor"),
        ({"cursor": encode_cursor("9999999999999999999 run-1")}, "cursor"),
        ({"cursor": encode_cursor("1 iss-1")}, "cursor"),
        ({"cursor": encode_cursor("1 run-\0")}, "cursor"),
        ({"cursor": encode_cursor("1 run-\ud800")}, "cursor"),
    ],
)
async def test_a_question_that_makes_no_sense_is_told_so(ward: Ward, wanted: dict[str, Any], told: str) -> None:
    ward.start()
    with pytest.raises(InvalidParams, match=told):
        await listed(ward, **wanted)


async def test_a_person_reads_what_became_of_a_run_and_what_it_cost(ward: Ward) -> None:
    run = ward.start(profile="worker", phase="ready", agent="agt-1", session="ses-1", attempt=2)
    ward.rows.change(lambda runs: runs.spend(run, Usage(cost_micros=125_000, input_tokens=900, output_tokens=80)))
    ward.rows.change(lambda runs: runs.move(run, "failed", error="out of memory"))
    answer = await ward.fleet.call(ward.fleet.owner, "list_runs")
    [found] = answer.runs
    assert answer.next_cursor is None
    assert (found.id, found.project_id, found.issue_id) == (run, ward.project, ward.issue)
    assert (found.agent, found.profile, found.phase, found.session) == ("agt-1", "worker", "ready", "ses-1")
    assert (found.status, found.error, found.attempt, found.event_count) == ("failed", "out of memory", 2, 0)
    assert (found.cost_micros, found.input_tokens, found.output_tokens) == (125_000, 900, 80)
    assert found.created_ms <= found.started_ms < found.ended_ms == found.updated_ms


async def test_runs_are_narrowed_by_issue_and_state_newest_first(ward: Ward) -> None:
    first, second = ward.start(), ward.start()
    elsewhere = ward.rows.start("prj-elsewhere", issue_id=ward.rows.issue("OPS-001", "prj-elsewhere"))
    waiting = ward.rows.change(lambda runs: runs.queue(NewRun(project_id=ward.project))).id
    ward.rows.change(lambda runs: runs.move(first, "succeeded"))
    assert await listed(ward) == [waiting, elsewhere, second, first]
    for name in ("SYM-001", "sym-1", ward.issue):
        assert await listed(ward, issue_id=name) == [second, first]
    assert await listed(ward, status="running") == [elsewhere, second]
    assert await listed(ward, status="queued") == [waiting]
    assert await listed(ward, issue_id="SYM-1", status="succeeded") == [first]
    assert await listed(ward, issue_id="SYM-1", status="queued") == []


async def test_pages_go_on_where_the_last_one_ended_whatever_comes_meanwhile(ward: Ward) -> None:
    made = [ward.start() for _ in range(5)]
    found, cursor = list[str](), None
    for size in (2, 2, 1):
        answer = await ward.fleet.call(ward.fleet.owner, "list_runs", limit=2, cursor=cursor, issue_id="SYM-1")
        assert len(answer.runs) == size
        found += [run.id for run in answer.runs]
        cursor = answer.next_cursor
        ward.start()
    assert (found, cursor) == (made[::-1], None)
