"""The process of Claude Code behind an agent: started with a clean environment, ended with everything it started.

The SDK's own way to start it would hand our whole environment on to it, and the configuration of foreign servers, with
the keys that stand there, to everybody who can list processes.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast

from claude_agent_sdk import CLIConnectionError, CLIJSONDecodeError, ProcessError, Transport

from rookery.lifecycle.leftovers import RUN_MARK, end_marked
from rookery.runtimes.claude_cost import own_cost

LONGEST_LINE = 64 * 1024 * 1024
"""A message can carry files and pictures."""
GRACE_S = 1.5
"""How long it may take to write down what was said, once it is told to end."""
END_S = 1.0
LOOK_S = 0.5
SOON_S = 0.01
KEPT_LINES = 20
KEY = "ANTHROPIC_API_KEY"
KEY_BY_PIPE = "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR"
_OF_LEASH = "-leash"
# What stands before the program: a companion that ends it with everything it started when we are no more, however we
# ended. We hold the other end of that pipe, and write nothing. The companion's own mark is another: it ends last.
_COMPANION = (
    'read -r _ <"/dev/fd/$0"; '
    'for _ in 1 2; do kill -s KILL $(grep -lsz "^$1\\$" /proc/[0-9]*/environ | cut -d/ -f3); done; kill -s KILL 0'
)
_LEASH = f'env "$1{_OF_LEASH}" sh -c \'{_COMPANION}\' "$0" "$1" >/dev/null 2>&1 </dev/null & shift; exec "$@"'


class ClaudeProcess(Transport):
    """Started by `connect`. When `close` returns, nothing of it is left that did not take its mark off."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str], folder: str | None, mark: str) -> None:
        self._words, self._env, self._folder, self._mark = words, env, folder, mark
        self._process: asyncio.subprocess.Process | None = None
        self._hand: int | None = None
        self._complaints: deque[str] = deque(maxlen=KEPT_LINES)
        self._helpers: list[asyncio.Task[None]] = []
        self._writing = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None
        self._costs: dict[str, float] = {}

    @property
    def complaint(self) -> str:
        """The last that it wrote on standard error."""
        return "\n".join(self._complaints)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def cost_of(self, result: str | None) -> float | None:
        """What was spent between that result, by its uuid, and the one before; None if it did not say. Told once."""
        return self._costs.pop(result or "", None)

    async def connect(self) -> None:
        leash, self._hand = os.pipe()
        env, handed = dict(self._env), [leash]
        try:
            if key := env.pop(KEY, None):
                # Its environment is seen by whatever it starts. What it has read from a pipe, it alone knows.
                handed.append(_filled(key))
                env[KEY_BY_PIPE] = str(handed[-1])
            self._process = await asyncio.create_subprocess_exec(
                *("sh", "-c", _LEASH, str(leash), f"{RUN_MARK}={self._mark}", *self._words),
                cwd=self._folder,
                env=env,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=handed,
                start_new_session=True,
                limit=LONGEST_LINE,
            )
        except OSError as error:
            raise CLIConnectionError(f"{error.strerror}: {error.filename}") from error
        finally:
            for end in handed:
                os.close(end)
        self._helpers = [asyncio.create_task(self._listen()), asyncio.create_task(self._watch())]

    async def _watch(self) -> None:
        """See that what it leaves behind with its pipes in hand does not make it look alive."""
        assert self._process is not None
        assert self._process.stdout is not None
        await _ended(self._process, LOOK_S)
        await asyncio.sleep(LOOK_S)
        self._process.stdout.feed_eof()

    async def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        with contextlib.suppress(ValueError):
            async for line in self._process.stderr:
                self._complaints.append(line.decode(errors="replace").rstrip()[:1000])

    async def write(self, data: str) -> None:
        async with self._writing:
            if not self.is_ready() or self._process is None or self._process.stdin is None:
                raise CLIConnectionError("Claude Code is not running")
            try:
                self._process.stdin.write(data.encode())
                await self._process.stdin.drain()
            except (OSError, RuntimeError) as error:
                raise CLIConnectionError(f"Claude Code takes nothing any more: {error}") from error

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Each line that is JSON, until it ends. An end that is none raises ProcessError."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                said = line.strip()
                if said.startswith(b"{"):
                    message = _message(said)
                    self._note_cost(message)
                    yield message
        except ValueError as error:
            raise CLIJSONDecodeError("a line that is too long", error) from error
        code = await _ended(process, SOON_S)
        if code:
            raise ProcessError("Claude Code ended", exit_code=code)

    def _note_cost(self, message: dict[str, Any]) -> None:
        """The SDK passes on what the session has cost, and not what the turn has."""
        cost = own_cost(message) if message.get("type") == "result" else None
        if cost is not None:
            self._costs[str(message.get("uuid"))] = cost

    async def end_input(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def is_ready(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def close(self) -> None:
        """Let it write down what was said, for a moment, and end it with everything that it started."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._end())
        # A cancelled caller must not leave processes behind.
        await asyncio.shield(self._closing)

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(_ended(process, SOON_S), GRACE_S)
            _kill_group(process.pid)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(_ended(process, SOON_S), END_S)
        hand, self._hand = self._hand, None
        if hand is not None:
            os.close(hand)
        for mark in (self._mark, self._mark + _OF_LEASH):
            await asyncio.to_thread(end_marked, mark)
        for helper in self._helpers:
            helper.cancel()


def _filled(text: str) -> int:
    """The end of a pipe from which the text can be read, once."""
    reading, writing = os.pipe()
    with open(writing, "w", encoding="utf-8") as pipe:
        pipe.write(text)
    return reading


def _message(line: bytes) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", json.loads(line))
    except ValueError as error:
        raise CLIJSONDecodeError(line.decode(errors="replace"), error) from error


async def _ended(process: asyncio.subprocess.Process, pause_s: float) -> int:
    """How it ended. `wait` would take it for running while anybody holds one of its pipes open."""
    while process.returncode is None:
        await asyncio.sleep(pause_s)
    return process.returncode


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
