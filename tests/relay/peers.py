"""The two ends of a relay, held by the test: the client that started it and the server that it talks to."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

from rookery.relay import socket_path

SOURCE = Path(__file__).parents[2] / "src"
PATIENCE_S = 20.0
ENTRY = "from rookery.entry import main; main()"
# Stands in for the server in the relay's own process: says what it was given and ends.
DIRECT = (
    "import json, sys, types; here = types.ModuleType('rookery.server.stdio'); "
    "here.serve_direct = lambda flags: print(json.dumps({'direct': flags})) or 7; "
    "sys.modules['rookery.server.stdio'] = here; "
)


class Lines:
    """Reads whole lines of JSON from a descriptor, and never waits longer than the test's patience."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.buffer = bytearray()

    def fill(self) -> bool:
        """Read what is there; False at the end."""
        assert select.select([self.descriptor], [], [], PATIENCE_S)[0], (
            f"nothing came after {bytes(self.buffer[-200:])!r}"
        )
        chunk = os.read(self.descriptor, 1 << 20)
        self.buffer += chunk
        return bool(chunk)

    def raw(self) -> bytes:
        """The next line with its newline; what is left of one at the end; empty after that."""
        searched = 0
        while (end := self.buffer.find(b"\n", searched) + 1) == 0:
            searched = len(self.buffer)
            if not self.fill():
                end = len(self.buffer)
                break
        line = bytes(self.buffer[:end])
        del self.buffer[:end]
        return line

    def next(self) -> Any:
        return json.loads(self.raw())


class Connection:
    """One relay's session, seen from the server."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.lines = Lines(sock.fileno())

    def send(self, *messages: Any) -> None:
        for message in messages:
            line = (
                message if isinstance(message, bytes) else json.dumps(message, separators=(",", ":")).encode() + b"\n"
            )
            self.sock.sendall(line)

    def next(self) -> Any:
        return self.lines.next()

    def die(self) -> None:
        self.sock.close()


class Server:
    """Listens where the relay looks, and leaves every answer to the test."""

    def __init__(self, home: Path) -> None:
        self.path = socket_path(str(home))
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.listener.settimeout(PATIENCE_S)
        self.connections: list[Connection] = []
        self.hello: dict[str, Any] = {}

    def accept(self, answer: object = None) -> Connection:
        """The next session, greeted with the answer (a welcome if none is given)."""
        sock, _ = self.listener.accept()
        connection = Connection(sock)
        self.connections.append(connection)
        self.hello = connection.next()
        connection.send({"ok": True} if answer is None else answer)
        return connection

    def die(self) -> None:
        """As after kill -9: the connections are gone and the socket's file is left behind."""
        self.listener.close()
        for connection in self.connections:
            connection.die()


class Client:
    """Starts a relay as an MCP client does."""

    def __init__(self, home: Path, *flags: str, code: str = DIRECT + ENTRY, options: tuple[str, ...] = ()) -> None:
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "ROOKERY_HOME": str(home)}
        self.process = subprocess.Popen(
            [sys.executable, *options, "-c", code, "stdio", *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=home,
            bufsize=0,
        )
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr
        self.lines = Lines(self.stdout.fileno())

    def send(self, *messages: Any) -> None:
        for message in messages:
            view = memoryview(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
            while view:
                view = view[os.write(self.stdin.fileno(), view) :]

    def next(self) -> Any:
        return self.lines.next()

    def end(self) -> tuple[int, bytes, str]:
        """Close stdin and wait: the exit code, what stdout still held, and stderr."""
        self.stdin.close()
        rest = b""
        while line := self.lines.raw():
            rest += line
        return self.process.wait(PATIENCE_S), rest, self.stderr.read().decode()

    def memory_mb(self, field: str) -> float:
        """A figure of the process from /proc, such as VmRSS (now) or VmHWM (at most)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith(field)).split()[1]) / 1024

    def signal(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()


def meanwhile(work: Callable[[], object]) -> Thread:
    """Do the work in a thread, for the one end that has to push while the other reads."""
    thread = Thread(target=work, daemon=True)
    thread.start()
    return thread


def call(request_id: int | str, name: str = "ping", **arguments: object) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def answer(request_id: int | str, **result: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def notification(method: str, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"capabilities": {}},
}
INITIALIZED = notification("initialized")
