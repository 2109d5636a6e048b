"""Jobs and workers: what waits to be done, what is being done, how it ended, and who does it."""

from starlette.responses import Response

from rookery.jobs.people import cancel_job, list_jobs, retry_job
from rookery.jobs.tables import STATES
from rookery.web.routing import action, page
from rookery.web.visit import Visit

LISTED = 100


@page("/automation/jobs")
async def jobs(visit: Visit) -> Response:
    """The newest jobs of a state and a kind, and the workers that were seen last."""
    state, kind = visit.query.get("state", ""), visit.query.get("kind", "")[:100]
    wanted = [state] if state in STATES else []
    found = await visit.call(list_jobs, {"states": wanted, "kind": kind or None, "limit": LISTED})
    return await visit.render(
        "jobs.html", **found, state=wanted[0] if wanted else "", kind=kind, may_change=await visit.may(cancel_job)
    )


@action("/automation/jobs/{id:int}/cancel")
async def cancel(visit: Visit) -> Response:
    """Give a job up."""
    found = (await visit.call(cancel_job, {"job_id": int(visit.path["id"])}))["job"]
    words = "It is told to stop." if found["state"] == "running" else "Cancelled."
    return await visit.done(words, to=visit.url("/automation/jobs"), refresh="jobs")


@action("/automation/jobs/{id:int}/retry")
async def retry(visit: Visit) -> Response:
    """Let a job that failed be tried again."""
    await visit.call(retry_job, {"job_id": int(visit.path["id"])})
    return await visit.done("It waits for a worker again.", to=visit.url("/automation/jobs"), refresh="jobs")
