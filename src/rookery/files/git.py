"""Asking git about a folder that an agent may have prepared: nothing that the agent wrote there is ever run.

Names are resolved in the repository itself. Everything that opens objects or the working tree runs with a git folder
of our own that only borrows the repository's objects, so that its config, hooks, filters, diff drivers, replaced
objects and lazy fetches have no say.
"""

import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rookery.core.errors import ServiceUnavailable, TimedOut, ValidationFailed

TIMEOUT_S = 30.0
ANSWER_BYTES = 1_000_000
POINTER_BYTES = 4_096
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# What git itself refuses in a ref, and all of its revision syntax: a base is a name and never an expression.
_NOT_A_NAME = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|/\.|[/.]$|\.lock(?:/|$)|^@$")
# The only settings of the repository that decide whether an unchanged file looks changed; none of them names a program.
_HARMLESS = r"^core\.(filemode|symlinks|ignorecase|autocrlf|eol|precomposeunicode|excludesfile)$"


@dataclass(frozen=True, slots=True)
class Repository:
    """Where git keeps what belongs to a working tree, by real path."""

    folder: str
    git_dir: str
    common_dir: str

    @property
    def objects(self) -> str:
        return os.path.join(self.common_dir, "objects")


def open_repository(folder: str) -> Repository:
    """The repository whose working tree's root is `folder`; a folder that merely lies in one is refused."""
    root = os.path.realpath(folder)
    dot_git = os.path.join(root, ".git")
    git_dir = dot_git
    if os.path.isfile(dot_git):
        pointer = small_text(dot_git)
        if not pointer.startswith("gitdir: "):
            raise _no_repository(root)
        git_dir = os.path.join(root, pointer.removeprefix("gitdir: ").strip())
    git_dir = os.path.realpath(git_dir)
    common = os.path.join(git_dir, "commondir")
    common_dir = (
        os.path.realpath(os.path.join(git_dir, small_text(common).strip())) if os.path.isfile(common) else git_dir
    )
    if not (os.path.isfile(os.path.join(git_dir, "HEAD")) and os.path.isdir(os.path.join(common_dir, "objects"))):
        raise _no_repository(root)
    return Repository(root, git_dir, common_dir)


def small_text(path: str) -> str:
    """The first bytes of a small regular file. What cannot be read is empty."""
    try:
        with open(path, "rb") as file:
            return file.read(POINTER_BYTES).decode(errors="replace")
    except OSError:
        return ""


