"""`rookery up`, in a process of its own."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from rookery.relay import socket_path
from tests.cli.terminal import LIMIT_S, Terminal

Start = Callable[..., "Running"]


class Running:
    """A server that was started and has said where it listens."""

    def __init__(self, terminal: Terminal, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rookery.entry", "up", *options],
            env=terminal.full_environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.lines: list[str] = []
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if line.strip().startswith("stop"):
                break

    @property
    def port(self) -> int:
        return int(self.lines[0].rpartition(":")[2])

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        with contextlib.suppress(ValueError):
            self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode


@pytest.fixture
def start(terminal: Terminal) -> Iterator[Start]:
    """Starts servers on the terminal's home; those still running are ended after the test."""
    started: list[Running] = []

    def begin(*options: str) -> Running:
        started.append(Running(terminal, *options))
        return started[-1]

    yield begin
    for running in started:
        if running.process.poll() is None:
            running.end(signal.SIGKILL)


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_server_says_where_it_is_and_how_to_connect_and_stop(terminal: Terminal, start: Start) -> None:
    running = start("--port", "0")
    said = "\n".join(running.lines)
    assert running.lines[0] == f"Rookery listens on http://127.0.0.1:{running.port}"
    assert str(terminal.home) in said
    assert f"ROOKERY_HOME={terminal.home} rookery connect claude" in said
    assert "Ctrl-C" in said
    with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/healthz", timeout=LIMIT_S) as answer:
        assert json.load(answer) == {"status": "ok"}
    found = {each["check"]: each for each in terminal.json("doctor", "--json")}
    assert "A server answers" in found["socket"]["sentence"]
    terminal.environ["PORT"] = str(running.port)
    found = {each["check"]: each for each in terminal.json("doctor", "--json")}
    assert "held by the server of this home" in found["port"]["sentence"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_stopped_leaves_no_socket_behind(
    terminal: Terminal, start: Start, how: signal.Signals
) -> None:
    running = start("--port", "0")
    path = socket_path(str(terminal.home))
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(path)
    assert running.end(how) == 0
    with socket.socket(socket.AF_UNIX) as caller, pytest.raises(FileNotFoundError):
        caller.connect(path)


def test_a_second_server_and_a_restore_are_refused_on_one_home(terminal: Terminal, start: Start) -> None:
    running = start("--port", "0")
    told = terminal.process_fails("up", "--port", "0")
    assert f"a server is already running on {terminal.home} (process {running.process.pid})" in told
    assert "ROOKERY_HOME" in told
    saved = terminal.ok("backup").strip()
    assert "a server is already running" in terminal.fails("restore", saved)
    assert running.process.poll() is None


def test_a_busy_port_is_named_with_the_flag_that_changes_it(terminal: Terminal, busy_port: int) -> None:
    sentence, hint = terminal.process_fails("up", "--port", str(busy_port)).splitlines()
    assert f"port {busy_port} on 127.0.0.1 cannot be used" in sentence
    assert f"--port {busy_port + 1}" in hint
    assert f"PORT={busy_port + 1}" in hint


def test_the_port_of_the_environment_is_honoured(terminal: Terminal, busy_port: int) -> None:
    terminal.environ["PORT"] = str(busy_port)
    assert f"port {busy_port} on" in terminal.process_fails("up")


@pytest.mark.parametrize(("name", "value"), [("PORT", "high"), ("PORT", "70000"), ("ROOKERY_LOG_LEVEL", "loud")])
def test_a_wrong_setting_is_one_sentence_that_names_it(terminal: Terminal, name: str, value: str) -> None:
    terminal.environ[name] = value
    sentence, hint = terminal.fails("up").splitlines()
    assert sentence == f"rookery: {name} cannot be {value!r}"
    assert hint


def test_a_platform_that_cannot_be_made_is_one_sentence(terminal: Terminal) -> None:
    terminal.home.mkdir()
    terminal.database.write_text("no database " * 1000)
    assert terminal.process_fails("up", "--port", "0").splitlines() == [
        "rookery: the database failed: file is not a database",
        "  rookery doctor looks at it",
    ]
