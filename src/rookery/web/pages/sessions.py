"""Sessions: which there are, and a form that starts one."""

from typing import Any

from starlette.responses import Response

from rookery.core.errors import ValidationFailed
from rookery.domains.runs.run_search import search_runs
from rookery.domains.sessions.watching import show_session_choices
from rookery.web.routing import Nav, action, page
from rookery.web.session_view import ORIGINS
from rookery.web.visit import Visit

STATES = ("running", "waiting", "idle", "ended")
PAGE = 50
MOST_RUNNING = 200
FIELDS = ("agent", "project", "issue", "profile", "cwd", "mode", "model", "runtime", "title", "message")


@page("/sessions", nav=Nav("Sessions", "", 50, "sessions"))
async def sessions(visit: Visit) -> Response:
    """The sessions, those active last first."""
    wanted: dict[str, Any] = {"limit": PAGE}
    if visit.query.get("state") in STATES:
        wanted["state"] = visit.query["state"]
    for name, given in (("agent_id", "agent"), ("cursor", "cursor")):
        if visit.query.get(given):
            wanted[name] = visit.query[given][:400]
    found = await visit.call("list_sessions", wanted)
    stats = await visit.call("get_session_stats")
    choices = await visit.call(show_session_choices)
    return await visit.render(
        "sessions.html",
        tab="sessions",
        sessions=found["sessions"],
        next_cursor=found["next_cursor"],
        stats=stats,
        choices=choices,
        states=STATES,
        origins=ORIGINS,
        may_start=await visit.may("start_session"),
        owner=await _reads_transcripts(visit),
        lines=await _status_lines(visit) if stats["states"]["running"] else {},
    )


@page("/sessions/new")
async def new_session(visit: Visit) -> Response:
    """The form, with what this server has."""
    choices = await visit.call(show_session_choices)
    ready = [each for each in choices["runtimes"] if each["missing"] is None]
    lacking = [each for each in choices["runtimes"] if each["missing"] is not None]
    return await visit.render(
        "session_new.html",
        choices=choices,
        ready=ready,
        lacking=lacking,
        may_start=await visit.may("start_session"),
    )


@action("/sessions")
async def start_session(visit: Visit) -> Response:
    """Start what was chosen; whatever was left empty is what the agent, its project and the server have."""
    wanted = {name: visit.word(name) for name in FIELDS if visit.word(name)}
    if wanted.get("issue"):
        # The project of an issue is its own.
        wanted.pop("project", None)
    elif "project" not in wanted and visit.project:
        wanted["project"] = visit.project
    started = await visit.call("start_session", wanted)
    return await visit.done("The session is open.", visit.url(f"/sessions/{started['session']['id']}"))


@action("/sessions/{id}/messages")
async def send_message(visit: Visit) -> Response:
    """Queue a message. A form that is sent twice sends it once."""
    text = visit.word("text")
    if not text:
        raise ValidationFailed("there is nothing to send", hint="write a message first")
    given = {"session_id": visit.path["id"], "text": text}
    if visit.word("message_id"):
        given["message_id"] = visit.word("message_id")[:100]
    sent = await visit.call("send_session_message", given)
    before = sent["queue_position"]
    notice = f"Queued, {before} before it." if before else "Sent."
    return await visit.done(notice, _back(visit), refresh="session sent")


@action("/sessions/{id}/change")
async def change_session(visit: Visit) -> Response:
    """Change the title, the mode or the model."""
    given = {name: visit.word(name) for name in ("title", "mode", "model") if visit.word(name)}
    await visit.call("change_session", {"session_id": visit.path["id"], **given})
    return await visit.done("Changed.", _back(visit), refresh="session")


@action("/sessions/{id}/interrupt")
async def interrupt_session(visit: Visit) -> Response:
    """End the turn that runs."""
    await visit.call("interrupt_session", {"session_id": visit.path["id"]})
    return await visit.done("The turn ends now; what is queued comes next.", _back(visit), refresh="session")


@action("/sessions/{id}/end")
async def end_session(visit: Visit) -> Response:
    """End the session for good."""
    await visit.call("end_session", {"session_id": visit.path["id"]})
    return await visit.done("The session has ended.", _back(visit), refresh="session")


async def _status_lines(visit: Visit) -> dict[str, str]:
    """What a tool at work said last in each run that goes on."""
    found = await visit.call(search_runs, {"status": "running", "limit": MOST_RUNNING})
    return {each["id"]: each["line"] for each in found["runs"] if each["line"]}


def _back(visit: Visit) -> str:
    return visit.url(f"/sessions/{visit.path['id']}")


async def _reads_transcripts(visit: Visit) -> bool:
    """Whether the tab of transcripts is offered: they are the owner's alone."""
    return (await visit.actor()).role == "owner"
