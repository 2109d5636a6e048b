"""Memory: an idle relay, and what a live session costs the server."""

import json
import socket
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.launch import HERE, ROOT, Program, Rookery, Server, peer
from benchmarks.machine import memory_kb
from benchmarks.raw_client import MeasureError, Wire, deadline
from benchmarks.report import Group, Row

SESSION_LIMIT_S = 120
RELAY_TARGET_MB = 15.0
SESSION_TARGET_KB = 100.0
# The first sessions fill pools and caches that all later ones share.
FIRST_SESSIONS = 20


def idle_after_one_call(program: Program) -> dict[str, int]:
    """Sizes of the process that a client starts, after one call, in KB."""
    with deadline(60, f"one call of {program.name}"), program.start() as server:
        server.initialize()
        server.list_tools()
        server.call("ping", {})
        time.sleep(0.3)
        return memory_kb(server.process.pid)


def open_session(path: Path, version: str) -> socket.socket:
    """A session as a relay opens one, with the handshake, the list and one call behind it."""
    link = socket.socket(socket.AF_UNIX)
    link.connect(str(path))
    wire = Wire(link.fileno(), link.fileno())
    hello = {"rookery": 1, "version": version, "cwd": str(ROOT), "flags": {}}
    wire.send(json.dumps(hello).encode() + b"\n")
    answer = json.loads(wire.read_line())
    if answer.get("ok") is not True:
        raise MeasureError(f"the server refused the hello: {answer}")
    wire.initialize()
    wire.list_tools()
    wire.call("ping", {})
    return link


def growth_per_session(server: Server, version: str, sessions: int) -> dict[str, float]:
    """KB by which the server grows with each live session."""
    with ExitStack() as stack, deadline(SESSION_LIMIT_S, f"opening {sessions} sessions"):
        for _ in range(FIRST_SESSIONS):
            stack.enter_context(open_session(server.socket_path, version))
        before = settled(server.pid)
        for _ in range(sessions):
            stack.enter_context(open_session(server.socket_path, version))
        after = settled(server.pid)
    return {"sessions": sessions, "before_kb": before["rss"], "after_kb": after["rss"]}


def settled(pid: int) -> dict[str, int]:
    time.sleep(1)
    return memory_kb(pid)


def run(rookery: Rookery, quick: bool) -> Group:
    """Sizes against the targets, and those of the peers for comparison."""
    group = Group("memory")
    try:
        with rookery.up({}) as server:
            program = rookery.relay(server)
            program.warm_up()
            relay = idle_after_one_call(program)
            group.samples["relay"] = relay
            group.limit("idle relay, resident", relay["rss"] / 1024, "MB", RELAY_TARGET_MB)
            group.rows.append(Row("idle relay, proportional", f"{relay['pss'] / 1024:.1f} MB"))
            grown = growth_per_session(server, rookery.version(), 60 if quick else 200)
            group.samples["server"] = grown
            each = (grown["after_kb"] - grown["before_kb"]) / grown["sessions"]
            group.limit(f"server, per live session of {grown['sessions']:.0f}", each, "KB", SESSION_TARGET_KB)
            group.rows.append(Row("server with these sessions", f"{grown['after_kb'] / 1024:.1f} MB"))
    except (MeasureError, OSError) as error:
        group.problems.append(str(error))
    bare = idle_after_one_call(peer("bare SDK", rookery.python, HERE / "peers" / "bare_sdk.py", "65"))
    group.samples["bare SDK"] = bare
    group.rows.append(Row("idle bare SDK server, resident", f"{bare['rss'] / 1024:.1f} MB"))
    return group
