"""Sessions and transcripts, to be read by address."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

from pydantic import Field

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import NotFound
from rookery.core.resource import Entry, resource
from rookery.core.tool import NoInput, ToolInput
from rookery.domains.sessions.shown import (
    event_shown,
    message_shown,
    names_of,
    open_asks,
    session_shown,
    sight_of,
)
from rookery.domains.sessions.tools import Reference
from rookery.identity.store import DEFAULT_TENANT
from rookery.sessions.conversation import Talk
from rookery.sessions.store import Row
from rookery.sessions.tables import QUEUED, TAKEN
from rookery.sessions.transcript_files import projects_folder
from rookery.sessions.transcripts import Transcripts
from rookery.sessions.writing import kept_last

JSON, LINES = "application/json", "application/x-ndjson"
LISTED = 50
LAST = 500
TALKED = 2000


class SessionAddress(ToolInput):
    id: Reference = Field(description="Id of the session.")


class TranscriptAddress(ToolInput):
    id: Reference = Field(description="Id of the transcript.")


def _recent(ctx: Context) -> Sequence[Row]:
    sight = sight_of(ctx)
    return sight.rows.page(LISTED, agent=sight.agent)


def _entries(ctx: Context) -> list[Entry]:
    return [
        Entry(f"session://{row.id}", name=row.id, title=f"{row.title or 'Session'} ({row.state})", mime_type=JSON)
        for row in _recent(ctx)
    ]


def _ids(ctx: Context, typed: str, others: Mapping[str, str]) -> list[str]:
    return [row.id for row in _recent(ctx) if row.id.startswith(typed)]


@resource(
    "session://{id}", title="Session", right="list_sessions", mime_type=JSON, entries=_entries, complete={"id": _ids},
)  # fmt: skip
def session(ctx: Context, args: SessionAddress) -> str:
    """A session: its state and settings, what waits in its queue, what its agent asks, and the conversation, as far
    back as 1 MB goes."""
    sight = sight_of(ctx)
    row = sight.of(args.id)
    events = kept_last(ctx.tx, row.tenant, row.id, TALKED)
    # Whoever follows goes on from the count that is told here, so what came after it is not told yet.
    talk = Talk(event for event in events if event.number <= row.event_count)
    shown = {
        **session_shown(row, names_of(ctx, [row])),
        "queue": [message_shown(each) for each in sight.rows.messages(row.id) if each.state in (QUEUED, TAKEN)],
        "asks": open_asks(ctx, row),
        "messages": talk.messages,
        "tasks": talk.tasks,
    }
    return json.dumps(shown, ensure_ascii=False)


@resource(
    "session://{id}/events", title="Events of a session", right="list_sessions", mime_type=LINES, complete={"id": _ids},
)  # fmt: skip
def session_events(ctx: Context, args: SessionAddress) -> str:
    """The last 500 events of a session, or as many as fit into 1 MB, oldest first: one JSON object a line."""
    row = sight_of(ctx).of(args.id)
    events = kept_last(ctx.tx, row.tenant, row.id, LAST)
    return "".join(f"{json.dumps(event_shown(event), ensure_ascii=False)}\n" for event in events)


@lru_cache(maxsize=4)
def transcripts_in(folder: Path) -> Transcripts:
    """The transcripts of a folder, with what is known of them already."""
    return Transcripts(folder)


def transcripts_for(actor: Actor) -> Transcripts:
    """The transcripts of this machine's user. They are nobody's business but the owner's, and no other tenant's."""
    if actor.kind != "human" or actor.role != "owner" or actor.tenant != DEFAULT_TENANT:
        raise NotFound("there are no transcripts", hint="they are the owner's")
    return transcripts_in(projects_folder(os.environ))


async def _transcript_entries(ctx: Context) -> list[Entry]:
    found = await asyncio.to_thread(transcripts_for(ctx.actor).page, LISTED)
    return [Entry(f"transcript://{each.id}", name=each.id, title=each.title, mime_type=JSON) for each in found]


@resource("transcripts://", title="Transcripts", right="start_session", mime_type=JSON)
async def transcripts(ctx: Context, args: NoInput) -> str:
    """The last 500 transcripts of Claude Code on this machine: title, folder, model, mode and times."""
    found = await asyncio.to_thread(transcripts_for(ctx.actor).page, LAST)
    return json.dumps({"transcripts": [asdict(each) for each in found]}, ensure_ascii=False)


@resource(
    "transcript://{id}", title="Transcript", right="start_session", mime_type=JSON, entries=_transcript_entries,
)  # fmt: skip
async def transcript(ctx: Context, args: TranscriptAddress) -> str:
    """A transcript of Claude Code: its messages with tool calls and results, as far back as 8 MB go, and its tasks."""
    part = await asyncio.to_thread(transcripts_for(ctx.actor).read_last, args.id)
    return json.dumps(asdict(part), ensure_ascii=False)
