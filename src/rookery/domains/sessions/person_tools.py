"""Tools with which people open sessions and steer them. They change rows and wake whoever runs the agent, no more."""

import re
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from rookery.core.actor import Mode
from rookery.core.context import Context
from rookery.core.decide import scope_granted
from rookery.core.errors import PermissionDenied
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.sessions.shown import names_of, session_shown, sight_of
from rookery.domains.sessions.tools import Folder, Reference, SessionRecord
from rookery.identity.binding import stricter
from rookery.sessions.opening import Opening, open_session
from rookery.sessions.store import MAX_TITLE, Row

_MODEL = re.compile(r"[A-Za-z0-9][\w.:/@+\[\]-]{0,199}")


def _model(name: str) -> str:
    # It becomes an argument of programs, which would take a dash at its beginning for an option.
    if not _MODEL.fullmatch(name):
        raise ValueError("is no name of a model")
    return name


Model = Annotated[str, AfterValidator(_model)]
Title = Annotated[str, Field(max_length=MAX_TITLE)]
PEOPLE: dict[str, Any] = {
    "effect": "write", "action": "sessions:write", "tier": "act", "group": "System", "profiles": "", "default": False,
    "principals": "operators",
}  # fmt: skip
THERE: dict[str, Any] = {"interactive": True}
"""For what lets an agent do something: only a person who is there may want that, no schedule of theirs."""


class StartSession(ToolInput):
    message: str | None = Field(None, description="First message")
    agent: Reference | None = Field(None, description="Whose; default agent")
    project: Reference | None = Field(None, description="Where")
    issue: Reference | None = Field(None, description="Bound to it")
    profile: Reference | None = Field(None, description="Agent type")
    cwd: Folder | None = Field(None, description="Folder; the project's")
    mode: Mode | None = Field(None, description="Never wider than the agent's")
    model: Model | None = Field(None, description="Model")
    runtime: Reference | None = Field(None, description="What runs it")
    title: Title | None = Field(None, description="Title")


class SessionReference(ToolInput):
    session_id: Reference = Field(description="Id")


class SendSessionMessage(SessionReference):
    text: str = Field(description="Up to 1 MB")
    message_id: Reference | None = Field(None, description="Yours; sent once")


class ChangeSession(SessionReference):
    mode: Mode | None = Field(None, description="At once")
    model: Model | None = Field(None, description="From the next turn")
    title: Title | None = Field(None, description="New")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.mode is None and self.model is None and self.title is None:
            raise ValueError("give a mode, a model or a title")
        return self


class QueuedMessage(ToolOutput):
    session_id: str
    message_id: str
    state: str
    queue_position: int
    """How many are before it: 0 if it is its turn."""


class StartedSession(ToolOutput):
    session: SessionRecord
    message: QueuedMessage | None


@tool(title="Start session", **PEOPLE, **THERE)
def start_session(ctx: Context, args: StartSession) -> StartedSession:
    """Open a session of an agent, in a folder where agents may work."""
    wanted = args.model_dump(exclude={"message", "title", "mode"}, exclude_none=True)
    mode = None if args.mode is None else stricter(args.mode, ctx.actor.mode)
    opening = Opening(**wanted, mode=mode, title=args.title or _first_line(args.message))
    facts = ctx.platform.facts
    row = open_session(ctx.tx, facts["resolver"], facts["sessions"].ways, ctx.actor, opening)
    message = None if args.message is None else _queue(ctx, row.id, args.message)
    ctx.publish("SessionStarted", subject=row.id, agent=row.agent)
    return StartedSession(session=_shown(ctx, row), message=message)


@tool(title="Send session message", **PEOPLE, **THERE)
def send_session_message(ctx: Context, args: SendSessionMessage) -> QueuedMessage:
    """Queue a message; one turn at a time."""
    return _queue(ctx, _within_scopes(ctx, args.session_id).id, args.text, args.message_id)


@tool(title="Change session", **PEOPLE, **THERE)
def change_session(ctx: Context, args: ChangeSession) -> SessionRecord:
    """Change a session, also while it runs."""
    mode = None if args.mode is None else stricter(args.mode, ctx.actor.mode)
    row = _within_scopes(ctx, args.session_id)
    return _shown(ctx, sight_of(ctx).rows.change(row.id, mode=mode, model=args.model, title=args.title))


@tool(title="Interrupt session", **PEOPLE)
def interrupt_session(ctx: Context, args: SessionReference) -> SessionRecord:
    """End the turn that runs; what is queued comes next."""
    sight = sight_of(ctx)
    return _shown(ctx, sight.rows.interrupt(sight.of(args.session_id).id))


@tool(title="End session", **PEOPLE)
def end_session(ctx: Context, args: SessionReference) -> SessionRecord:
    """End a session for good and drop what is queued."""
    sight = sight_of(ctx)
    row = sight.rows.end(sight.of(args.session_id).id)
    ctx.publish("SessionEnded", subject=row.id, agent=row.agent)
    return _shown(ctx, row)


def _queue(ctx: Context, session_id: str, text: str, message_id: str | None = None) -> QueuedMessage:
    queued = sight_of(ctx).rows.queue(session_id, text, ctx.actor.subject, message_id)
    message = queued.message
    return QueuedMessage(
        session_id=session_id, message_id=message.id, state=message.state, queue_position=queued.position
    )


def _within_scopes(ctx: Context, session_id: str) -> Row:
    """The session, if its agent can do nothing that the caller's token may not."""
    row, scopes = sight_of(ctx).of(session_id), ctx.actor.scopes
    held: list[str] | None = row.binding["held"].get("scopes")
    if scopes is not None and (held is None or not all(scope_granted(scopes, scope) for scope in held)):
        raise PermissionDenied(
            "the session reaches further than your token",
            hint="start one with this token, or use a token with all its scopes",
            layer="scopes",
        )
    return row


def _shown(ctx: Context, row: Row) -> SessionRecord:
    return SessionRecord(**session_shown(row, names_of(ctx, [row])))


def _first_line(message: str | None) -> str:
    """What a session is called that was given no title."""
    return " ".join((message or "").split())[:80]
