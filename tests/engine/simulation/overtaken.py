"""Histories that are no accidents: a verdict is given while nobody leads, and overtaken before anybody acts on it.

Only when all of that has happened the leader, which was asleep, sees it. Chance alone brings this about too seldom for
a test.
"""

import sys
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from rookery.identity.binding import Binding
from tests.engine.simulation.agents import SimulatedAgent
from tests.engine.simulation.history import Crash, History
from tests.engine.simulation.parts import Row, act, commit, dispatch_of, newest_change, put, write_artifact
from tests.engine.simulation.process import Process
from tests.engine.simulation.scenario import Scenario
from tests.engine.simulation.truth import BAD

_QUIET = Crash(0, sys.maxsize, "before")
"""A crash that never comes: nothing else goes wrong in the history."""
_SCENARIO = Scenario(
    processes=(True, False),
    slugs=("alpha",),
    settings={"pipeline": ["research", "ready"], "unjudged": [], "gates": []},
    orchestration={"max_agents": 1, "max_retries": 1, "run_limit_s": 300, "auto_merge": False, "gate_limit_s": 60},
    installed={
        "runtime": "scripted",
        "tick_s": 5.0,
        "session_stall_s": 90.0,
        "session_first_event_s": 30.0,
        "worker_concurrency": 4,
        "approval_hold_s": 0.0,
    },
    issues=[{"title": "Issue 0", "labels": ["phase:research"], "priority": 1}],
    troubled_s=0.0,
)


class _Directed(History, ABC):
    """Runs once, as any history. Its server leads and does no more, so that agents go on while it is asleep."""

    def __init__(self, seed: int, *, keep_log: bool = False) -> None:
        super().__init__(seed, keep_log=keep_log, crash=_QUIET)
        self.scenario = _SCENARIO
        self._overtaken = False

    def _process(self, name: str, *, works: bool, orchestrates: bool) -> Process:
        return super()._process(name, works=works and not orchestrates, orchestrates=orchestrates)

    async def part(self, agent: SimulatedAgent) -> None:
        """What agents do, but for the first of those whom the history is about."""
        dispatch = None if self._overtaken else await dispatch_of(agent)
        if dispatch is None or not self._is_about(agent, dispatch):
            await act(agent)
            return
        self._overtaken = True
        leader = self._slots[0]
        leader.sleep()
        await self._overtake(agent, dispatch)
        leader.wake_up()

    @abstractmethod
    def _is_about(self, agent: SimulatedAgent, dispatch: Row) -> bool: ...

    @abstractmethod
    async def _overtake(self, agent: SimulatedAgent, dispatch: Row) -> None: ...


class Overtaken(_Directed):
    """The first agent claims a good artifact, a person approves it, and the agent claims a bad one in its place."""

    def _is_about(self, agent: SimulatedAgent, dispatch: Row) -> bool:
        return dispatch.phase == "research"

    async def _overtake(self, agent: SimulatedAgent, dispatch: Row) -> None:
        judged = await write_artifact(agent, dispatch, good=True)
        await self._approve(dispatch.identifier, judged)
        await write_artifact(agent, dispatch, good=False)

    async def _approve(self, identifier: str, artifact_hash: str) -> None:
        desk = self._everyone[0]
        bound = Binding(as_owner=True, project=self.scenario.slugs[0], issue=identifier)
        person: Any = (await desk.database.read(lambda tx: desk.platform.resolver.resolve(tx, bound))).actor
        about = {"phase": "research", "artifact_hash": artifact_hash}
        await desk.platform.calls.call(person, "approve_phase", {**about, "reason": "well done"})


class OvertakenChange(_Directed):
    """A judge reads a good change and approves it; in between its author, who has outlived its run, commits a bad one.

    The revision stays what it was, so that only its branch tells that another commit is there by now.
    """

    def __init__(self, seed: int, *, auto_merge: bool, keep_log: bool = False) -> None:
        super().__init__(seed, keep_log=keep_log)
        self.scenario = replace(
            _SCENARIO,
            settings={**_SCENARIO.settings, "pipeline": ["ready"]},
            orchestration={**_SCENARIO.orchestration, "auto_merge": auto_merge},
            issues=[{"title": "Issue 0", "labels": ["phase:ready"], "priority": 1}],
        )
        self._author: SimulatedAgent | None = None

    def _is_about(self, agent: SimulatedAgent, dispatch: Row) -> bool:
        if dispatch.work == "phase":
            self._author = agent
        return dispatch.work == "judge_pr"

    async def _overtake(self, agent: SimulatedAgent, dispatch: Row) -> None:
        author = self._author
        read: Row | None = await agent.read(lambda tx: newest_change(tx, dispatch.issue_id))
        assert read is not None
        assert author is not None
        put(author, f"src/{dispatch.identifier}.txt", f"{BAD}\nby {author.name}\n")
        commit(author, good=False)
        self.truth.left_behind.add(read.head)
        await agent.call("approve_pr", revision=read.revision, reason="well done")
