"""A look at a folder that is to become a project: whether agents can work there, and what it is tested with."""

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from typing import Any, cast

from pydantic import Field

from rookery.core.tool import ToolOutput

LIMIT_S = 10
READ_BYTES = 1 << 20


class SuggestedGate(ToolOutput):
    """A command that the repository seems to be tested or checked with, and from which file that is known."""

    label: str
    command: str
    required: bool
    because: str


class RepositoryLook(ToolOutput):
    """What is in the folder. `problem` is empty if agents can work there; `remedy` is what to do about it."""

    path: str
    problem: str = ""
    remedy: str = ""
    branch: str | None = None
    commits: int = 0
    changed_files: int = 0
    gates: list[SuggestedGate] = Field(default_factory=list[SuggestedGate])


def look_at(path: str) -> RepositoryLook:
    """Look, and change nothing."""
    if not os.path.isdir(path):
        there = os.path.exists(path)
        return RepositoryLook(
            path=path,
            problem=f"{path} is a file, not a folder" if there else f"there is no folder {path} on the server",
            remedy="give the folder that has the repository in it",
        )
    top, said = _git(path, "rev-parse", "--show-toplevel")
    if top is None:
        return _no_repository(path, said)
    if os.path.realpath(top) != os.path.realpath(path):
        return RepositoryLook(path=path, problem=f"this is a part of the repository {top}", remedy=f"give {top}")
    commits, _ = _git(path, "rev-list", "--count", "HEAD")
    if commits is None:
        remedy = f"git -C {path} add --all && git -C {path} commit -m 'Begin'"
        return RepositoryLook(path=path, problem="the repository has no commit yet", remedy=remedy)
    branch, _ = _git(path, "symbolic-ref", "--short", "-q", "HEAD")
    changed, _ = _git(path, "status", "--porcelain", "--untracked-files=no")
    return RepositoryLook(
        path=path,
        branch=branch or None,
        commits=int(commits),
        changed_files=len((changed or "").splitlines()),
        gates=list(suggested_gates(path)),
    )


def suggested_gates(path: str) -> Iterator[SuggestedGate]:
    """What the files at the top of a repository say about how it is tested, linted and built."""
    for found in (_makefile, _python, _node, _cargo, _go):
        yield from found(path)


def _no_repository(path: str, said: str) -> RepositoryLook:
    if "dubious ownership" in said:
        return RepositoryLook(
            path=path,
            problem="the repository belongs to another user, so git does not touch it",
            remedy=f"git config --global --add safe.directory {path}",
        )
    if "git is not installed" in said:
        return RepositoryLook(path=path, problem=said, remedy="install git on the server")
    return RepositoryLook(
        path=path,
        problem=f"{path} is not a git repository",
        remedy=f"git -C {path} init, then commit what is there",
    )


def _git(path: str, *words: str) -> tuple[str | None, str]:
    """What git says, or None and why not."""
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    command = ("git", "-c", "core.fsmonitor=false", "-C", path, *words)
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False
        )
    except FileNotFoundError:
        return None, "git is not installed"
    except subprocess.TimeoutExpired:
        return None, "git did not answer in time"
    return (done.stdout.strip(), "") if done.returncode == 0 else (None, done.stderr)


def _text(path: str, name: str) -> str:
    """The beginning of a file; empty if it cannot be read."""
    try:
        with open(os.path.join(path, name), "rb") as file:
            return file.read(READ_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _makefile(path: str) -> Iterator[SuggestedGate]:
    text = _text(path, "Makefile") or _text(path, "makefile")
    for target in ("test", "check", "lint"):
        if re.search(rf"^{target}\s*:(?!=)", text, re.M):
            yield SuggestedGate(
                label=target, command=f"make {target}", required=target != "lint", because=f"{target} in the Makefile"
            )


def _python(path: str) -> Iterator[SuggestedGate]:
    try:
        project = tomllib.loads(_text(path, "pyproject.toml"))
    except tomllib.TOMLDecodeError:
        project = {}
    tools = cast("dict[str, Any]", project.get("tool") or {})
    if "pytest" in tools or os.path.exists(os.path.join(path, "pytest.ini")) or "pytest" in json.dumps(project):
        yield SuggestedGate(label="tests", command="python -m pytest -q", required=True, because="pytest is set up")
    elif project and os.path.isdir(os.path.join(path, "tests")):
        yield SuggestedGate(
            label="tests", command="python -m unittest discover", required=True, because="pyproject.toml and tests"
        )
    if "ruff" in tools:
        yield SuggestedGate(label="lint", command="ruff check .", required=False, because="ruff in pyproject.toml")


def _node(path: str) -> Iterator[SuggestedGate]:
    try:
        package: Any = json.loads(_text(path, "package.json") or "{}")
    except ValueError:
        return
    scripts: Any = cast("dict[str, Any]", package).get("scripts") if isinstance(package, dict) else None
    if not isinstance(scripts, dict):
        return
    runner = next(
        (name for name, lock in _LOCKS.items() if os.path.exists(os.path.join(path, lock))),
        "npm",
    )
    for script in ("test", "lint", "typecheck"):
        line = str(cast("dict[str, Any]", scripts).get(script, ""))
        if line and "no test specified" not in line:
            command = f"{runner} run {script}"
            yield SuggestedGate(
                label=script, command=command, required=script != "lint", because=f"{script} in package.json"
            )


_LOCKS = {"pnpm": "pnpm-lock.yaml", "yarn": "yarn.lock", "bun": "bun.lock"}


def _cargo(path: str) -> Iterator[SuggestedGate]:
    if os.path.exists(os.path.join(path, "Cargo.toml")):
        yield SuggestedGate(label="tests", command="cargo test", required=True, because="Cargo.toml")
        yield SuggestedGate(label="lint", command="cargo clippy -- -D warnings", required=False, because="Cargo.toml")


def _go(path: str) -> Iterator[SuggestedGate]:
    if os.path.exists(os.path.join(path, "go.mod")):
        yield SuggestedGate(label="tests", command="go test ./...", required=True, because="go.mod")
        yield SuggestedGate(label="vet", command="go vet ./...", required=False, because="go.mod")
