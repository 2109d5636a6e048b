"""Simulated agents, behind the port of every runtime. They live outside of the processes that start them.

What an agent does it does with the real tools, as itself. It may outlive its server, be told to stop and go on, say
something twice or too late, or say nothing at all.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from rookery.core.actor import Actor, Mode
from rookery.core.errors import RookeryError, ServiceUnavailable
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.events import DONE, SessionEvent, done
from rookery.sessions.port import Host, Launch
from tests.engine.simulation.log import Log
from tests.engine.simulation.process import RUNTIME, Gone, Process
from tests.engine.simulation.temper import Temper
from tests.engine.simulation.truth import Truth

LATE_S = 300.0
"""So late what was sent twice may come the second time."""


class Stage(Protocol):
    """What agents need of the world around them."""

    truth: Truth
    temper: Temper
    log: Log

    def live(self) -> Sequence[Process]: ...
    def outside(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]": ...
    def new_rng(self) -> random.Random: ...


Part = Callable[["SimulatedAgent"], Awaitable[None]]


class Runtime:
    """Starts them for one process."""

    name = RUNTIME
    missing = None

    def __init__(self, stage: Stage, process: Process, part: Part) -> None:
        self._stage = stage
        self._process = process
        self._part = part

    async def start(self, launch: Launch, host: Host) -> "SimulatedAgent":
        rng = self._stage.new_rng()
        agent = SimulatedAgent(self._stage, self._process, launch, self._part, rng)
        if agent.behaviour == "never_starts":
            await asyncio.Event().wait()
        if agent.behaviour == "cannot_start":
            raise ServiceUnavailable("the model does not answer", hint="it is tried again")
        return agent

    async def resume(self, launch: Launch, host: Host, native_id: str) -> "SimulatedAgent":
        return await self.start(launch, host)


class SimulatedAgent:
    """One agent: `part` is what it does in its turn."""

    def __init__(self, stage: Stage, process: Process, launch: Launch, part: Part, rng: random.Random) -> None:
        self.stage = stage
        self.launch = launch
        self.rng = rng
        self.behaviour = stage.temper.behaviour(rng)
        self.native_id = f"simulated-{launch.session}"
        self.alive = True
        self.name = f"{launch.actor.profile}-{stage.truth.started}"
        stage.truth.started += 1
        self._process = process
        self._part = part
        self._events: asyncio.Queue[SessionEvent | None] = asyncio.Queue()
        self._playing: asyncio.Task[None] | None = None
        self._spent_usd = 0.0
        self._turns = 0

    @property
    def actor(self) -> Actor:
        return self.launch.actor

    def tell(self, what: str) -> None:
        self.stage.log(self.name, what)

    async def send(self, text: str) -> None:
        self._playing = self.stage.outside(self._play(), f"agent {self.name}")

    async def _play(self) -> None:
        self.tell(f"begins on {self.actor.issue_identifier or 'no issue'} in {self._process.name}: {self.behaviour}")
        self._put("session_status", model="simulated", mode=self.actor.mode, servers=[])
        outcome, reason = Outcome("done", output="done"), "completed"
        try:
            await self._part(self)
        except asyncio.CancelledError:
            outcome, reason = Outcome("failed", error="stopped"), "stopped"
        except (RookeryError, Gone) as error:
            outcome, reason = Outcome("failed", error=str(error)), "failed"
        if self.behaviour == "fails":
            outcome, reason = Outcome("failed", error="the model gave up"), "failed"
        if self.behaviour == "breaks":
            self.tell("ends without a word")
            self._events.put_nowait(None)
            return
        self.tell(f"is {reason}{': ' + outcome.error if outcome.error else ''}")
        told = Outcome(outcome.status, outcome.output, outcome.error, self._spent_usd, max(self._turns, 1), 100, 10)
        if self.actor.run is not None:
            self.stage.truth.spent_micros[self.actor.run] = told.cost_micros
        self._events.put_nowait(done(told, reason))

    def _put(self, event: Any, /, **data: Any) -> None:
        self._events.put_nowait(SessionEvent(event, data))

    async def events(self) -> AsyncIterator[SessionEvent]:
        while (event := await self._events.get()) is not None:
            yield event
            if event.name == DONE:
                return

    async def set_mode(self, mode: Mode) -> None: ...

    async def interrupt(self) -> None:
        await self.stop()

    async def stop(self) -> None:
        self.alive = False
        if self._playing is None or self._playing.done():
            return
        if self.behaviour == "is_stubborn":
            self.tell("is told to stop and goes on")
            return
        self._playing.cancel()

    async def think(self, least_s: float = 0.2, most_s: float = 5.0) -> None:
        """Take a while, and spend something."""
        if self.behaviour == "is_slow":
            most_s *= 8
        await asyncio.sleep(self.rng.uniform(least_s, most_s))
        self._turns += 1
        self._spent_usd += self.rng.randrange(1, 50_000) / 1_000_000
        self._put("text_delta", text="hm. ")

    async def hang(self) -> None:
        """Say nothing more, ever."""
        self.tell("says nothing more")
        await asyncio.Event().wait()

    async def dawdle(self) -> None:
        """Talk for ever and do nothing."""
        while True:
            await self.think(20, 30)

    async def call(self, tool: str, **arguments: Any) -> Any:
        """What the tool answers. Now and then it is called twice, at once or much later."""
        if self.stage.temper.happens(self.stage.temper.twice, self.rng):
            delay_s = self.rng.choice((0.0, 5.0, self.rng.uniform(0, LATE_S)))
            self.stage.outside(self._again(delay_s, tool, arguments), f"late call of {self.name}")
        self._put("tool_call_end", call_id="c", tool=f"mcp__rookery__{tool}", input={})
        try:
            return await self._called(self._door(), tool, arguments)
        finally:
            self._put("tool_result", call_id="c", tool=f"mcp__rookery__{tool}", text="", is_error=False)

    async def _again(self, delay_s: float, tool: str, arguments: dict[str, Any]) -> None:
        await asyncio.sleep(delay_s)
        with contextlib.suppress(RookeryError, Gone):
            await self._called(self._door(orphan=True), tool, arguments)

    def _door(self, *, orphan: bool = False) -> Process:
        """The process that serves it: its own, or if that has crashed, for some, any other."""
        if self._process.state != "dead":
            return self._process
        others = self.stage.live()
        if others and (orphan or self.stage.temper.happens(self.stage.temper.orphans, self.rng)):
            return self.rng.choice(others)
        raise Gone(self._process.name)

    async def _called(self, process: Process, tool: str, arguments: dict[str, Any]) -> Any:
        platform = process.platform

        async def call() -> Any:
            actor = await platform.calls.facts["sessions"].renew(self.actor)
            return (await platform.calls.call(actor, tool, arguments)).value

        try:
            value = await process.ask(call())
        except RookeryError as error:
            self.tell(f"{tool} is refused: {error.message}")
            raise
        self.tell(f"{tool} {_shown(arguments)}")
        return value

    async def read(self, work: Callable[[Any], Any]) -> Any:
        """What it was told in its prompt, or reads in a page."""
        process = self._door(orphan=True)
        return await process.ask(process.database.read(work))


def _shown(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={str(value)[:24]}" for name, value in arguments.items() if value is not None)
