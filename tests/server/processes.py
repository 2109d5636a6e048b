"""Servers and clients as processes of their own, each wait with a bound, everything ended by its process id."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import IO, Any

from tests.relay.peers import Lines
from tests.warm import Started, start

ROOT = Path(__file__).parents[2]
PATIENCE_S = 20.0
UP = """
import os, sys
from rookery.server import stall
stall.LIMIT_S = float(os.environ.get("STALL_S", stall.LIMIT_S))
from rookery.app import make_platform
from rookery.server.run import serve
from rookery.settings import load_settings
serve(load_settings(sys.argv[1]), make_platform, lambda port: print(port, flush=True))
"""
# What the machine running the tests has set must not reach the processes under test.
FOREIGN = ("ROOKERY_", "MCP_", "OAUTH_", "DORKOS_", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PORT")


def environment(home: Path, plugin: Path | None, **more: str) -> dict[str, str]:
    """What a process under test sees: our source, the plugin, this home, and any free port."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    paths = [str(ROOT / "src"), *([str(plugin), str(ROOT)] if plugin else [])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), "ROOKERY_HOME": str(home), "PORT": "0", **more}


class Process:
    """One process, its standard error in a file. A `warm` one has loaded the product's modules before it begins."""

    def __init__(self, command: list[str], log: Path, env: Mapping[str, str], cwd: Path, *, warm: bool = False) -> None:
        self.log = log
        self.process: Started
        with log.open("ab") as stderr:
            files: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stderr}
            if warm:
                self.process = start(command, env=env, cwd=cwd, **files)
            else:
                self.process = subprocess.Popen(command, env=dict(env), cwd=cwd, bufsize=0, **files)
        assert self.process.stdin
        assert self.process.stdout
        self.stdin: IO[bytes] = self.process.stdin
        self.stdout: IO[bytes] = self.process.stdout
        self.lines = Lines(self.stdout.fileno())

    @property
    def errors(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def memory_mb(self, field: str = "VmRSS") -> float:
        """A figure of the process from /proc, such as VmRSS (now) or VmHWM (at most)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith(field)).split()[1]) / 1024

    def kill(self) -> None:
        """As `kill -9`; nothing if it has ended."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def close(self) -> None:
        self.kill()
        for pipe in (self.stdin, self.stdout):
            pipe.close()


class Server(Process):
    """`rookery up` without its command line, ready when this returns."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        super().__init__([sys.executable, "-c", UP, str(home)], home / "server.log", env, home, warm=True)
        announced = self.lines.raw()
        assert announced, self.errors
        self.port = int(announced)

    def stop(self) -> int:
        """End it as Ctrl-C or a service manager would."""
        self.process.terminate()
        return self.process.wait(PATIENCE_S)


class Client(Process):
    """Starts `rookery stdio` as an MCP client does, and speaks JSON-RPC to it line by line."""

    def __init__(
        self, home: Path, env: Mapping[str, str], *flags: str, number: int = 0, cwd: Path | None = None
    ) -> None:
        command = [sys.executable, "-m", "rookery.entry", "stdio", *flags]
        # The relay loads next to nothing.
        super().__init__(command, home / f"client-{number}.log", env, cwd or home, warm="--direct" in flags)
        self.meta: dict[str, Any] | None = None
        self.seen: list[dict[str, Any]] = []
        self._next_id = 0

    def send(self, *messages: dict[str, Any] | bytes) -> None:
        for message in messages:
            view = memoryview(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
            while view:
                view = view[os.write(self.stdin.fileno(), view) :]

    def meanwhile(self, *messages: dict[str, Any] | bytes) -> Thread:
        """Send from a thread, for more than the pipes hold."""
        thread = Thread(target=self.send, args=messages, daemon=True)
        thread.start()
        return thread

    def next(self) -> dict[str, Any]:
        """The next message, whatever it is."""
        line = self.lines.raw()
        assert line, f"the process ended: {self.errors[-2000:]}"
        return json.loads(line)

    def answer_to(self, request_id: object) -> dict[str, Any]:
        """The answer to one request; what comes before it goes to `seen`."""
        return self.answers_to([request_id])[0]

    def answers_to(self, request_ids: Sequence[object]) -> list[dict[str, Any]]:
        """The answers to several requests, in whichever order they come."""
        answers: dict[object, dict[str, Any]] = {}
        while len(answers) < len(request_ids):
            message = self.next()
            if "method" not in message and message.get("id") in request_ids:
                answers[message["id"]] = message
            else:
                self.seen.append(message)
        return [answers[request_id] for request_id in request_ids]

    def silent(self, for_s: float) -> bool:
        """Whether nothing comes for a while."""
        return not self.lines.buffer and not select.select([self.stdout], [], [], for_s)[0]

    def until(self, method: str) -> dict[str, Any]:
        """The next request or notification of this kind; what comes before it goes to `seen`."""
        while True:
            message = self.next()
            if message.get("method") == method:
                return message
            self.seen.append(message)

    def ask(self, method: str, **params: Any) -> int:
        """Send a request and return its id."""
        self._next_id += 1
        if self.meta is not None:
            params["_meta"] = {**self.meta, **params.get("_meta", {})}
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        self.send({**message, "params": params} if params else message)
        return self._next_id

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        return self.answer_to(self.ask(method, **params))

    def ask_tool(self, name: str, **arguments: Any) -> int:
        return self.ask("tools/call", name=name, arguments=arguments)

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool: what it answered, or `{"error": …}` whichever way it failed."""
        return outcome(self.request("tools/call", name=name, arguments=arguments))

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
        who = {"name": "test", "version": "1"}
        answer = self.request("initialize", protocolVersion=version, capabilities=capabilities, clientInfo=who)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def be_modern(self, **capabilities: Any) -> "Client":
        """Speak 2026-07-28 from here on: no handshake, every request says who asks."""
        self.meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        }
        return self

    def tool_names(self) -> set[str]:
        return {tool["name"] for tool in self.request("tools/list")["result"]["tools"]}

    def end(self) -> tuple[int, list[dict[str, Any]], str]:
        """Close the input and wait: the exit code, what was still answered, and standard error."""
        self.stdin.close()
        rest: list[dict[str, Any]] = []
        while line := self.lines.raw():
            rest.append(json.loads(line))
        return self.process.wait(PATIENCE_S), rest, self.errors


def outcome(answer: dict[str, Any]) -> dict[str, Any]:
    """The structured content of a tool's answer; an error of the protocol looks as an error of a tool does."""
    if "error" in answer:
        return {"error": answer["error"].get("data") or answer["error"]}
    result = answer["result"]
    if result.get("isError"):
        return {"error": result["_meta"]["rookery/error"]}
    return result.get("structuredContent", result)


def error_code(result: dict[str, Any]) -> str:
    return result["error"]["code"]
