"""Whether an agent is where its issue's work happens, and what git says of the work there."""

import errno
import json
import os
import re
import secrets
import shlex
import stat
from dataclasses import dataclass
from typing import Any, cast

from rookery.core.admission import storable
from rookery.core.errors import Conflict, ValidationFailed
from rookery.domains.tracker.file_kinds import is_generated, is_source, is_test
from rookery.files.git import Borrowed, Repository, ask, borrowed, head, open_repository, resolve

MARKER = ".symphony-worktree"
MARKER_BYTES = 4_096
DIFF_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class Marker:
    """What the marker file says of its worktree. An empty `issue_id` or `branch` is not known."""

    issue: str
    issue_id: str = ""
    branch: str = ""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A worktree that was found to be the issue's own."""

    path: str
    issue: str
    branch: str


def write_marker(folder: str, marker: Marker) -> None:
    """Mark a worktree as the issue's, replacing any older marker at once, and keep git from ever adding the file."""
    root = os.path.realpath(folder)
    text = json.dumps({"issue": marker.issue, "issue_id": marker.issue_id, "branch": marker.branch}) + "\n"
    temporary = os.path.join(root, f"{MARKER}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, os.path.join(root, MARKER))
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise
    if os.path.lexists(os.path.join(root, ".git")):
        _exclude(open_repository(root))


def verify_worktree(worktree: str | None, cwd: str | None, identifier: str, issue_id: str) -> Workspace:
    """The bound worktree, if it exists, the agent is in it and its marker is the issue's; else a Conflict that says how
    to get back."""
    if not worktree or not os.path.isabs(worktree):
        raise Conflict(
            f"No worktree is bound for {identifier}. Recovery: start with --worktree-path.",
            hint=f"start the server with --worktree-path and the folder of {identifier}",
        )
    root = os.path.realpath(worktree)
    if not os.path.isdir(root):
        raise Conflict(
            f"The worktree {worktree} does not exist any more. Recovery: stop; it has to be made again.",
            hint=f"tell a person, or let the orchestrator make the worktree of {identifier} again",
        )
    if cwd is not None and not _inside(os.path.realpath(cwd), root):
        raise _escaped(os.path.realpath(cwd), root, identifier)
    marker = _read_marker(root, identifier)
    if not _same(marker.issue, identifier) or marker.issue_id not in ("", issue_id):
        raise Conflict(
            f"The worktree {root} belongs to {marker.issue}, not to {identifier}. Recovery: work only in the worktree "
            f"of {identifier}.",
            hint="start with the --worktree-path of the bound issue",
        )
    return Workspace(root, identifier, marker.branch or branch_named(root) or "")


def branch_named(folder: str) -> str | None:
    """The branch that HEAD names, read without running git. None: detached, or no repository."""
    try:
        repository = open_repository(folder)
        with open(os.path.join(repository.git_dir, "HEAD"), encoding="utf-8") as file:
            line = file.read(MARKER_BYTES).strip()
    except (OSError, UnicodeError, ValidationFailed):
        return None
    return line.removeprefix("ref: refs/heads/") if line.startswith("ref: refs/heads/") else None


def head_of(folder: str) -> str:
    """The hash of the commit that is checked out."""
    return head(open_repository(folder))


def branch_of(folder: str) -> str | None:
    """The branch that is checked out, or None when HEAD is detached."""
    return ask(open_repository(folder), "symbolic-ref", "--quiet", "--short", "HEAD") or None


def same_repository(one: str, other: str) -> bool:
    """Whether two working trees share one repository, so that the commits of one are commits of the other."""
    return open_repository(one).common_dir == open_repository(other).common_dir


def commits_ahead(folder: str, base: str) -> int:
    """How many commits HEAD has that `base` (a branch or a full hash) has not."""
    repository = open_repository(folder)
    tip = head(repository)
    with borrowed(repository, tip) as git:
        return int(git.objects("rev-list", "--count", f"{resolve(repository, base)}..{tip}", "--"))


def diff_against(folder: str, base: str) -> str:
    """What was committed since the branch left `base`, as a unified diff with renames; more than 5 MB is refused.

    What the repository's attributes say of how to show a file does not count: a text cannot be hidden as binary.
    """
    repository = open_repository(folder)
    tip = head(repository)
    with borrowed(repository, tip) as git:
        return diff_between(git, repository, base, tip)


def diff_between(git: Borrowed, repository: Repository, base: str, tip: str) -> str:
    """The same for any commit."""
    start = _merge_base(git, repository, base, tip)
    text = git.objects(*_COMPARE, "--patch", "--full-index", start, tip, "--", limit=DIFF_BYTES)
    # Git takes a file with a NUL beyond its first 8,000 bytes for text; no database does.
    return text.decode(errors="replace").replace("\0", "\ufffd")


def is_clean(folder: str) -> bool:
    """Whether everything in the working tree is committed or ignored. The marker does not count."""
    repository = open_repository(folder)
    with borrowed(repository, head(repository)) as git:
        return not git.working_tree(
            *("status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty"),
            *("--no-renames", "--", ".", f":(exclude,top){MARKER}"),
        )


def changed_lines(folder: str, base: str) -> dict[str, int]:
    """Added and deleted lines of each file since the branch left `base`, by new path; a binary file counts 0."""
    repository = open_repository(folder)
    tip = head(repository)
    with borrowed(repository, tip) as git:
        start = _merge_base(git, repository, base, tip)
        fields = git.objects(*_COMPARE, "--numstat", "-z", start, tip, "--", limit=DIFF_BYTES).split(b"\0")
    return _numstat([field.decode(errors="replace") for field in fields])


def changed_source_lines(folder: str, base: str) -> int:
    """How many of those lines are code: in no test, nothing generated and no prose."""
    lines = changed_lines(folder, base)
    return sum(n for path, n in lines.items() if is_source(path) and not is_test(path) and not is_generated(path))


_COMPARE = ("diff-tree", "-r", "--find-renames", "--no-ext-diff", "--no-textconv", "--no-color")


def _merge_base(git: Borrowed, repository: Repository, base: str, tip: str) -> str:
    found = git.objects("merge-base", resolve(repository, base), tip, accept=(0, 1)).decode().strip()
    if not found:
        raise ValidationFailed(
            f"what is checked out in {repository.folder} has no commit in common with {base}",
            hint=f"start the branch from {base}",
        )
    return found


def _numstat(fields: list[str]) -> dict[str, int]:
    lines: dict[str, int] = {}
    rest = iter(fields)
    for field in rest:
        if field.count("\t") < 2:
            continue
        added, deleted, path = field.split("\t", 2)
        if not path:
            next(rest, None)
            path = next(rest, "")
        lines[path] = sum(int(number) for number in (added, deleted) if number.isdigit())
    return lines


def _exclude(repository: Repository) -> None:
    folder = os.path.join(repository.common_dir, "info")
    os.makedirs(folder, exist_ok=True)
    # Following a link here would let an agent choose the file that the line is written to.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(os.path.join(folder, "exclude"), flags, 0o644), "r+b") as file:
        text = file.read()
        line = f"/{MARKER}".encode()
        if line not in text.splitlines():
            file.write((b"" if not text or text.endswith(b"\n") else b"\n") + line + b"\n")


def _read_marker(root: str, identifier: str) -> Marker:
    path = os.path.join(root, MARKER)
    again = "Recovery: stop; the marker is written when the worktree is made, and has to be written again."
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _unusable(f"Worktree marker file not found at {path}. {again}", identifier) from None
    except OSError as error:
        why = "is a symbolic link" if error.errno == errno.ELOOP else "cannot be read"
        raise _unusable(f"The worktree marker file {path} {why}. {again}", identifier) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _unusable(f"The worktree marker file {path} is not a regular file. {again}", identifier)
        content = os.read(descriptor, MARKER_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MARKER_BYTES:
        raise _unusable(f"The worktree marker file {path} is larger than {MARKER_BYTES:,} bytes. {again}", identifier)
    marker = _parse(content)
    if marker is None:
        raise _unusable(f"The worktree marker file {path} names no issue. {again}", identifier)
    return marker


def _parse(content: bytes) -> Marker | None:
    text = content.decode(errors="replace").strip()
    if not text.startswith("{"):
        words = text.split()
        return Marker(words[0][:200]) if words else None
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    values = cast(dict[str, Any], found)
    issue, issue_id, branch = (values.get(key, "") for key in ("issue", "issue_id", "branch"))
    if not (isinstance(issue, str) and issue and isinstance(issue_id, str) and isinstance(branch, str)):
        return None
    # JSON can say half of a surrogate pair, which no answer can.
    if not storable(issue + issue_id + branch):
        return None
    return Marker(issue[:200], issue_id, branch)


def _same(one: str, other: str) -> bool:
    return _number(one) == _number(other)


def _number(identifier: str) -> tuple[str, int | None]:
    parts = re.fullmatch(r"(.+)-([0-9]{1,18})", identifier, re.DOTALL)
    return (parts[1].casefold(), int(parts[2])) if parts else (identifier.casefold(), None)


def _inside(path: str, root: str) -> bool:
    return os.path.commonpath([path, root]) == root


def _escaped(cwd: str, root: str, identifier: str) -> Conflict:
    back = f"Recovery: run `cd {shlex.quote(root)}` to return to your worktree."
    try:
        there = _read_marker(cwd, identifier).issue
    except Conflict:
        return Conflict(f"Worktree marker file not found at {os.path.join(cwd, MARKER)}. {back}", hint=f"cd {root}")
    return Conflict(
        f"You are in {cwd}, the worktree of {there}, not in that of {identifier}. {back}", hint=f"cd {root}"
    )


def _unusable(message: str, identifier: str) -> Conflict:
    return Conflict(message, hint=f"tell a person, or let the orchestrator prepare the worktree of {identifier} again")
