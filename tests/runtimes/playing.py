"""Lets a scripted agent play, with somebody who allows everything or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rookery.lifecycle.sessions import Outcome
from rookery.runtimes.scripted import Scripted
from rookery.sessions.ending import ending_of
from rookery.sessions.events import SessionEvent
from rookery.sessions.port import Agent, Asked, Launch, Permission, ToolUse
from tests.platform_fixtures import Fleet


@dataclass
class Person:
    """Decides as told, and remembers what was asked."""

    permission: Permission = field(default_factory=lambda: Permission(True))
    answer: str | None = None
    uses: list[ToolUse] = field(default_factory=list[ToolUse])
    questions: list[Asked] = field(default_factory=list[Asked])

    async def may_use(self, use: ToolUse) -> Permission:
        self.uses.append(use)
        return self.permission

    async def answers(self, call_id: str, questions: Sequence[Asked]) -> Sequence[str] | None:
        self.questions += questions
        return None if self.answer is None else [self.answer] * len(questions)


async def start(fleet: Fleet, person: Person | None = None, cwd: Path | None = None, **how: Any) -> Agent:
    actor = fleet.actor(session="ses-1")
    launch = Launch(session="ses-1", actor=actor, mode=actor.mode, cwd=None if cwd is None else str(cwd), **how)
    return await Scripted(fleet.platform).start(launch, person or Person())


async def turn(agent: Agent, *script: str) -> list[SessionEvent]:
    await agent.send("\n".join(script))
    return [event async for event in agent.events()]


async def play(fleet: Fleet, *script: str, **how: Any) -> Outcome:
    """How a script ends."""
    return ending_of((await turn(await start(fleet, **how), *script))[-1].data).outcome
