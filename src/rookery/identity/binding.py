"""What a door was told when a session began, and the project and issue that this leads to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rookery.core.actor import Actor, Mode, Source
from rookery.core.admission import storable
from rookery.core.errors import NotFound
from rookery.db.tx import Tx
from rookery.identity.store import DEFAULT_PROJECT, DEFAULT_TENANT, IdentityStore

ISSUE_HINT = "give the id or identifier of an issue of the session's project"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenIdentity:
    """What a token of another issuer says, once its signature and its claims were checked."""

    tenant: str
    client: str
    subject: str | None
    scopes: frozenset[str]
    expires_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a door was told when the session began. Fixed for the session's life."""

    tenant: str = DEFAULT_TENANT
    agent: str | None = None
    profile: str | None = None
    project: str | None = None
    issue: str | None = None
    session: str | None = None
    shared: bool = False
    source: Source = "stdio"
    depth: int = 1
    scheduler: bool = False
    as_owner: bool = False
    person: str | None = None
    """The id of the person who is signed in to the console."""
    scope_file: frozenset[str] | None = None
    token: str | None = field(default=None, repr=False)
    identity: TokenIdentity | None = None
    worktree: str | None = None
    cwd: str | None = None
    project_slug: str | None = None
    symphony_dir: str | None = None
    scopes: frozenset[str] | None = None
    """For sessions without a token: the scopes of the token of whoever started them."""
    mode: Mode | None = None
    """The mode of whoever started the session. The stricter of it and the agent's own counts."""
    within: frozenset[str] | None = None
    """Tools beyond which the session has none, whatever its agent has."""


_PLAIN = ("profile", "source", "depth", "scheduler", "mode")
_SETS = ("scope_file", "scopes", "within")
_MODES: tuple[Mode, ...] = ("ask", "act", "autonomy")


def inherited(actor: Actor) -> dict[str, Any]:
    """What sessions that `actor` starts, now or later, are held to: they reach no further than it does. As JSON."""
    sets: dict[str, frozenset[str] | None] = {name: getattr(actor, name) for name in _SETS}
    return {
        **{name: getattr(actor, name) for name in _PLAIN},
        **{name: None if names is None else sorted(names) for name, names in sets.items()},
        # It binds nobody: what is done for an issue is counted there.
        "issue": actor.issue,
    }


def bound_by(held: Mapping[str, Any]) -> dict[str, Any]:
    """The same as parts of a binding."""
    sets = {name: held.get(name) for name in _SETS}
    return {
        **{name: held[name] for name in _PLAIN if name in held},
        **{name: None if names is None else frozenset(names) for name, names in sets.items()},
    }


def handed_on(actor: Actor, reach: Callable[[], frozenset[str]]) -> dict[str, Any]:
    """What a session of another agent is held to that `actor` starts. As JSON.

    A profile and a scope file narrow an agent, but they also give it tools. Another agent gets none by them: it keeps
    its own, as far as they are among `reach`, those of the actor.
    """
    narrowed = actor.profile is not None or actor.scope_file is not None or actor.within is not None
    within = sorted(reach()) if narrowed else None
    return inherited(actor) | {"profile": None, "scope_file": None, "within": within}


def stricter(mode: Mode, other: Mode | None) -> Mode:
    """Of two modes the one that asks a person more often."""
    return other if other is not None and _MODES.index(other) < _MODES.index(mode) else mode


def binding_again(actor: Actor) -> Binding:
    """The binding of an agent's session that the platform started, with which its rights can be looked up anew.

    What the session is held to stays. Its issue is the one that it was bound to, else the one it has claimed by then.
    """
    return Binding(
        tenant=actor.tenant,
        agent=actor.agent,
        project=actor.project,
        issue=actor.issue if actor.issue_named else None,
        session=actor.session,
        shared=actor.shared_session,
        worktree=actor.worktree,
        cwd=actor.cwd,
        project_slug=actor.project_slug,
        symphony_dir=actor.symphony_dir,
        **bound_by(inherited(actor)),
    )


@dataclass(frozen=True, slots=True)
class BoundIssue:
    """An issue that a session can be bound to. `until_ms` is the end of the lease that binds it, if one does."""

    id: str
    identifier: str
    project: str
    until_ms: int | None = None


class BoundIssues(Protocol):
    """What identities have to know of issues. The tracker offers it; an installation without one has no issues."""

    def find(self, tx: Tx, tenant: str, text: str) -> BoundIssue | None:
        """The issue of that id or identifier, in whatever project of the tenant."""
        ...

    def claimed(self, tx: Tx, tenant: str, subject: str, session: str | None) -> BoundIssue | None:
        """The issue on which this session of `subject` holds a lease that has not run out."""
        ...


class Notes(Protocol):
    """What a profile keeps for its later sessions. The memory offers it; without one a profile keeps nothing."""

    def of(self, tx: Tx, tenant: str, profile: str, project_slug: str | None) -> str:
        """Its notes for a session in that project, ready to be shown; empty if there are none."""
        ...


class Budgets(Protocol):
    """What agents may spend. The ledger offers it; without one no budget is ever used up."""

    def exhausted(self, tx: Tx, tenant: str, agent: str) -> frozenset[str]:
        """The budgets that the agent of this id has used up."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session acts, and until when that is known."""

    project: str
    project_slug: str
    issue: str | None = None
    issue_identifier: str | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who is looking for a place, and the projects that are closed to it."""

    subject: str
    closed: frozenset[str]


def find_place(store: IdentityStore, binding: Binding, visitor: Visitor, issues: BoundIssues | None) -> Place:
    """The bound project and issue. What is closed to the visitor is not found, as if it had never been.

    An issue that was named brings its project along, unless the project was named too: then the issue must be in it.
    Without a name, the issue is the one in the bound project that the session has claimed, for as long as the claim
    lasts.
    """
    named = binding.project or binding.project_slug
    if binding.issue is None or issues is None:
        project = store.project(named or DEFAULT_PROJECT, visitor.closed)
        if issues is None:
            return Place(project.id, project.slug, binding.issue, binding.issue)
        held = issues.claimed(store.tx, store.tenant, visitor.subject, binding.session)
        if held is None or held.project != project.id:
            return Place(project.id, project.slug)
        return Place(project.id, project.slug, held.id, held.identifier, held.until_ms)
    project = store.project(named, visitor.closed) if named is not None else None
    found = issues.find(store.tx, store.tenant, binding.issue) if storable(binding.issue) else None
    if found is None or found.project in visitor.closed or (project is not None and project.id != found.project):
        raise NotFound(f"there is no issue {binding.issue}", hint=ISSUE_HINT)
    project = project or store.project(found.project)
    return Place(project.id, project.slug, found.id, found.identifier)
