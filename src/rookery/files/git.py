"""Asking git about a folder that an agent may have prepared: nothing that the agent wrote there is ever run.

Names are resolved in the repository itself. Everything that opens objects or the working tree runs with a git folder
of our own that only borrows the repository's objects, so that its config, hooks, filters, diff drivers, replaced
objects and lazy fetches have no say.
"""

import os
import re
import stat
import subprocess
import tempfile
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rookery.core.errors import ServiceUnavailable, TimedOut, ValidationFailed

TIMEOUT_S = 30.0
ANSWER_BYTES = 1_000_000
POINTER_BYTES = 4_096
LOCKED = ".lock': File exists."
"""How git's complaint ends when another git is at work, or died there."""
UNWRITTEN = ("error: unable to write", "error: unable to create file")
"""How it begins when a file of the working tree could not be written."""
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# What git itself refuses in a ref, and all of its revision syntax: a base is a name and never an expression.
_NOT_A_NAME = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|/\.|[/.]$|\.lock(?:/|$)|^@$")
# The only settings of the repository that decide whether an unchanged file looks changed; none of them names a program.
_HARMLESS = r"^core\.(filemode|symlinks|ignorecase|autocrlf|eol|precomposeunicode|excludesfile)$"
# What `git lfs install` writes. Such a command is run by a shell: another that only begins like it can do anything.
_LFS = {
    "clean": ("git-lfs clean -- %f",),
    "smudge": ("git-lfs smudge -- %f", "git-lfs smudge --skip -- %f"),
    "process": ("git-lfs filter-process", "git-lfs filter-process --skip"),
    "required": ("true", "false"),
}
_FILTERS = r"^filter\..*\."
# Settings that name programs which git-lfs would run.
_OF_LFS = (
    r"^(lfs\.(.*\.)?standalonetransferagent|lfs\.(customtransfer|extension)\..*"
    r"|core\.(sshcommand|askpass)|credential\.(.*\.)?helper)$"
)


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
    """The first bytes of a small regular file. What cannot be read, or is none, is empty."""
    try:
        # A pipe that somebody put there would be waited for.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(POINTER_BYTES).decode(errors="replace") if regular else ""
    except OSError:
        return ""


def is_hash(text: str) -> bool:
    """Whether it is a full hash of git's."""
    return _HASH.fullmatch(text) is not None


def resolve(repository: Repository, name: str) -> str:
    """The hash that a branch, a remote's branch, a tag or a full hash stands for. Revision expressions are refused."""
    if is_hash(name):
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
        for name in ("refs", "info"):
            os.mkdir(f"{folder}/{name}")
        _write_new(f"{folder}/HEAD", f"{at}\n")
        sha256 = "\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
        # Some versions of git read attributes from the commit that HEAD is at, which could hide a text as binary.
        _write_new(f"{folder}/info/attributes", "* !diff\n")
        _write_new(f"{folder}/config", "[core]\n" + (sha256 if len(at) > 40 else "\trepositoryformatversion = 0\n"))
        yield Borrowed(repository, Path(folder))


def _write_new(path: str, text: str) -> None:
    """Write a few bytes. A file of Python's, with its buffer and its encoder, costs several times as much."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Runs git on the repository's objects and on nothing else of it."""

    repository: Repository
    own: Path

    def objects(
        self,
        *arguments: str,
        limit: int = ANSWER_BYTES,
        accept: tuple[int, ...] = (0,),
        environment: Mapping[str, str] | None = None,
    ) -> bytes:
        """What git says of commits and trees, or which it makes."""
        there = {**(environment or {}), **self._environment()}
        return run_git(arguments, there, str(self.own), limit=limit, accept=accept, bare=True)

    def working_tree(self, *arguments: str, limit: int = ANSWER_BYTES) -> bytes:
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
        return run_git((*self._settings(), *arguments), environment, real.folder, limit=limit)

    def _environment(self) -> dict[str, str]:
        shallow = os.path.join(self.repository.common_dir, "shallow")
        # Where the history of a clone was cut off.
        cut = {"GIT_SHALLOW_FILE": shallow} if os.path.isfile(shallow) else {}
        return {"GIT_DIR": str(self.own), "GIT_OBJECT_DIRECTORY": self.repository.objects, **cut}

    def _settings(self) -> list[str]:
        found = _configured(self.repository, _HARMLESS, accept=(0, 1, 128))
        return [part for key, value in found for part in ("-c", f"{key}={value}")]


