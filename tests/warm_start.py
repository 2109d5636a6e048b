"""python -m tests.warm_start FD: starts Python processes that have the product's modules loaded already.

To load them takes a second of a processor, which is most of what a short-lived server under test costs. Orders come
through the socket FD, each with the three standard files and a pipe for the exit code. A process made here reads its
arguments, environment, folder and path from the order, as a new interpreter would from the system; only its modules
were loaded before. When the socket closes this process ends, and those it made go on, as orphans do.
"""

import contextlib
import gc
import importlib
import json
import os
import random
import runpy
import select
import socket
import struct
import sys
import time
from types import ModuleType
from typing import Any

from rookery.plugins import load_domains

LENGTH = struct.Struct("!I")
FILES = 4
LOADED = ("rookery.cli.main", "rookery.server.run", "rookery.server.stdio", "uvicorn.protocols.http.httptools_impl")


def receive(door: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next order and the files that came with it; None when nobody will send one any more."""
    head, files, _, _ = socket.recv_fds(door, LENGTH.size, FILES)
    if not head:
        return None
    body, wanted = b"", LENGTH.unpack(head)[0]
    while len(body) < wanted:
        body += door.recv(wanted - len(body))
    return json.loads(body), files


class Made:
    """A process that was made here, which only its parent can ask for the exit code."""

    def __init__(self, pid: int, told: int) -> None:
        self.pid, self.told, self.file = pid, told, os.pidfd_open(pid)

    def fileno(self) -> int:
        return self.file

    def tell_end(self) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        # Whoever started it may not have waited for it.
        with contextlib.suppress(BrokenPipeError):
            os.write(self.told, str(code).encode())
        os.close(self.told)
        os.close(self.file)


def next_to_become(door: socket.socket) -> dict[str, Any]:
    """Returns once in every process that is made here, with what it is to do."""
    made: list[Made] = []
    while True:
        readable = select.select([door, *made], [], [])[0]
        for each in readable:
            if isinstance(each, Made):
                each.tell_end()
                made.remove(each)
        if door not in readable:
            continue
        came = receive(door)
        if came is None:
            sys.exit()
        order, files = came
        pid = os.fork()
        if pid == 0:
            for number in range(3):
                os.dup2(files[number], number)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            return order
        made.append(Made(pid, files[3]))
        for file in files[:3]:
            os.close(file)
        door.sendall(LENGTH.pack(pid))


def become(order: dict[str, Any], installed: list[str]) -> None:
    """Do what `python -m MODULE …` or `python -c CODE …` does."""
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    random.seed()
    kind, what, *words = order["command"]
    own = [part for part in order["env"].get("PYTHONPATH", "").split(os.pathsep) if part]
    sys.path[:] = [os.getcwd() if kind == "-m" else "", *own, *installed]
    importlib.invalidate_caches()
    sys.argv[:] = [kind, *words]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), main.__dict__)


def main() -> None:
    given = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    installed = sys.path[1 + len(given) :]
    for name in LOADED:
        importlib.import_module(name)
    load_domains(plugins=False)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as door:
        door.sendall(LENGTH.pack(os.getpid()))
        order = next_to_become(door)
        door.detach()
    become(order, installed)


if __name__ == "__main__":
    main()
