"""Puts the peers in place that are not among our own dependencies; a peer that cannot be had is left out."""

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.launch import HERE, ROOT, Program, peer

FASTMCP = "fastmcp==4.1.2"
PEER_VENV = ROOT / ".venv-peers"
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


def fastmcp(tools: int) -> Program:
    """The fastmcp peer; its virtual environment is made at first use."""
    python = PEER_VENV / "bin" / "python"
    installed = PEER_VENV / FASTMCP
    if not installed.exists():
        run(sys.executable, "-m", "venv", PEER_VENV)
        (PEER_VENV / ".gitignore").write_text("*\n")
        run(python, "-m", "pip", "install", "--quiet", FASTMCP)
        installed.touch()
    return peer("fastmcp", python, HERE / "peers" / "fastmcp_server.py", str(tools))


def node(tools: int) -> Program:
    """The TypeScript SDK peer; its packages are installed at first use."""
    runtime, npm = shutil.which("node"), shutil.which("npm")
    if runtime is None or npm is None:
        raise UnavailableError("there is no node and npm on this machine")
    if not (NODE_FOLDER / "node_modules" / "@modelcontextprotocol" / "sdk").exists():
        run(npm, "install", "--no-package-lock", "--no-audit", "--no-fund", cwd=NODE_FOLDER)
    return peer("node", runtime, NODE_FOLDER / "server.mjs", str(tools))


def others(tools: int) -> tuple[list[Program], list[str]]:
    """The peers that are there for information, and why others are not."""
    found: list[Program] = []
    skipped: list[str] = []
    for name, build in (("fastmcp", fastmcp), ("node", node)):
        try:
            found.append(build(tools))
        except UnavailableError as reason:
            skipped.append(f"{name}: {reason}")
    return found, skipped
