"""A PostgreSQL of our own, started as the tests start theirs, on the disk that homes lie on."""

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.launch import ROOT
from tests.databases import PostgresDatabases, PostgresUnavailable

STOP_LIMIT_S = 30


@contextlib.contextmanager
def databases() -> Iterator[PostgresDatabases]:
    """Makes databases on a server that is gone afterwards. PostgresUnavailable if there is none to be had."""
    folder = Path(tempfile.mkdtemp(prefix="rookery-bench-pg-"))
    script = ROOT / "tests" / "postgres_server.py"
    command = [sys.executable, "-I", "-S", str(script), str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        with contextlib.closing(PostgresDatabases(folder, "bench")) as made:
            yield made
    finally:
        assert process.stdin
        process.stdin.close()
        process.wait(STOP_LIMIT_S)
        shutil.rmtree(folder, ignore_errors=True)


__all__ = ["PostgresDatabases", "PostgresUnavailable", "databases"]
