"""One session: what happens in it as it happens, with the means to steer it; and the transcripts of Claude Code."""

import json
from typing import Any

from starlette.responses import Response

from rookery.core.ids import new_id
from rookery.domains.sessions.watching import LAST, MODES, watch_session
from rookery.web.routing import page
from rookery.web.session_stream import page_of, turns_before
from rookery.web.session_view import Transcript, drawn
from rookery.web.visit import Visit

SHOWN_TRANSCRIPTS = 200
SHOWN_MESSAGES = 400


@page("/sessions/{id}")
async def session(visit: Visit) -> Response:
    """The transcript, live."""
    watched = await visit.call(watch_session, {"session_id": visit.path["id"][:100]})
    found = watched["session"]
    values: dict[str, Any] = {"session": found, "queue": watched["queue"], "modes": MODES}
    values |= {"may_steer": await visit.may("send_session_message"), "message_id": new_id("msg")}
    if visit.wants_part == "standing":
        return await visit.render("session.html", **values)
    before = _before(visit)
    events = await turns_before(page_of(visit, found["id"], watched["people"]), before)
    seen = Transcript(events, over=before != LAST)
    flow = seen.flow if found["state"] in ("running", "waiting") else None
    return await visit.render(
        "session.html",
        **values,
        live=before == LAST,
        pieces=[drawn(piece, flowing=piece is flow) for piece in seen.pieces],
        tasks=seen.tasks,
        first=events[0]["number"] if events else 0,
        last=events[-1]["number"] if events else 0,
    )


@page("/sessions/{id}/older")
async def older_events(visit: Visit) -> Response:
    """What came before an event: a piece of the page, to be put above the rest."""
    watched = await visit.call(watch_session, {"session_id": visit.path["id"][:100]})
    events = await turns_before(page_of(visit, watched["session"]["id"], watched["people"]), _before(visit))
    return await visit.render(
        "session_older.html",
        alone=True,
        session=watched["session"],
        pieces=[drawn(piece) for piece in Transcript(events, over=True).pieces],
        first=events[0]["number"] if events else 0,
    )


def _before(visit: Visit) -> int:
    """The number of the event before which a page ends; the end of time if none is given."""
    before = visit.query.get("before", "")
    return max(int(before), 1) if before.isdecimal() and len(before) < 16 else LAST


@page("/transcripts")
async def transcripts(visit: Visit) -> Response:
    """What Claude Code has kept on this machine of its sessions, for its owner."""
    found: list[dict[str, Any]] = json.loads(await visit.read("transcripts://"))["transcripts"]
    words = visit.query.get("q", "").strip().lower()
    if words:
        found = [each for each in found if words in f"{each['title']} {each['cwd']}".lower()]
    return await visit.render("transcripts.html", transcripts=found[:SHOWN_TRANSCRIPTS], more=len(found))


@page("/transcripts/{id}")
async def transcript(visit: Visit) -> Response:
    """One of them."""
    found: dict[str, Any] = json.loads(await visit.read(f"transcript://{visit.path['id'][:100]}"))
    messages: list[dict[str, Any]] = found["messages"]
    left = max(len(messages) - SHOWN_MESSAGES, 0)
    return await visit.render("transcript.html", transcript=found, messages=messages[left:], left_out=left)
