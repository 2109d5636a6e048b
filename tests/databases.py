"""Databases for tests: an SQLite file, or a fresh database on the one PostgreSQL of the run.

Each test gets a database of its own. Copying a template was measured to cost less than emptying a database
and making its tables again, and in memory a tenth of what it costs on a disk.
"""

import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import psycopg
import sqlalchemy as sa
from psycopg import sql

MEMORY_FOLDER = Path("/dev/shm")
ROOM_WANTED = 2 * 1024**3
ANSWER_LIMIT_S = 90
STOP_LIMIT_S = 30
LINGERING = 3


def roomy_folder() -> Path | None:
    """Memory that looks like a folder, where the machine has enough of it."""
    try:
        usable = os.access(MEMORY_FOLDER, os.W_OK) and shutil.disk_usage(MEMORY_FOLDER).free > ROOM_WANTED
    except OSError:
        return None
    return MEMORY_FOLDER if usable else None


class PostgresServer:
    """The run's own PostgreSQL, started when the first test asks. Only the run's main process has one."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rookery-pg-", dir=roomy_folder()))
        script = Path(__file__).with_name("postgres_server.py")
        # A session of its own: Ctrl-C must reach the tests and not the database under them.
        command = [sys.executable, "-I", "-S", str(script), str(self.folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def stop(self) -> None:
        """End the server, if it ever started, and remove its files."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(STOP_LIMIT_S)


class PostgresUnavailable(Exception):
    """There is no PostgreSQL for this run; the message says why."""


def ask(folder: Path) -> dict[str, str]:
    """Where the run's PostgreSQL is; starts it if it does not run yet, which takes about two seconds."""
    limit = time.monotonic() + ANSWER_LIMIT_S
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(ANSWER_LIMIT_S)
        while True:
            try:
                caller.connect(str(folder / "ask"))
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > limit:
                    raise PostgresUnavailable("the process that starts PostgreSQL does not answer") from None
                time.sleep(0.02)
        with caller.makefile("rb") as answer:
            found: dict[str, str] = json.load(answer)
    if "error" in found:
        raise PostgresUnavailable(found["error"])
    return found


class PostgresDatabases:
    """Makes databases that nobody else uses. Call it for a URL as SQLAlchemy takes it."""

    def __init__(self, folder: Path, worker: str) -> None:
        place = ask(folder)
        self._retired: deque[str] = deque()
        self._names = (f"{worker}_{number}" for number in itertools.count(1))
        self._base = sa.URL.create("postgresql+psycopg", place["user"], query={"host": place["host"]})
        self._admin = psycopg.connect(host=place["host"], user=place["user"], dbname="postgres", autocommit=True)

    def __call__(self, template: str | None = None) -> str:
        """The URL of a new database: empty, or a copy of `template`, to which nobody may be connected."""
        source = sa.make_url(template).database if template else "template0"
        name = next(self._names)
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(source or ""))
        # The default writes every page to the log as well.
        if self._admin.info.server_version >= 150000:
            create += sql.SQL(" STRATEGY FILE_COPY")
        self._admin.execute(create)
        return self._base.set(database=name).render_as_string(hide_password=False)

    def drop(self, url: str) -> None:
        """Remove the database at `url`, ending whatever connections are left to it."""
        name = sa.make_url(url).database or ""
        self._admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def retire(self, url: str) -> None:
        """Remove it soon. PostgreSQL waits a tenth of a second for connections that were closed just now."""
        self._retired.append(url)
        while len(self._retired) > LINGERING:
            self.drop(self._retired.popleft())

    def close(self) -> None:
        for url in self._retired:
            self.drop(url)
        self._admin.close()
