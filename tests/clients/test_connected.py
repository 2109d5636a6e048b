"""What `rookery connect claude` writes and prints makes Claude Code connect to a server that was started as usual."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.programs import LIMIT_S, Session, claude_environment, converse
from tests.clients.running import Home
from tests.clients.scripted_model import ScriptedModel, Use

ALLOWED = ("--tools", "", "--allowedTools", "mcp__rookery__*")


@pytest.fixture
def home() -> Iterator[Home]:
    """A server on a port that its settings name, as `make up` starts it."""
    made = Home()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        made.env["PORT"] = str(probe.getsockname()[1])
    try:
        made.up()
        yield made
    finally:
        made.close()


def rookery(home: Home, user: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Type a command in the shell in which `claude` will be typed as well."""
    env = {**claude_environment(user), "ROOKERY_HOME": str(home.folder)}
    command = [str(home.program()), *words, "--command", str(home.program())]
    return subprocess.run(command, env=env, cwd=user, capture_output=True, text=True, timeout=LIMIT_S)


def shell(user: Path, line: str) -> str:
    done = subprocess.run(
        ["/bin/sh", "-c", line], env=claude_environment(user), cwd=user, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def session(user: Path) -> Session:
    """A session of Claude Code with the servers of its own configuration."""
    with ScriptedModel(Use("mcp__rookery__ping", {})) as model:
        return converse(user, model, *ALLOWED)


def entry(user: Path) -> dict[str, object]:
    return json.loads((user / ".claude.json").read_text())["mcpServers"]["rookery"]


def works(user: Path) -> None:
    found = session(user)
    assert found.servers == {"rookery": "connected"}
    assert json.loads(found.said)["status"] == "pong"


@pytest.mark.parametrize("only_print", [False, True])
def test_the_line_for_http_that_the_plain_command_prints_works_as_it_is(
    home: Home, user: Path, only_print: bool
) -> None:
    told = rookery(home, user, "connect", "claude", *(["--print"] if only_print else []))
    assert told.returncode == 0, told.stderr
    [line] = [each for each in told.stderr.splitlines() if "HTTP instead" in each]
    shell(user, line[line.index("claude mcp") :])
    assert entry(user)["type"] == "http"
    assert "Connected" in shell(user, "claude mcp list")
    works(user)


def test_the_entry_for_http_that_is_written_works(home: Home, user: Path) -> None:
    done = rookery(home, user, "connect", "claude", "--http")
    assert done.returncode == 0, done.stderr
    assert entry(user)["url"] == f"http://127.0.0.1:{home.env['PORT']}/mcp"
    works(user)


def test_the_entry_for_stdio_that_is_written_works(home: Home, user: Path) -> None:
    done = rookery(home, user, "connect", "claude")
    assert done.returncode == 0, done.stderr
    assert entry(user)["type"] == "stdio"
    works(user)
