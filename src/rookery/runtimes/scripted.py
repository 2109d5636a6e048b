"""An agent that obeys a script: for tests and the demo, where no model is at hand.

The script is the prompt itself or, if the setting `scripts` names a folder and the agent has a role, a file in there. A
prompt without a script is said back. What a script may say is in `runtimes.script`. Files are below the session's
folder, and tools are called through the same door as those of any agent.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from rookery.core.actor import Mode
from rookery.core.errors import ConfigurationError, RookeryError, ValidationFailed
from rookery.core.ids import new_id
from rookery.files.git import run_git
from rookery.lifecycle.programs import Ran, run_command
from rookery.lifecycle.sessions import Outcome
from rookery.runtimes.script import BadScript, Step, read_script, steps_of
from rookery.runtimes.scripts_folder import Scene, scene_of
from rookery.runtimes.tool_door import ToolDoor
from rookery.server.inprocess import ToolServer, create_tool_server
from rookery.sessions.events import DONE, EventName, SessionEvent, done
from rookery.sessions.foreign_tools import OUR_PREFIX
from rookery.sessions.port import OURS, Agent, Asked, Choice, Host, Launch, ToolUse

if TYPE_CHECKING:
    from rookery.app import Platform

LONGEST_WAIT_S = 3600.0
LOOK_S = 0.02
NAME = "scripted"


class Scripted:
    """Starts scripted agents on the running loop."""

    name = NAME
    missing = None

    def __init__(self, platform: "Platform") -> None:
        self._platform = platform

    async def start(self, launch: Launch, host: Host) -> Agent:
        return ScriptedAgent(self._platform, launch, host, new=True)

    async def resume(self, launch: Launch, host: Host, native_id: str) -> Agent:
        """A script has no past, so there is nothing that could be lost."""
        return ScriptedAgent(self._platform, launch, host, new=False)


class ScriptedAgent:
    """Plays one script after another. The folder has one for its first message only: others are for it alone."""

    def __init__(self, platform: "Platform", launch: Launch, host: Host, *, new: bool) -> None:
        self._platform = platform
        self._new = new
        self.native_id = f"{NAME}-{launch.session}"
        self.alive = True
        self._launch = launch
        self._host = host
        self._server: ToolServer = create_tool_server(platform, launch.actor)["instance"]
        self._events: asyncio.Queue[SessionEvent] = asyncio.Queue()
        self._playing: asyncio.Task[None] | None = None

    async def send(self, text: str) -> None:
        play = _Play(self._launch, self._host, self._server, self._events.put_nowait)
        self._playing = asyncio.create_task(self._through(play, text), name=f"script of {self._launch.session}")

    async def _through(self, play: "_Play", text: str) -> None:
        shown = [{"name": OURS, "status": "connected"}]
        shown += [{"name": name, "status": "failed", "error": "scripts know no other server"} for name in self._others]
        play.put("session_status", model=NAME, mode=self._server.actor.mode, servers=shown)
        try:
            outcome = await self._played(play, text)
            reason = "completed" if outcome.status == "done" else "failed"
        except asyncio.CancelledError:
            reason = "interrupted" if self.alive else "stopped"
            outcome = play.failed(reason)
        self._events.put_nowait(done(outcome, reason))

    async def _played(self, play: "_Play", text: str) -> Outcome:
        new, self._new = self._new, False
        try:
            play.scene = await scene_of(self._platform, self._launch, text) if new else None
        except (RookeryError, OSError, ValueError) as error:
            return play.failed(str(error))
        return await play.through(text, self._launch.max_turns)

    @property
    def _others(self) -> Sequence[str]:
        return sorted(self._launch.servers)

    async def events(self) -> AsyncIterator[SessionEvent]:
        while True:
            event = await self._events.get()
            yield event
            if event.name == DONE:
                return

    async def set_mode(self, mode: Mode) -> None:
        self._server.actor = replace(self._server.actor, mode=mode)

    async def interrupt(self) -> None:
        if self._playing is not None:
            self._playing.cancel()

    async def stop(self) -> None:
        self.alive = False
        if self._playing is not None:
            self._playing.cancel()
            await asyncio.wait([self._playing])


@dataclass(slots=True)
class _Play:
    launch: Launch
    host: Host
    server: ToolServer
    put_event: Callable[[SessionEvent], None]
    said: list[str] = field(default_factory=list[str])
    spent: float = 0.0
    turns: int = 0
    scene: Scene | None = None

    def put(self, event: EventName, /, **data: Any) -> None:
        self.put_event(SessionEvent(event, data))

    async def through(self, prompt: str, max_turns: int | None) -> Outcome:
        """Do every step, and tell how it went. Nothing that goes wrong is raised."""
        script = self.scene.steps if self.scene is not None else read_script(prompt)
        if not script and self.scene is None:
            self._speak(prompt)
            return Outcome("done", output=prompt)
        try:
            async with ToolDoor(self.server) as door:
                await self._all(script[:max_turns], door)
            if max_turns is not None and len(script) > max_turns:
                raise BadScript(f"not done after {max_turns} turns")
        except (RookeryError, OSError, ValueError) as error:
            return self.failed(str(error))
        return Outcome("done", self._output, cost_usd=self.spent, turns=self.turns)

    def failed(self, why: str) -> Outcome:
        """The end of a script that was not played through."""
        return Outcome("failed", self._output, why, self.spent, self.turns)

    @property
    def _output(self) -> str:
        return "\n".join(self.said)

    def _speak(self, text: str) -> None:
        self.put("text_delta", text=f"\n{text}" if self.said else text)
        self.said.append(text)

    async def _all(self, script: Sequence[Step], door: ToolDoor) -> None:
        ways: dict[str, Callable[[Step], Awaitable[None]]] = {
            "say": self._say,
            "think": self._think,
            "fail": self._fail,
            "wait": self._wait,
            "write": self._write,
            "append": self._append,
            "commit": self._commit,
            "spend": self._spend,
            "call": lambda step: self._call(step, door),
            "use": self._use,
            "ask": self._ask,
            "task": self._task,
        }
        scene = self.scene
        if scene is not None:
            ways |= {
                "run": self._run,
                "until": lambda step: self._until(step, scene),
                "each": lambda step: self._each(step, scene, door),
            }
        for step in script:
            if step.word not in ways:
                raise BadScript(f"no such instruction: !{step.word}")
            self.turns += 1
            # Steps that are refused at once would hold up everybody else, and whoever wants to stop them.
            await asyncio.sleep(0)
            await ways[step.word](step if scene is None else await scene.step(step))

    async def _each(self, step: Step, scene: Scene, door: ToolDoor) -> None:
        given: Any = step.given.get("of")
        script = steps_of(step.given.get("do"))
        if not isinstance(given, list) or not script:
            raise BadScript("each needs a list, and what to do for each of it")
        for one in cast("list[Any]", given):
            scene.known[step.text("as") or "each"] = one
            await self._all(script, door)

    async def _until(self, step: Step, scene: Scene) -> None:
        path, left = os.path.join(scene.folder, os.path.basename(step.text("name"))), LONGEST_WAIT_S
        while not os.path.exists(path):
            if left <= 0:
                raise BadScript(f"{path} has not come")
            await asyncio.sleep(LOOK_S)
            left -= LOOK_S

    async def _run(self, step: Step) -> None:
        command = step.text("command")
        use = self._begun("Bash", {"command": command})
        refusal = await self._refusal(use)
        ran = Ran(False, refusal) if refusal else await run_command(command, self._cwd, LONGEST_WAIT_S)
        self._ended(use, ran.output, is_error=not ran.ok)
        if not ran.ok:
            raise BadScript(f"{command}: {ran.output}")

    async def _say(self, step: Step) -> None:
        self._speak(step.text("text"))

    async def _think(self, step: Step) -> None:
        self.put("thinking_delta", text=step.text("text"))

    async def _task(self, step: Step) -> None:
        self.put("task_update", tasks=[{"id": "1", "text": step.text("text"), "status": "in_progress"}])

    async def _fail(self, step: Step) -> None:
        raise BadScript(step.text("text") or "failed as told")

    async def _wait(self, step: Step) -> None:
        await asyncio.sleep(min(step.amount("seconds"), LONGEST_WAIT_S))

    async def _spend(self, step: Step) -> None:
        self.spent += step.amount("dollars")
        budget = self.launch.budget_usd
        if budget is not None and self.spent > budget:
            raise BadScript(f"the budget of {budget:g} dollars is used up")

    async def _write(self, step: Step) -> None:
        await self._file(step, "w")

    async def _append(self, step: Step) -> None:
        await self._file(step, "a")

    async def _file(self, step: Step, mode: str) -> None:
        path = self._inside(step.text("path"))

        def put() -> None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, mode, encoding="utf-8") as file:
                file.write(step.text("text").removesuffix("\n") + "\n")

        await asyncio.to_thread(put)

    def _inside(self, name: str) -> str:
        root = os.path.realpath(self._cwd)
        path = os.path.realpath(os.path.join(root, name))
        if not name or os.path.commonpath([root, path]) != root or path == root:
            raise ValidationFailed(f"{name or 'nothing'} is no file in the session's folder")
        return path

    async def _commit(self, step: Step) -> None:
        name = self.launch.actor.agent_name or "agent"
        who = {"NAME": name, "EMAIL": "agent@rookery.invalid"}
        author = {f"GIT_{role}_{part}": said for role in ("AUTHOR", "COMMITTER") for part, said in who.items()}
        folder, message = self._cwd, step.text("message") or "work"

        def commit() -> None:
            run_git(("add", "--all", "--", "."), {}, folder)
            if run_git(("status", "--porcelain"), {}, folder).strip():
                run_git(("commit", "--quiet", "--no-verify", f"--message={message}"), author, folder)

        await asyncio.to_thread(commit)

    async def _call(self, step: Step, door: ToolDoor) -> None:
        """A tool of the platform, with the agent's own rights. A refusal is said, and the script goes on."""
        name, arguments = step.text("tool"), step.object("arguments")
        use = self._begun(f"{OUR_PREFIX}{name}", arguments)
        # What it is not shown it is not asked for: the call itself is refused then.
        refusal = await self._refusal(use) if await door.lists(name) else None
        if refusal is not None:
            self._ended(use, refusal, is_error=True)
            self._hear(f"{name} was refused: {refusal}")
            if step.given.get("must"):
                raise BadScript(f"{name} was refused: {refusal}")
            return
        answer = await door.call(name, arguments)
        structured = {"structured": answer.structured} if answer.structured is not None else {}
        self._ended(use, answer.text, is_error=answer.error is not None, **structured)
        self._hear(f"{name} was refused: {answer.error}" if answer.error else f"{name}: {answer.text}")
        if self.scene is not None:
            self.scene.known[step.text("as") or name] = answer.structured
        if answer.error and step.given.get("must"):
            raise BadScript(f"{name} was refused: {answer.error}")

    def _hear(self, answer: str) -> None:
        # Scripts of files may call tools for hours, and say themselves what is worth saying.
        if self.scene is None:
            self.said.append(answer)

    async def _use(self, step: Step) -> None:
        """A tool of the agent's own, which would have done something now."""
        use = self._begun(step.text("tool"), step.object("input"))
        refusal = await self._refusal(use)
        self._ended(use, refusal or "done", is_error=refusal is not None)
        self.said.append(f"{use.tool} was refused: {refusal}" if refusal else f"{use.tool} was used")

    def _begun(self, tool: str, given: dict[str, Any]) -> ToolUse:
        use = ToolUse(tool=tool, input=given, call_id=new_id("call"))
        self.put("tool_call_start", call_id=use.call_id, tool=tool)
        self.put("tool_call_end", call_id=use.call_id, tool=tool, input=given)
        return use

    async def _refusal(self, use: ToolUse) -> str | None:
        permission = await self.host.may_use(use)
        return None if permission.allow else permission.reason or "no reason was given"

    def _ended(self, use: ToolUse, text: str, *, is_error: bool, **more: Any) -> None:
        self.put("tool_result", call_id=use.call_id, tool=use.tool, text=text, is_error=is_error, **more)

    async def _ask(self, step: Step) -> None:
        choices = [Choice(option) for option in step.texts("options")]
        asked = Asked(step.text("question"), step.text("header"), choices, bool(step.given.get("several")))
        answers = await self.host.answers(new_id("call"), [asked])
        self._speak("nobody answered" if answers is None else f"answered: {answers[0]}")

    @property
    def _cwd(self) -> str:
        if self.launch.cwd is None:
            raise ConfigurationError("this session has no folder")
        return self.launch.cwd
