"""`rookery up` as somebody types it, in a home of its own, for programs of others to talk to."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from tests.server.processes import PATIENCE_S, Process, environment

COMMAND = [sys.executable, "-m", "rookery.entry"]
# Settings under their other names must not reach the processes under test either.
FOREIGN = ("MCP_", "OAUTH_", "DORKOS_")


class Home:
    """A home folder, the environment of commands in it, and what runs there."""

    def __init__(self, plugin: Path | None = None) -> None:
        # The folders of tmp_path can be too deep for a socket.
        self.folder = Path(tempfile.mkdtemp(prefix="rookery-"))
        self.user = self.folder / "user"
        self.user.mkdir()
        kept = environment(self.folder, plugin, HOME=str(self.user))
        self.env = {name: value for name, value in kept.items() if not name.startswith(FOREIGN)}
        self._servers: list[Process] = []

    def up(self, *options: str) -> int:
        """Start the server and return its port, once it listens."""
        log = self.folder / "server.log"
        server = Process([*COMMAND, "up", *options], log, self.env, self.folder)
        self._servers.append(server)
        announced = server.lines.raw()
        assert announced, server.errors
        return int(announced.decode().rpartition(":")[2])

    @property
    def log(self) -> str:
        """What the server has written on standard error."""
        return self._servers[-1].errors

    def run(self, *words: str) -> str:
        """What a `rookery` command prints."""
        done = subprocess.run(
            [*COMMAND, *words], env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def program(self) -> Path:
        """A `rookery` that a client can start by its path. What `stdio` is sent is kept in the file `heard`."""
        file = self.folder / "bin" / "rookery"
        if not file.exists():
            file.parent.mkdir()
            wanted = {name: self.env[name] for name in ("PYTHONPATH", "PORT", "ROOKERY_HOME")}
            said = [f"export {name}='{value}'" for name, value in wanted.items()]
            run = f'"{sys.executable}" -m rookery.entry "$@"'
            spied = f'[ "$1" != stdio ] || {{ tee -a "{self.heard}" | {run}; exit; }}'
            file.write_text("\n".join(["#!/bin/sh", *said, spied, f"exec {run}", ""]))
            file.chmod(0o755)
        return file

    @property
    def heard(self) -> Path:
        return self.folder / "heard"

    def sessions(self) -> list[tuple[str, str]]:
        """Program and protocol revision of every session over HTTP, the newest last. Of 2026-07-28 there are none."""
        with closing(sqlite3.connect(f"file:{self.folder / 'rookery.db'}?mode=ro", uri=True)) as database:
            found = "SELECT program, revision FROM client_sessions ORDER BY opened_ms, id"
            return database.execute(found).fetchall()

    def close(self) -> None:
        for server in self._servers:
            server.close()
        shutil.rmtree(self.folder)


def bare_environment(user: Path, **more: str) -> dict[str, str]:
    """What a program of others sees: an empty home of its own, and nothing of this machine."""
    return {"HOME": str(user), "PATH": os.defpath, "LANG": "C.UTF-8", "TMPDIR": str(user), **more}
