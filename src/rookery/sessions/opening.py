"""What is checked before a session is opened: whose it is, where it works, and that it reaches no further than that."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rookery.core.actor import Actor, Mode
from rookery.core.errors import ConfigurationError, InvalidParams, NotFound, PermissionDenied
from rookery.db.tx import Tx
from rookery.identity.binding import Binding, stricter
from rookery.identity.resolve import Resolver
from rookery.sessions.folders import inside, places_of, real_folder
from rookery.sessions.store import NewSession, Row, SessionRows

NO_RUNTIME = "this server starts no agents: its setting runtime names none"
SET_RUNTIME = "set runtime, such as ROOKERY_RUNTIME=claude"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What is wanted. Whatever is left out is what the agent, its project and the server have."""

    agent: str | None = None
    project: str | None = None
    issue: str | None = None
    profile: str | None = None
    cwd: str | None = None
    mode: Mode | None = None
    model: str | None = None
    runtime: str | None = None
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """What this server can start, and where."""

    runtimes: Collection[str]
    default: str | None
    roots: Sequence[str] = ()


def open_session(tx: Tx, resolver: Resolver, ways: Ways, opener: Actor, opening: Opening) -> Row:
    """Keep a session as it is wanted, once everything about it is in order. Only people open sessions."""
    if opener.kind != "human":
        raise PermissionDenied("only people open sessions", hint="send_message lets another agent work", layer="role")
    runtime = _runtime(ways, opening.runtime)
    binding = Binding(
        tenant=opener.tenant,
        agent=opening.agent,
        profile=opening.profile,
        project=opening.project or (opener.project if opening.issue is None else None),
        issue=opening.issue,
        scopes=opener.scopes,
        mode=opener.mode,
    )
    actor = resolver.resolve(tx, binding).actor
    if actor.project in opener.closed:
        raise NotFound(f"there is no project {opening.project or actor.project}", hint="list_projects names them")
    cwd = _folder(tx, actor, opening.cwd, ways.roots)
    new = NewSession(
        actor=actor,
        runtime=runtime,
        mode=stricter(opening.mode or actor.mode, actor.mode),
        opened_by=opener.subject,
        title=opening.title,
        model=opening.model,
        cwd=cwd,
    )
    return SessionRows(tx, opener.tenant).create(new)


def _runtime(ways: Ways, wanted: str | None) -> str:
    name = wanted or ways.default
    if name is None:
        raise ConfigurationError(NO_RUNTIME, hint=SET_RUNTIME)
    if name not in ways.runtimes:
        known = ", ".join(sorted(ways.runtimes)) or "none"
        raise InvalidParams(f"this server has no runtime {name[:50]}", hint=f"it has: {known}")
    return name


def _folder(tx: Tx, actor: Actor, wanted: str | None, roots: Sequence[str]) -> str | None:
    """The wanted folder if it is inside what is allowed, else where the agent's work is; None: one of its own."""
    places = places_of(tx, actor)[:1]
    if wanted is None:
        return real_folder(places[0]) if places else None
    return inside(wanted, (*roots, *places))
