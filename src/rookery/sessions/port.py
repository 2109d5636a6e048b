"""How an agent is run: the port behind which every runtime stands, and what a runtime asks of its host."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from rookery.core.actor import Actor, Mode
from rookery.sessions.events import SessionEvent

OURS = "rookery"
"""What our own MCP server is called in every session: its tools are `mcp__rookery__…`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a runtime has to know to start an agent."""

    session: str
    """Our id of the session. What is started for it carries the mark of it: see `lifecycle.session_mark`."""
    actor: Actor
    """Who the agent is. Whoever calls tools for it looks its rights up again for each call."""
    mode: Mode
    cwd: str | None = None
    model: str | None = None
    max_turns: int | None = None
    budget_usd: float | None = None
    instructions: str = ""
    """What the agent is told beyond its first message: who it is and what its bundles add."""
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Further MCP servers, by name, each configured as in the `mcpServers` of a client."""
    allowed: Sequence[str] = ()
    """Tools of those servers for which nobody has to be asked where the mode allows something by itself."""
    pass_key: str | None = field(default=None, repr=False)
    """With it a program that runs for this session binds itself to it, as `rookery stdio --attach` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool that an agent is about to use, by whatever name its runtime has for it."""

    tool: str
    input: Mapping[str, Any]
    call_id: str
    title: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Permission:
    """Whether it may. `always`: the runtime need not ask for this tool again in this session."""

    allow: bool
    reason: str = ""
    always: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of an agent to its person."""

    question: str
    header: str = ""
    options: Sequence[Choice] = ()
    several: bool = False


class Host(Protocol):
    """Whom a runtime asks while its agent waits. Both may take hours, and both end when the turn does."""

    async def may_use(self, use: ToolUse) -> Permission:
        """A person's decision, or that of the session's mode."""
        ...

    async def answers(self, call_id: str, questions: Sequence[Asked]) -> Sequence[str] | None:
        """An answer to each question, in order; None if nobody will answer."""
        ...


class Agent(Protocol):
    """An agent that lives. It does one turn at a time."""

    @property
    def native_id(self) -> str | None:
        """What the runtime calls the session; with it a later start resumes it. None while it is not known."""
        ...

    @property
    def alive(self) -> bool:
        """Whether it can take another message."""
        ...

    async def send(self, text: str) -> None:
        """Begin a turn."""
        ...

    def events(self) -> AsyncIterator[SessionEvent]:
        """What happens in the turn that was begun; the last is its `done`, exactly one, whatever goes wrong."""
        ...

    async def set_mode(self, mode: Mode) -> None:
        """Let it act in another mode from now on, also in the middle of a turn."""
        ...

    async def interrupt(self) -> None:
        """End the turn soon. Its `done` follows, with the reason interrupted; the agent lives on if it can."""
        ...

    async def stop(self) -> None:
        """End it now, with every process that it started."""
        ...


class AgentRuntime(Protocol):
    """Starts agents of one kind."""

    @property
    def name(self) -> str: ...

    @property
    def missing(self) -> str | None:
        """What has to be installed or set before it can start one; None if nothing."""
        ...

    async def start(self, launch: Launch, host: Host) -> Agent: ...

    async def resume(self, launch: Launch, host: Host, native_id: str) -> Agent:
        """Go on with a session that ran before, with the same tools. NotFound if the runtime has lost it."""
        ...


Reason = Literal["completed", "failed", "interrupted", "stopped", "timed_out", "stalled"]