def resolve(repository: Repository, name: str) -> str:
    """The hash that a branch, a remote's branch, a tag or a full hash stands for. Revision expressions are refused."""
    if _HASH.fullmatch(name):
        return name
    if len(name) <= 250 and not _NOT_A_NAME.search(name):
        for ref in (f"refs/heads/{name}", f"refs/remotes/{name}", f"refs/remotes/origin/{name}", f"refs/tags/{name}"):
            if found := ask(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", ref):
                return found
    raise ValidationFailed(
        f"there is no branch {name[:100]!r} in {repository.folder}", hint="name a branch that exists there"
    )


def head(repository: Repository) -> str:
    """The commit that is checked out."""
    found = ask(repository, "rev-parse", "--verify", "--quiet", "HEAD")
    if not found:
        raise ValidationFailed(f"{repository.folder} has no commit yet", hint="commit the work first")
    return found


def ask(repository: Repository, *arguments: str) -> str:
    """One line about the names in the repository itself, or nothing. Only for commands that open no object."""
    answer = run_git(arguments, {"GIT_DIR": repository.git_dir}, repository.git_dir, accept=(0, 1, 128))
    return answer.decode(errors="replace").strip()


@contextmanager
def borrowed(repository: Repository, at: str) -> Generator["Borrowed"]:
    """A git folder of our own, gone afterwards, with the repository's objects and `at` checked out in it."""
    with tempfile.TemporaryDirectory(prefix="rookery-git-") as folder:
        own = Path(folder)
        (own / "refs").mkdir()
        (own / "info").mkdir()
        (own / "HEAD").write_text(f"{at}\n")
        sha256 = "\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
        (own / "config").write_text("[core]\n" + (sha256 if len(at) > 40 else "\trepositoryformatversion = 0\n"))
        yield Borrowed(repository, own)


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Runs git on the repository's objects and on nothing else of it."""

    repository: Repository
    own: Path

    def objects(self, *arguments: str, limit: int = ANSWER_BYTES, accept: tuple[int, ...] = (0,)) -> bytes:
        """What git says of commits and trees."""
        return run_git(arguments, self._environment(), str(self.own), limit=limit, accept=accept, bare=True)

    def working_tree(self, *arguments: str) -> bytes:
        """What git says of the files in the folder, compared with its index. The index is read and never written."""
        real = self.repository
        for name in os.listdir(real.git_dir):
            if name.startswith("sharedindex."):
                (self.own / name).symlink_to(os.path.join(real.git_dir, name))
        exclude = os.path.join(real.common_dir, "info", "exclude")
        if os.path.isfile(exclude):
            (self.own / "info" / "exclude").symlink_to(exclude)
        environment = self._environment() | {
            "GIT_WORK_TREE": real.folder,
            "GIT_INDEX_FILE": os.path.join(real.git_dir, "index"),
        }
        return run_git((*self._settings(), *arguments), environment, real.folder)

    def _environment(self) -> dict[str, str]:
        return {"GIT_DIR": str(self.own), "GIT_OBJECT_DIRECTORY": self.repository.objects}

    def _settings(self) -> list[str]:
        found = run_git(
            ("config", "--null", "--get-regexp", _HARMLESS),
            {"GIT_DIR": self.repository.git_dir},
            self.repository.git_dir,
            accept=(0, 1, 128),
        )
        pairs = [entry.split("\n", 1) for entry in found.decode(errors="replace").split("\0") if "\n" in entry]
        return [part for key, value in pairs for part in ("-c", f"{key}={value}")]


def run_git(
    arguments: tuple[str, ...],
    environment: dict[str, str],
    folder: str,
    *,
    limit: int = ANSWER_BYTES,
    accept: tuple[int, ...] = (0,),
    bare: bool = False,
) -> bytes:
    """What git prints. More than `limit` bytes, more than half a minute, and any other outcome are refused."""
    command = ["git", *(("--bare",) if bare else ()), "--no-pager", *_NO_PROGRAMS, *arguments]
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=_clean_environment() | environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
            )
        except FileNotFoundError:
            raise ServiceUnavailable("git is not installed here", hint="install git where the server runs") from None
        answer, in_time = _read(process, limit)
        if not in_time:
            raise TimedOut(f"git needed more than {TIMEOUT_S:g} s", hint="try again when the machine is less busy")
        if len(answer) > limit:
            raise ValidationFailed(f"git's answer is larger than {limit:,} bytes", hint="split the change")
        if process.returncode not in accept:
            raise ValidationFailed(
                f"git {_verb(arguments)} failed: {_last_line(complaints)}", hint="check the worktree"
            )
    return answer


_NO_PROGRAMS = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "core.commitGraph=false"),
    *("-c", "protocol.allow=never"),
)


def _read(process: "subprocess.Popen[bytes]", limit: int) -> tuple[bytes, bool]:
    late = threading.Event()

    def stop() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(TIMEOUT_S, stop)
    timer.daemon = True
    timer.start()
    with process:
        assert process.stdout is not None
        answer = process.stdout.read(limit + 1)
        if len(answer) > limit:
            process.kill()
        process.wait()
    timer.cancel()
    return answer, not late.is_set()


def _clean_environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR") if name in os.environ}
    return kept | {
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": os.devnull,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _verb(arguments: tuple[str, ...]) -> str:
    words = iter(arguments)
    for word in words:
        if word != "-c":
            return word
        next(words, None)
    return ""


def _last_line(complaints: IO[bytes]) -> str:
    complaints.seek(0)
    lines = complaints.read(POINTER_BYTES).decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "no reason given"


def _no_repository(folder: str) -> ValidationFailed:
    return ValidationFailed(f"{folder} is not the root of a git working tree", hint="use the issue's worktree")
