"""docs/scaling.md: its commands work as they stand, in their order, and what the page says of them holds."""

import contextlib
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rookery.db.postgres import find_program
from tests.cli.terminal import SOURCE, UNSET
from tests.jobs.nursery import until
from tests.server.streamable.web import head, modern

PAGE = (Path(__file__).parents[1] / "docs" / "scaling.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PORTS = ("5433", "4242", "4243")
LIMIT_S = 90.0
PROGRAMS = ("initdb", "pg_ctl", "createdb")


def free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


class Reader:
    """Somebody who types the blocks of the page into one shell, on a machine whose ports are free."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.ports = {port: free_port() for port in PORTS}
        self._commands = folder / "commands"
        self._output = folder / "output"
        for made in (self.home, self._commands):
            made.mkdir()
        self._prepare()
        kept = {name: value for name, value in os.environ.items() if name not in UNSET and not name.startswith("PG")}
        with self._output.open("wb") as output:
            self._shell = subprocess.Popen(
                ["bash", "-eu", "-o", "pipefail"],
                cwd=self.home,
                env={
                    **kept,
                    "HOME": str(self.home),
                    "PATH": f"{self._commands}:{os.environ['PATH']}",
                    "PYTHONPATH": SOURCE,
                    "ROOKERY_PLUGINS": "no",
                },
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                text=True,
                start_new_session=True,
            )
        self._typed = 0

    def _prepare(self) -> None:
        """The commands as they are on a reader's path. PostgreSQL refuses root, who runs it as another user here."""
        self._command("rookery", f'exec {sys.executable} -m rookery.entry "$@"')
        user = ""
        if os.geteuid() == 0:
            postgres = pwd.getpwnam("postgres")
            user = f"setpriv --reuid={postgres.pw_uid} --regid={postgres.pw_gid} --clear-groups "
            (self.home / "pg").mkdir(mode=0o700)
            os.chown(self.home / "pg", postgres.pw_uid, postgres.pw_gid)
        for name in PROGRAMS:
            found = find_program(name)
            assert found, f"{name} is not installed"
            self._command(name, f'exec {user}{found} "$@"')

    def _command(self, name: str, text: str) -> None:
        path = self._commands / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    @property
    def seen(self) -> str:
        return self._output.read_text(errors="replace")

    def type(self, block: str) -> str:
        """What is seen of a block until all of it is done."""
        for written, port in self.ports.items():
            block = block.replace(written, port)
        self._typed += 1
        name, before = f"block{self._typed}", len(self.seen)
        (self._commands / name).write_text(block)
        assert self._shell.stdin
        self._shell.stdin.write(f'. "{self._commands / name}" </dev/null; echo "{name} is done"\n')
        self._shell.stdin.flush()
        until(lambda: f"{name} is done" in self.seen or self._shell.poll() is not None, block, LIMIT_S)
        assert self._shell.poll() is None, self.seen
        return self.seen[before:]

    def ask(self, port: str, path: str, **how: Any) -> httpx2.Response | None:
        """What a server answers; None if nobody is there."""
        try:
            with httpx2.Client(timeout=20, trust_env=False) as http:
                method = "POST" if how else "GET"
                return http.request(method, f"http://127.0.0.1:{self.ports[port]}{path}", **how)
        except httpx2.TransportError:
            return None

    def call(self, port: str, token: str, tool: str, **arguments: Any) -> Any:
        message, headers = modern("tools/call", name=tool, arguments=arguments)
        answer = self.ask(port, "/mcp", json=message, headers=head(token, **headers))
        assert answer is not None
        return answer.json()["result"]["structuredContent"]

    def close(self) -> None:
        """End whatever a page that went wrong has left behind."""
        os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.communicate()
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            self._end_postgres()

    def _end_postgres(self) -> None:
        os.kill(int((self.home / "pg" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)


@pytest.fixture
def reader() -> Iterator[Reader]:
    # Below a folder that PostgreSQL's own user may pass through, which pytest's are not.
    folder = Path(tempfile.mkdtemp(prefix="rookery-page-"))
    folder.chmod(0o711)
    made = Reader(folder)
    yield made
    made.close()
    shutil.rmtree(folder)


@pytest.mark.early
def test_the_page_leads_from_one_machine_to_several(reader: Reader) -> None:
    database, tables, servers, workers, work, death, end = BLOCKS
    reader.type(database)
    assert "applied: jobs" in reader.type(tables)
    reader.type(servers)
    for port in PORTS[1:]:
        until(
            lambda port=port: (answer := reader.ask(port, "/readyz")) and answer.status_code == 200,
            reader.seen,
            LIMIT_S,
        )
    reader.type(workers)
    until(lambda: reader.seen.count("Rookery works for PostgreSQL") == 2, "two workers", LIMIT_S)
    reader.type(work)
    watched = reader.type(death)
    assert "completed" in watched
    [row] = [line for line in watched.splitlines() if "workflows.agent_session" in line and "done" in line]
    # The number of the attempt: the first died with its worker.
    assert " 2 " in f"{row} "

    # What one server was asked for, the worker that is left does, and the other server knows.
    token = reader.type("rookery token create page 2>/dev/null").split()[0]
    workflow = reader.call("4242", token, "manage_workflow", action="list")["workflows"][0]["id"]
    run = reader.call("4242", token, "manage_workflow", action="run", workflow_id=workflow)["runs"][0]["id"]

    def status() -> str:
        return reader.call("4243", token, "manage_workflow", action="run_status", run_id=run)["runs"][0]["status"]

    until(lambda: status() == "completed", "the run has completed", LIMIT_S)

    reader.type(end)
    assert [reader.ask(port, "/healthz") for port in PORTS[1:]] == [None, None]
    assert not (reader.home / "pg" / "postmaster.pid").exists()


def test_what_the_page_says_in_figures_is_so() -> None:
    from rookery.db.postgres import THREADS
    from rookery.settings import Settings

    # The threads, one for records, one that tends, and the connection that listens.
    assert f"at most {THREADS + 3}" in PAGE
    assert f"= {Settings(home='x').job_lease_s:g} s later" in PAGE
