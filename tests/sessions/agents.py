"""Agents that misbehave, or that wait until a test lets them go on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from rookery.core.actor import Mode
from rookery.core.errors import NotFound
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.events import SessionEvent, done
from rookery.sessions.port import Host, Launch


class Puppet:
    """An agent in a test's hands: what it does in a turn is what `play` yields."""

    def __init__(self, runtime: "Puppets", launch: Launch, host: Host, resumed: str | None) -> None:
        self.launch = launch
        self.host = host
        self.resumed = resumed
        self.native_id: str | None = runtime.native_id
        self.alive = True
        self.said: list[str] = []
        self.modes: list[Mode] = []
        self.stops = 0
        self.interrupts = 0
        self.gate = asyncio.Event()
        self._runtime = runtime

    async def send(self, text: str) -> None:
        if self._runtime.refuses is not None:
            raise self._runtime.refuses
        self.said.append(text)

    async def events(self) -> AsyncIterator[SessionEvent]:
        async for event in self._runtime.play(self):
            yield event

    async def set_mode(self, mode: Mode) -> None:
        self.modes.append(mode)

    async def interrupt(self) -> None:
        self.interrupts += 1

    async def stop(self) -> None:
        self.stops += 1
        self.alive = False
        self.gate.set()


async def obedient(puppet: Puppet) -> AsyncIterator[SessionEvent]:
    """Says what it was told."""
    yield SessionEvent("text_delta", {"text": puppet.said[-1]})
    yield done(Outcome("done", output=puppet.said[-1], cost_usd=0.5, input_tokens=10, output_tokens=5), "completed")


class Puppets:
    """Starts them. `made` are all that it has started; `forgets`: it knows none that was before."""

    name = "puppets"
    missing: str | None = None

    def __init__(self, play: Callable[[Puppet], AsyncIterator[SessionEvent]] = obedient) -> None:
        self.play = play
        self.made: list[Puppet] = []
        self.native_id: str | None = "native-1"
        self.forgets = False
        self.refuses: Exception | None = None
        self.fails: Exception | None = None

    async def start(self, launch: Launch, host: Host) -> Puppet:
        return self._make(launch, host, None)

    async def resume(self, launch: Launch, host: Host, native_id: str) -> Puppet:
        if self.forgets:
            raise NotFound("no such session")
        return self._make(launch, host, native_id)

    def _make(self, launch: Launch, host: Host, resumed: str | None) -> Puppet:
        if self.fails is not None:
            raise self.fails
        self.made.append(Puppet(self, launch, host, resumed))
        return self.made[-1]


async def silent(puppet: Puppet) -> AsyncIterator[SessionEvent]:
    """Says nothing until it is stopped."""
    await puppet.gate.wait()
    for event in ():
        yield event


async def breaking(puppet: Puppet) -> AsyncIterator[SessionEvent]:
    """Says something, and then its program breaks."""
    yield SessionEvent("text_delta", {"text": "so far"})
    raise RuntimeError("the pipe broke")


async def vanishing(puppet: Puppet) -> AsyncIterator[SessionEvent]:
    """Says something, and is gone."""
    puppet.alive = False
    yield SessionEvent("text_delta", {"text": "so far"})


def told(**data: Any) -> SessionEvent:
    return SessionEvent("session_status", data)


async def patient(puppet: Puppet) -> AsyncIterator[SessionEvent]:
    """Says something, and is done when the test says so."""
    yield SessionEvent("text_delta", {"text": "so far"})
    await puppet.gate.wait()
    yield done(Outcome("done", output="well"), "completed")
