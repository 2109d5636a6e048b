"""An agent that obeys a script in its prompt: for tests and the demo, where no model is at hand.

Lines that start with `!` are done in order; a prompt without any is said back.

    !say TEXT             !write PATH TEXT     !wait SECONDS     !call TOOL {"argument": 1}
    !fail TEXT            !append PATH TEXT    !spend DOLLARS    !commit MESSAGE

`\\n` in a TEXT of a file is a new line. Files are below the session's folder.
"""

import asyncio
import json
import math
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rookery.core.actor import Actor
from rookery.core.call import Calls
from rookery.core.errors import ConfigurationError, RookeryError, ValidationFailed
from rookery.core.ids import new_id
from rookery.files.git import run_git
from rookery.lifecycle.sessions import Outcome

LONGEST_WAIT_S = 3600.0
Renew = Callable[[Actor], Awaitable[Actor]]


class Scripted:
    """Starts scripted agents on the running loop. `calls` may be set later, before the first `!call`.

    With `renew` the rights of a session are looked up again for each call.
    """

    def __init__(self, calls: Calls | None = None, renew: Renew | None = None) -> None:
        self.calls = calls
        self.renew = renew
        self._living: dict[tuple[str, str], ScriptedSession] = {}

    async def start_session(
        self,
        actor: Actor,
        prompt: str,
        *,
        key: str,
        cwd: str | None = None,
        max_turns: int | None = None,
        budget_usd: float | None = None,
    ) -> "ScriptedSession":
        """Play the script of `prompt`, each line of it a turn. While a session of `key` lives, it is that one."""
        place = (actor.tenant, key)
        living = self._living.get(place)
        if living is not None:
            return living
        play = _Play(self.calls, actor, cwd, budget_usd, self.renew)
        session = ScriptedSession(play, asyncio.create_task(play.through(prompt, max_turns), name=f"scripted {key}"))
        self._living[place] = session
        session.task.add_done_callback(lambda task: self._living.pop(place, None))
        return session


class ScriptedSession:
    """One script being played."""

    def __init__(self, play: "_Play", task: "asyncio.Task[Outcome]") -> None:
        self.id = new_id("ses")
        self.task = task
        self._play = play

    async def wait(self) -> Outcome:
        """How it ends, also for those who ask after the end."""
        await asyncio.wait([self.task])
        return self._play.failed("stopped") if self.task.cancelled() else self.task.result()

    async def stop(self) -> None:
        """End it now."""
        self.task.cancel()
        await asyncio.wait([self.task])


class _Ended(Exception):
    """The agent gives up."""


@dataclass(slots=True)
class _Play:
    calls: Calls | None
    actor: Actor
    folder: str | None
    budget_usd: float | None
    renew: Renew | None = None
    said: list[str] = field(default_factory=list[str])
    spent: float = 0.0
    turns: int = 0

    async def through(self, prompt: str, max_turns: int | None) -> Outcome:
        """Do every line, and tell how it went. Nothing that goes wrong is raised."""
        script = [line[1:].rstrip("\r") for line in prompt.split("\n") if line.startswith("!")]
        if not script:
            return Outcome("done", output=prompt)
        try:
            if max_turns is not None and len(script) > max_turns:
                script = script[:max_turns]
                await self._all(script)
                raise _Ended(f"not done after {max_turns} turns")
            await self._all(script)
        except (_Ended, RookeryError, OSError, ValueError) as error:
            return self.failed(str(error))
        return Outcome("done", self._output, cost_usd=self.spent, turns=self.turns)

    def failed(self, why: str) -> Outcome:
        """The end of a script that was not played through."""
        return Outcome("failed", self._output, why, self.spent, self.turns)

    @property
    def _output(self) -> str:
        return "\n".join(self.said)

    async def _all(self, script: Sequence[str]) -> None:
        ways: dict[str, Callable[[str], Awaitable[None]]] = {
            "say": self._say,
            "fail": self._fail,
            "wait": self._wait,
            "write": self._write,
            "append": self._append,
            "commit": self._commit,
            "spend": self._spend,
            "call": self._call,
        }
        for line in script:
            word, _, rest = line.partition(" ")
            if word not in ways:
                raise _Ended(f"no such instruction: !{word}")
            self.turns += 1
            await ways[word](rest)

    async def _say(self, text: str) -> None:
        self.said.append(text)

    async def _fail(self, text: str) -> None:
        raise _Ended(text or "failed as told")

    async def _wait(self, text: str) -> None:
        await asyncio.sleep(min(_amount(text), LONGEST_WAIT_S))

    async def _spend(self, text: str) -> None:
        self.spent += _amount(text)
        if self.budget_usd is not None and self.spent > self.budget_usd:
            raise _Ended(f"the budget of {self.budget_usd:g} dollars is used up")

    async def _write(self, text: str) -> None:
        await self._file(text, "w")

    async def _append(self, text: str) -> None:
        await self._file(text, "a")

    async def _file(self, text: str, mode: str) -> None:
        name, _, content = text.partition(" ")
        path = self._inside(name)

        def put() -> None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, mode, encoding="utf-8") as file:
                file.write(content.replace("\\n", "\n") + "\n")

        await asyncio.to_thread(put)

    def _inside(self, name: str) -> str:
        root = os.path.realpath(self._cwd)
        path = os.path.realpath(os.path.join(root, name))
        if not name or os.path.commonpath([root, path]) != root or path == root:
            raise ValidationFailed(f"{name or 'nothing'} is no file in the session's folder")
        return path

    async def _commit(self, message: str) -> None:
        name = self.actor.agent_name or "agent"
        who = {"NAME": name, "EMAIL": "agent@rookery.invalid"}
        author = {f"GIT_{role}_{part}": said for role in ("AUTHOR", "COMMITTER") for part, said in who.items()}
        folder = self._cwd

        def commit() -> None:
            run_git(("add", "--all", "--", "."), {}, folder)
            if run_git(("status", "--porcelain"), {}, folder).strip():
                run_git(("commit", "--quiet", "--no-verify", f"--message={message or 'work'}"), author, folder)

        await asyncio.to_thread(commit)

    async def _call(self, text: str) -> None:
        """A tool of the platform, with the actor's own rights. A refusal is said, and the script goes on."""
        if self.calls is None:
            raise ConfigurationError("this runtime was given no platform to call")
        name, _, written = text.partition(" ")
        try:
            actor = await self.renew(self.actor) if self.renew is not None else self.actor
            result = await self.calls.call(actor, name, _arguments(name, written))
        except RookeryError as error:
            self.said.append(f"{name} was refused: {error.code}: {error.message}")
        else:
            self.said.append(f"{name}: {result.text}")

    @property
    def _cwd(self) -> str:
        if self.folder is None:
            raise ConfigurationError("this session has no folder")
        return self.folder


def _amount(text: str) -> float:
    """A number that a clock and a purse can take: a wait of NaN would be the end of the event loop."""
    number = float(text)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{text} is no number from 0 on")
    return number


def _arguments(tool: str, text: str) -> dict[str, Any]:
    try:
        given: Any = json.loads(text or "{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise _Ended(f"!call {tool}: the arguments are no JSON object")
    return cast("dict[str, Any]", given)
