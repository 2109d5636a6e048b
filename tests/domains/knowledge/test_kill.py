"""A process that indexes a folder is killed at any moment: what it reported is there, whole, and the next goes on."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.domains.knowledge.store import Documents
from rookery.domains.knowledge.tables import chunks, documents
from tests.domains.knowledge.library import Library
from tests.warm import start

ROOT = Path(__file__).parents[3]
FILES = 40
KILLS = 8


class Nursery:
    """Makes victims and kills them."""

    def __init__(self, url: str, home: Path) -> None:
        command = [sys.executable, "-m", "tests.domains.knowledge.victim", url, str(home)]
        self._process = start(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, lines: int | None) -> list[list[str]]:
        """What a process says of files until it is killed after so many lines, or until its end."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        pid, said = 0, list[list[str]]()
        for line in self._process.stdout:
            words = line.split()
            if words[0] == "gone":
                return said
            if words[0] == "pid":
                pid = int(words[1])
            else:
                said.append(words)
            if lines is not None and len(said) >= lines and pid:
                os.kill(pid, signal.SIGKILL)
                pid = 0
        pytest.fail("the nursery died")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def nursery(database_url: str, tmp_path: Path) -> Iterator[Nursery]:
    made = Nursery(database_url, tmp_path / "home")
    yield made
    made.close()


def look(library: Library) -> set[str]:
    """The paths of all documents, each of which is whole."""
    found = library.rows(sa.select(documents))
    kept = library.kept
    assert {row.path: row.chunks for row in found} == kept
    known = sa.select(documents.c.id)
    assert library.rows(sa.select(chunks.c.seq).where(chunks.c.document_id.not_in(known))) == []
    assert library.rows(sa.select(chunks.c.seq).where(chunks.c.vector.is_(None))) == []
    for row in found:
        written = (library.root / row.path).read_text(encoding="utf-8")
        text = library.fleet.platform.database.direct(
            lambda tx, row=row: Documents(tx, row.tenant, row.project_id).text(row)
        )
        assert "".join(text.split()) == "".join(written.split())
    return set(kept)


async def test_what_was_reported_stays_and_no_document_is_half_there(library: Library, nursery: Nursery) -> None:
    dice = random.Random(5)
    await library.open()
    for number in range(FILES):
        parts = (f"## Part {part}\n\n{f'number{number} ' * dice.randint(100, 400)}\n\n" for part in range(8))
        library.write(f"{number:03d}.md", f"# File {number}\n\n{''.join(parts)}")
    reported: set[str] = set()
    for _ in range(KILLS):
        said = nursery.run(len(reported) + dice.randint(1, FILES // KILLS))
        assert [words for words in said if words[0] == "skipped"] == []
        # What an earlier process reported is not done again.
        assert {words[1] for words in said if words[0] == "indexed"}.isdisjoint(reported)
        reported |= {words[1] for words in said}
        assert reported <= look(library)
    said = nursery.run(None)
    assert {words[1] for words in said if words[0] == "unchanged"} >= reported
    assert len(look(library)) == FILES
    assert (await library.search("number39")).results[0]["path"] == "039.md"
