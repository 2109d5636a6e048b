"""A place where messages are sent: a fleet of three agents that obey a script, and a worker when one is wanted."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.domains.messages.store import WINDOW_MS
from rookery.domains.messages.tables import breakers, messages
from rookery.identity.store import IdentityStore
from rookery.lifecycle.sessions import Outcome, Runtime
from tests.jobs.working import running_worker
from tests.platform_fixtures import Fleet
from tests.sessions.stage import use_sessions

LIMIT_S = 60.0
NAMES = ("ada", "bob", "carol")


async def until(reached: Callable[[], Any], what: str) -> Any:
    """The first true answer; whoever waits too long fails."""
    deadline = time.monotonic() + LIMIT_S
    while not (found := reached()):
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.01)
    return found


class Noted:
    """A runtime that plays scripts and notes what it was asked for."""

    def __init__(self, scripted: Runtime) -> None:
        self._scripted = scripted
        self.asked: list[tuple[Actor, str, str]] = []

    async def start_session(self, actor: Actor, prompt: str, *, key: str, **how: Any) -> Any:
        self.asked.append((actor, prompt, key))
        return await self._scripted.start_session(actor, prompt, key=key, **how)


class Silent:
    """A session that ends as it is told, once the gate is open."""

    id = "ses-silent"

    def __init__(self, runtime: "Gated") -> None:
        self._runtime = runtime

    async def wait(self) -> Outcome:
        await self._runtime.gate.wait()
        return self._runtime.outcome

    async def stop(self) -> None:
        return None


class Gated:
    """A runtime whose sessions answer when a test lets them."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.started = asyncio.Event()
        self.gate = asyncio.Event()

    async def start_session(self, actor: Actor, prompt: str, *, key: str, **how: Any) -> Silent:
        self.started.set()
        return Silent(self)


class PostOffice:
    """Speaks to the platform as agents do. `runtime` has what sessions were started with."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.platform = fleet.platform
        self.runtime = Noted(use_sessions(fleet.platform))
        self.use(cast(Runtime, self.runtime))

    async def open(self) -> None:
        for name in NAMES:
            await self.fleet.call(self.fleet.owner, "create_agent", name=name)

    def use(self, runtime: Runtime | None) -> None:
        """Start sessions by this runtime from now on; None: nobody does."""
        cast("dict[str, Any]", self.platform.calls.facts)["runtime"] = runtime

    def agent(self, name: str = "ada", **binding: Any) -> Actor:
        return self.fleet.actor(agent=name, **binding)

    def id_of(self, name: str) -> str:
        return self.agent(name).subject

    @property
    def stranger(self) -> Actor:
        """An agent of another tenant on the same database."""
        self.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other")

    async def post(self, to: str, text: str, sender: Actor | None = None, **more: Any) -> Any:
        """Send, while whoever works is somewhere else."""
        return await self.fleet.call(sender or self.agent(), "send_message", to_agent=to, message=text, **more)

    async def send(self, to: str, text: str, sender: Actor | None = None, **more: Any) -> Any:
        """Send, and have it delivered."""
        async with running_worker(self.platform):
            return await self.post(to, text, sender, **more)

    async def inbox(self, name: str, **arguments: Any) -> list[dict[str, Any]]:
        return (await self.fleet.call(self.agent(name), "read_inbox", **arguments)).messages

    @property
    def rows(self) -> Sequence[Any]:
        """Every message, the oldest first."""
        return self.select(sa.select(messages).order_by(messages.c.created_ms, messages.c.id))

    def select(self, statement: sa.Executable) -> Sequence[Any]:
        return self.platform.database.direct(lambda tx: tx.all(statement))

    def change(self, statement: sa.Executable) -> None:
        """Change the database behind everybody's back."""
        self.platform.database.direct(lambda tx: tx.run(statement), write=True)

    def pass_time(self, by_ms: int = WINDOW_MS) -> None:
        """Let everything that was sent, and every breaker that opened, be so much older."""
        self.change(
            sa.update(messages).values(
                accepted_ms=messages.c.accepted_ms - by_ms, created_ms=messages.c.created_ms - by_ms
            )
        )
        self.change(sa.update(breakers).values(opened_ms=breakers.c.opened_ms - by_ms))
