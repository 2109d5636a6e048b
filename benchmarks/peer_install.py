"""Puts the peers in place that are not among our own dependencies; a peer that cannot be had is left out."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.launch import HERE, ROOT, Program, peer

PACKAGES = ("fastmcp==4.1.2", "uvloop", "httptools")
JOB_PACKAGES = ("procrastinate==3.10.0", "psycopg[binary,pool]")
PEER_VENV = ROOT / ".venv-peers"
JOB_VENV = PEER_VENV / "jobs"
NODE_FOLDER = HERE / "node"
INSTALL_LIMIT_S = 240


class UnavailableError(Exception):
    """The peer cannot be had on this machine; the message says why."""


def run(*argv: str | Path, cwd: Path = ROOT) -> None:
    try:
        done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(str(error)) from error
    if done.returncode:
        raise UnavailableError((done.stderr or done.stdout).strip()[-300:])


def in_venv(folder: Path, packages: tuple[str, ...]) -> str:
    """The Python of a virtual environment with these packages, which is made at first use."""
    python = folder / "bin" / "python"
    installed = folder / " ".join(packages)
    if not installed.exists():
        run(sys.executable, "-m", "venv", folder)
        (folder / ".gitignore").write_text("*\n")
        run(python, "-m", "pip", "install", "--quiet", *packages)
        installed.touch()
    return str(python)


def fastmcp() -> tuple[str, ...]:
    """How the fastmcp peer is started."""
    return in_venv(PEER_VENV, PACKAGES), str(HERE / "peers" / "fastmcp_server.py")


def procrastinate() -> tuple[str, ...]:
    """The Python that has procrastinate."""
    return (in_venv(JOB_VENV, JOB_PACKAGES),)


def node(script: str) -> tuple[str, ...]:
    """How a TypeScript SDK peer is started; its packages are installed at first use."""
    runtime, npm = shutil.which("node"), shutil.which("npm")
    if runtime is None or npm is None:
        raise UnavailableError("there is no node and npm on this machine")
    wanted = json.loads((NODE_FOLDER / "package.json").read_text())["dependencies"]
    if not all((NODE_FOLDER / "node_modules" / name).exists() for name in wanted):
        run(npm, "install", "--no-package-lock", "--no-audit", "--no-fund", cwd=NODE_FOLDER)
    return runtime, str(NODE_FOLDER / script)


def node_stdio() -> tuple[str, ...]:
    return node("server.mjs")


def node_http() -> tuple[str, ...]:
    return node("http_server.mjs")


def commands(builders: dict[str, Callable[[], tuple[str, ...]]]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """The peers that can be started, by name, and why others cannot."""
    found: dict[str, tuple[str, ...]] = {}
    skipped: list[str] = []
    for name, build in builders.items():
        try:
            found[name] = build()
        except UnavailableError as reason:
            skipped.append(f"{name}: {reason}")
    return found, skipped


def others(tools: int) -> tuple[list[Program], list[str]]:
    """The stdio peers that are there for information, and why others are not."""
    found, skipped = commands({"fastmcp": fastmcp, "node": node_stdio})
    return [peer(name, *argv, str(tools)) for name, argv in found.items()], skipped
