"""Who acts. An actor is made by a door and the identity store, never from a tool's arguments."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["human", "agent", "external"]
Role = Literal["owner", "operator", "viewer"]
Source = Literal["web", "cli", "stdio", "http", "agent", "algochat", "telegram", "discord", "slack"]
Mode = Literal["ask", "act", "autonomy"]

NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Auth:
    """What the door knows of the credential. The credential itself is never kept."""

    subject: str
    client: str
    scopes: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Everything `decide` may look at. None means "inherit", an empty set means "none"."""

    kind: Kind
    tenant: str
    subject: str
    role: Role | None = None
    agent: str | None = None
    agent_name: str | None = None
    profile: str | None = None
    project: str | None = None
    issue: str | None = None
    """The id of the bound issue, however it was named when the session began."""
    issue_identifier: str | None = None
    issue_named: bool = False
    """Whether the session was bound to its issue when it began, not by a claim since then."""
    session: str | None = None
    shared_session: bool = False
    """Whether several clients act in this session, as those of one token without sessions of their own do."""
    run: str | None = None
    phase: str | None = None
    depth: int = 1
    source: Source = "stdio"
    scheduler: bool = False
    unattended: bool = False
    mode: Mode = "autonomy"
    trust: int | None = None

    services: frozenset[str] = NOTHING
    """What this installation offers beyond the core: names that conditional tools wait for."""
    hide_unavailable: bool = False
    scopes: frozenset[str] | None = None
    """Scopes of the token, or None at a door that has no tokens."""

    permissions: frozenset[str] | None = None
    """The agent's own list, set by the owner. None: the default set. Empty: no tools."""
    bundle_tools: frozenset[str] = NOTHING
    project_bundle_tools: frozenset[str] = NOTHING
    grants: frozenset[str] = NOTHING
    unasked: frozenset[str] = NOTHING
    """Tools for which the owner has agreed in advance: their calls need no approval."""
    allowed: frozenset[str] | None = None
    disallowed: frozenset[str] = NOTHING
    scope_file: frozenset[str] | None = None
    within: frozenset[str] | None = None
    """The tools of whoever started the session, if that was another whose session was narrowed. Part of `allowed`."""
    restrict_networking: bool = False
    exhausted: frozenset[str] = NOTHING
    """Budgets that are used up."""
    paused: str = ""
    """Why the agent may only look on for now; empty if it may do what it may. A person is never paused."""

    prompt_additions: str = ""
    closed: frozenset[str] = NOTHING
    """The ids of the tenant's projects in which the actor has no role. For it they do not exist."""
    worktree: str | None = None
    cwd: str | None = None
    """Where the client's process was started, if it is one of this machine."""
    project_slug: str | None = None
    symphony_dir: str | None = None
    auth: Auth = field(default=Auth(subject="local", client="local"))