def without_filters(repository: Repository) -> list[tuple[str, str]]:
    """Settings with which git runs no filter that somebody put into the repository's config, but for git-lfs."""
    configured = _configured(repository, _FILTERS, accept=(0, 1))
    set_there = [(*key.removeprefix("filter.").rsplit(".", 1), value) for key, value in configured]
    names = {name for name, _, _ in set_there}
    as_installed = all(value in _LFS.get(what, ()) for name, what, value in set_there if name == "lfs")
    if as_installed and not _configured(repository, _OF_LFS, accept=(0, 1)):
        names.discard("lfs")
    off = (("smudge", ""), ("clean", ""), ("process", ""), ("required", "false"))
    return [(f"filter.{name}.{what}", value) for name in sorted(names) for what, value in off]


def as_environment(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Settings for one run of git. As an option a name with a "=" in it would be cut there."""
    numbered = enumerate(settings)
    pairs = ({f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value} for at, (key, value) in numbered)
    return {name: value for pair in pairs for name, value in pair.items()} | {"GIT_CONFIG_COUNT": str(len(settings))}


def _configured(repository: Repository, pattern: str, accept: tuple[int, ...]) -> list[tuple[str, str]]:
    words = ("config", "--null", "--get-regexp", pattern)
    there = {"GIT_DIR": repository.git_dir}
    told = run_git(words, there, repository.git_dir, accept=accept).decode(errors="surrogateescape")
    found = [entry.partition("\n") for entry in told.split("\0") if entry]
    # A name alone is as good as true.
    return [(key, value if line else "true") for key, line, value in found]


def run_git(
    arguments: tuple[str, ...],
    environment: dict[str, str],
    folder: str,
    *,
    limit: int = ANSWER_BYTES,
    accept: tuple[int, ...] = (0,),
    bare: bool = False,
    limit_s: float = TIMEOUT_S,
    holding: tuple[int, ...] = (),
) -> bytes:
    """What git prints. More than `limit` bytes, more than `limit_s`, and any other outcome are refused.

    `holding` are open files that git keeps open, such as a lock that has to outlive us as long as git does.
    """
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
                pass_fds=holding,
            )
        except FileNotFoundError as error:
            if error.filename == folder:
                raise ValidationFailed(f"{folder} does not exist any more", hint="check the worktree") from None
            raise ServiceUnavailable("git is not installed here", hint="install git where the server runs") from None
        answer, in_time = _read(process, limit, limit_s)
        if not in_time:
            raise TimedOut(f"git needed more than {limit_s:g} s", hint="try again when the machine is less busy")
        if len(answer) > limit:
            raise ValidationFailed(f"git's answer is larger than {limit:,} bytes", hint="split the change")
        if process.returncode not in accept:
            raise ValidationFailed(
                f"git {_verb(arguments)} failed: {_complaint(complaints)}", hint="check the worktree"
            )
    return answer


_NO_PROGRAMS = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "core.commitGraph=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
)


def _read(process: "subprocess.Popen[bytes]", limit: int, limit_s: float) -> tuple[bytes, bool]:
    late = threading.Event()

    def stop() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(limit_s, stop)
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
        # No protocol at all, whatever the repository allows.
        "GIT_ALLOW_PROTOCOL": "",
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


def _complaint(complaints: IO[bytes]) -> str:
    """The last line, or the one that names a lock or a file that could not be written: what follows says less."""
    complaints.seek(0)
    said = complaints.read(POINTER_BYTES).decode(errors="replace").strip().splitlines()
    lines = [line for line in said if not line.startswith("hint:")]
    telling = [line for line in lines if line.endswith(LOCKED) or line.startswith(UNWRITTEN)]
    return [*(lines or ["no reason given"]), *telling[:1]][-1][:600]


def _no_repository(folder: str) -> ValidationFailed:
    return ValidationFailed(f"{folder} is not the root of a git working tree", hint="use the issue's worktree")
