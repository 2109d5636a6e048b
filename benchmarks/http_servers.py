"""Starts the HTTP servers under test: Rookery with a token, and the peers with the same settings."""

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from benchmarks.http_wire import Endpoint
from benchmarks.launch import FALLBACK_TOOLS, HERE, START_LIMIT_S, Rookery, clean_env, free_port, stop
from benchmarks.peer_install import commands, fastmcp, node_http
from benchmarks.raw_client import MeasureError, last_words

OURS, BARE, FASTMCP, FLOOR = "Rookery", "bare SDK", "fastmcp", "ASGI floor"
AGENT = "bench"


@dataclass(frozen=True)
class Mode:
    """How a server answers, and whether it keeps sessions for clients of the handshake era."""

    answers: str
    sessions: str

    def settings(self) -> dict[str, str]:
        return {"ROOKERY_HTTP_ANSWERS": self.answers, "ROOKERY_HTTP_SESSIONS": self.sessions}


@contextmanager
def our_server(rookery: Rookery, name: str, mode: Mode, extra: Mapping[str, str]) -> Iterator[Endpoint]:
    """`rookery up` and the token of an agent that has the permissions that every agent has."""
    with rookery.up(mode.settings() | {"ROOKERY_AUTH_MODE": "local", **extra}) as server:
        rookery.say(server.home, "agents", "create", AGENT)
        token = rookery.say(server.home, "token", "create", AGENT, "--agent", AGENT)
        yield Endpoint(name, server.pid, server.port, token)


@contextmanager
def peer_server(name: str, argv: tuple[str, ...], mode: Mode) -> Iterator[Endpoint]:
    """A peer on a port of its own, once it answers there."""
    port = free_port()
    command = [*argv, str(FALLBACK_TOOLS), str(port), mode.answers, mode.sessions]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env=clean_env({}), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            if not opens(process, port):
                log.seek(0)
                raise MeasureError(f"{name} does not start: {last_words(log.read().decode(errors='replace'))}")
            yield Endpoint(name, process.pid, port)
        finally:
            stop(process)


def opens(process: subprocess.Popen[bytes], port: int) -> bool:
    """Whether something listens on the port before the process ends or the time is up."""
    end = time.monotonic() + START_LIMIT_S
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        time.sleep(0.05)
    return False


def python_peer(rookery: Rookery, script: str) -> tuple[str, ...]:
    return rookery.python, str(HERE / "peers" / script)


def peer_commands(rookery: Rookery) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """How each peer is started, and why others are missing."""
    found, skipped = commands({FASTMCP: fastmcp, "node": node_http})
    ours = {BARE: python_peer(rookery, "bare_sdk.py"), FLOOR: python_peer(rookery, "asgi_floor.py")}
    return ours | found, skipped


def start_peers(
    peers: Mapping[str, tuple[str, ...]], mode: Mode, stack: ExitStack, problems: list[str]
) -> dict[str, Endpoint]:
    """Those that start; the others are problems."""
    started: dict[str, Endpoint] = {}
    for name, argv in peers.items():
        try:
            started[name] = stack.enter_context(peer_server(name, argv, mode))
        except (MeasureError, OSError) as error:
            problems.append(str(error))
    return started


def start_ours(
    rookery: Rookery, mode: Mode, variants: Mapping[str, Mapping[str, str]], stack: ExitStack, problems: list[str]
) -> dict[str, Endpoint]:
    """A server for each variant: its name, and what its environment has in addition."""
    started: dict[str, Endpoint] = {}
    for name, extra in variants.items():
        try:
            started[name] = stack.enter_context(our_server(rookery, name, mode, extra))
        except (MeasureError, OSError, subprocess.TimeoutExpired) as error:
            problems.append(f"{name}, {mode.sessions} {mode.answers}: {error}")
    return started
