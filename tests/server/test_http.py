"""The HTTP door of `rookery up`, in a process of its own, and how that process ends."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rookery import __version__
from rookery.relay import socket_path
from tests.server.conftest import Place
from tests.server.processes import PATIENCE_S, Process

END_S = 3


class Up(Process):
    """`rookery up` as a person types it, ready when this returns."""

    def __init__(self, place: Place) -> None:
        command = [sys.executable, "-m", "rookery.entry", "up"]
        super().__init__(command, place.home / "up.log", place.environment(), place.home)
        announced = self.lines.raw()
        assert announced, self.errors
        found = re.fullmatch(rb"Rookery listens on http://127\.0\.0\.1:(\d+)", announced.strip())
        assert found, announced
        self.port = int(found[1])

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def ask(self, path: str, method: str = "GET") -> tuple[int, dict[str, str], str]:
        """The status, the headers in lower case, and the body."""
        connection = self.connect()
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, headers, answer.read().decode()
        finally:
            connection.close()


@pytest.fixture
def up(place: Place) -> Iterator[Up]:
    """A server of the test's own, without plugins."""
    place.plugin = None
    running = Up(place)
    yield running
    running.close()


@pytest.fixture(scope="module")
def living(plugin: Path) -> Iterator[tuple[Place, Up]]:
    """A server for the tests that only look."""
    place = Place(plugin)
    place.plugin = None
    try:
        running = Up(place)
        yield place, running
        running.close()
    finally:
        place.close()


def test_health_is_a_word(living: tuple[Place, Up]) -> None:
    status, headers, body = living[1].ask("/healthz")
    assert (status, json.loads(body)) == (200, {"status": "ok"})
    assert headers["content-type"] == "application/json"


def test_whoever_comes_without_a_session_is_told_how_to_sign_in_and_nothing_else(living: tuple[Place, Up]) -> None:
    status, headers, body = living[1].ask("/")
    assert (status, headers["location"], body) == (303, "/sign-in", "")
    status, headers, body = living[1].ask("/sign-in")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "rookery login" in body
    assert __version__ not in body


def test_the_page_loads_nothing_of_others_and_cannot_be_framed(living: tuple[Place, Up]) -> None:
    _, headers, body = living[1].ask("/sign-in")
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert (policy["default-src"], policy["script-src"], policy["style-src"]) == ("'none'", "'self'", "'self'")
    assert policy["frame-ancestors"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert re.findall(r"""(?:https?:)//[^\s"'<]+|@import|url\(|\bon[a-z]+=|\bstyle=""", body) == []


def test_the_metrics_tell_of_the_calls_of_other_doors(living: tuple[Place, Up]) -> None:
    place, running = living
    assert place.session().call("ping")["status"] == "pong"
    status, headers, body = running.ask("/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'mcp_tool_calls_total{tool="ping",success="true"} 1' in body.splitlines()


@pytest.mark.parametrize("path", ["/nope", "/healthz/more", "/../etc/passwd", "/%2e%2e/rookery.db", "/" + "x" * 5000])
def test_an_unknown_path_is_not_found(living: tuple[Place, Up], path: str) -> None:
    status, _, body = living[1].ask(path)
    assert status == 404
    assert len(body) < 100


@pytest.mark.parametrize("path", ["/sign-in", "/healthz", "/metrics"])
def test_every_page_is_only_for_reading(living: tuple[Place, Up], path: str) -> None:
    assert living[1].ask(path, "POST")[0] == 405
    assert living[1].ask(path, "HEAD")[0] == 200


def test_a_request_that_makes_no_sense_is_answered_and_the_next_one_served(living: tuple[Place, Up]) -> None:
    for nonsense in (b"\x00\xff\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /\r\n\r\n", b"\r\n" * 100):
        with socket.create_connection(("127.0.0.1", living[1].port), PATIENCE_S) as caller:
            caller.sendall(nonsense)
            caller.shutdown(socket.SHUT_WR)
            assert b" 500 " not in caller.recv(1000)
    assert living[1].ask("/healthz")[0] == 200


def test_no_answer_names_the_software_below(living: tuple[Place, Up]) -> None:
    for path in ("/", "/healthz", "/nope"):
        assert "server" not in living[1].ask(path)[1]


def test_the_server_knows_its_real_port(living: tuple[Place, Up]) -> None:
    place, running = living
    told = place.session().call("get_server_info")
    assert (told["product"], told["version"], told["port"]) == ("Rookery", __version__, running.port)


def test_what_it_keeps_is_for_its_owner_only(living: tuple[Place, Up]) -> None:
    home = living[0].home
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "logs").stat().st_mode & 0o777 == 0o700
    assert (home / "logs" / "rookery.log").is_file()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_soon_and_cleanly_though_clients_are_connected(
    place: Place, up: Up, how: signal.Signals
) -> None:
    session, idle, unfinished = place.session(), up.connect(), socket.create_connection(("127.0.0.1", up.port))
    try:
        idle.request("GET", "/healthz")
        idle.getresponse().read()
        unfinished.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        path = Path(socket_path(str(place.home)))
        assert path.is_socket()
        began = time.monotonic()
        up.process.send_signal(how)
        assert up.process.wait(PATIENCE_S) == 0
        assert time.monotonic() - began < END_S
        assert not path.exists()
        assert "Traceback" not in up.errors
        assert session.process.poll() is None
    finally:
        idle.close()
        unfinished.close()


def test_other_programs_find_the_port_of_the_running_server_and_no_other(place: Place, up: Up) -> None:
    def printed() -> subprocess.CompletedProcess[str]:
        words = f"connect claude --http --print --command {sys.executable}"
        command = [sys.executable, "-m", "rookery.entry", *words.split()]
        environ = {**place.environment(), "HOME": str(place.home)}
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    assert f"http://127.0.0.1:{up.port}/mcp" in printed().stdout
    kept = place.home / "port"
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == (str(up.port), 0o600)
    up.process.kill()
    up.process.wait(PATIENCE_S)
    assert kept.exists()
    assert "the settings leave the port open" in printed().stderr
