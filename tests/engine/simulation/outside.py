"""What lies outside of Rookery while a history runs: git, the owner's commands, and locks, which end with a process."""

import asyncio
import fcntl
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from contextvars import Context, copy_context
from types import SimpleNamespace
from typing import Any, Protocol

import rookery.engine.workspace_records
import rookery.files.git
from rookery.lifecycle import programs
from rookery.lifecycle.programs import Ran
from tests.databases import roomy_folder
from tests.engine.simulation.clock import HOST, VirtualLoop
from tests.engine.simulation.small_git import Refused, SmallGit
from tests.engine.simulation.temper import Temper

GIT_ENVIRONMENT = {
    **{f"GIT_{role}_{what}": "ada" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    **{f"GIT_{role}_DATE": "1700000000 +0000" for role in ("AUTHOR", "COMMITTER")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


class Repositories(Protocol):
    """Makes repositories, and knows what is in them."""

    def make(self, folder: str) -> str: ...
    def reachable(self) -> set[str]:
        """The commits that a branch has, or that a working tree stands on."""
        ...

    def context(self) -> Context: ...
    def unknown(self) -> list[str]:
        """What was asked of git that nobody has simulated."""
        ...


class Simulated:
    """Those of the small git."""

    def __init__(self) -> None:
        self.git = SmallGit()

    def make(self, folder: str) -> str:
        os.makedirs(folder)
        self.git.make(folder)
        return folder

    def reachable(self) -> set[str]:
        return self.git.reachable()

    def unknown(self) -> list[str]:
        return self.git.unknown

    def context(self) -> Context:
        return _nowhere()


class Real:
    """Those of git itself."""

    def __init__(self) -> None:
        self._made: list[str] = []

    def make(self, folder: str) -> str:
        self._made.append(folder)
        os.makedirs(folder)
        with open(os.path.join(folder, "README.md"), "w", encoding="utf-8") as file:
            file.write("# A project\n")
        for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "first")):
            _git(folder, *words)
        return folder

    def reachable(self) -> set[str]:
        found: set[str] = set()
        for folder in self._made:
            lines = _git(folder, "worktree", "list", "--porcelain").splitlines()
            heads = [line.removeprefix("HEAD ") for line in lines if line.startswith("HEAD ")]
            found |= set(_git(folder, "rev-list", "--branches", *heads).split())
        return found

    def unknown(self) -> list[str]:
        return []

    def context(self) -> Context:
        return _nowhere()


def _git(folder: str, *words: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": folder, **GIT_ENVIRONMENT}
    done = subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def _nowhere() -> Context:
    """A context that belongs to no process."""
    context = copy_context()
    context.run(HOST.set, None)
    return context


class Ground:
    """Puts all of that in place for the time of a `with` block."""

    def __init__(self, loop: VirtualLoop, temper: Temper, *, real_git: bool) -> None:
        self.repositories: Repositories = Real() if real_git else Simulated()
        self._loop = loop
        self._temper = temper
        self._stack = ExitStack()

    def __enter__(self) -> "Ground":
        self._replace_everywhere(programs.run_command, self._run_command)
        if isinstance(self.repositories, Simulated):
            self._set(rookery.files.git, "subprocess", _Processes(self.repositories.git))
            self._set(rookery.files.git, "tempfile", _InMemory())
            self._set(rookery.files.git, "_read", lambda process, limit, limit_s: (process.answer, True))
        locks = _Locks()
        self._set(rookery.engine.workspace_records, "fcntl", locks)
        self._set(rookery.engine.workspace_records, "os", locks.os)
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def _set(self, place: Any, name: str, value: Any) -> None:
        self._stack.callback(setattr, place, name, getattr(place, name))
        setattr(place, name, value)

    def _replace_everywhere(self, old: Callable[..., Any], new: Callable[..., Any]) -> None:
        for module in list(sys.modules.values()):
            if module.__name__.startswith("rookery.") and vars(module).get(old.__name__) is old:
                self._set(module, old.__name__, new)

    async def _run_command(self, command: str, folder: str, limit_s: float, keep: int = 0) -> Ran:
        """The owner's command: it looks at what is there, takes its time, and now and then fails or never ends."""
        rng = self._loop.rng
        if self._temper.happens(self._temper.slow_gates * 0.3, rng):
            await asyncio.sleep(limit_s)
            return Ran(False, f"stopped after {limit_s:g} s")
        await asyncio.sleep(rng.uniform(0.5, 8))
        if self._temper.happens(self._temper.failing_gates, rng):
            return Ran(False, "1 test failed", 1)
        return Ran(os.path.isdir(folder), "all tests passed", 0 if os.path.isdir(folder) else 1)


class _Processes:
    """Instead of `subprocess`, for whoever runs nothing but git."""

    PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL

    def __init__(self, git: SmallGit) -> None:
        self._git = git

    def Popen(  # noqa: N802
        self, command: Sequence[str], *, cwd: str, env: dict[str, str], stderr: Any, **how: Any
    ) -> Any:
        try:
            return SimpleNamespace(answer=self._git.run(command[1:], env, cwd), returncode=0)
        except Refused as refused:
            stderr.write(refused.complaint.encode())
            return SimpleNamespace(answer=refused.answer, returncode=refused.code)


class _InMemory:
    """Instead of `tempfile`, for whoever runs no program that would have to be given a file."""

    TemporaryFile = io.BytesIO

    def __init__(self) -> None:
        self._folder = roomy_folder()

    def TemporaryDirectory(self, *, prefix: str) -> Any:  # noqa: N802
        return tempfile.TemporaryDirectory(prefix=prefix, dir=self._folder)


class _Locks:
    """Instead of `fcntl`: a process that has crashed holds no lock any more, as the kernel sees to."""

    LOCK_EX, LOCK_NB = fcntl.LOCK_EX, fcntl.LOCK_NB

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, Any]] = {}
        self._paths: dict[int, str] = {}
        self.os = _Os(self)

    def flock(self, lock: int, how: int) -> None:
        path = self._paths[lock]
        holder = self._held.get(path)
        if holder is not None and holder[0] in self._paths and getattr(holder[1], "state", "up") != "dead":
            raise BlockingIOError
        self._held[path] = (lock, HOST.get())

    def opened(self, lock: int, path: str) -> None:
        self._paths[lock] = path

    def closed(self, lock: int) -> None:
        path = self._paths.pop(lock, None)
        if path is not None and self._held.get(path, (None,))[0] == lock:
            del self._held[path]


class _Os:
    """`os`, but for the files that are locks."""

    def __init__(self, locks: _Locks) -> None:
        self._locks = locks

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        file = os.open(path, flags, mode)
        if os.path.basename(os.path.dirname(path)) == "locks":
            self._locks.opened(file, path)
        return file

    def close(self, file: int) -> None:
        self._locks.closed(file)
        os.close(file)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)
