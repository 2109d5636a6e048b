"""Fills a fresh SQLite database with memories or with chunks of documents, and writes Markdown files to be indexed.

The same for the same numbers. Rows go in by a connection of their own that waits for no disk, with the tokens that the
store itself would write.
"""

import contextlib
import itertools
import random
import re
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from rookery.core.actor import Actor
from rookery.domains.knowledge.store import CHUNK_COLUMNS
from rookery.domains.knowledge.tables import chunks, documents
from rookery.domains.memory.row_seal import CONTENT
from rookery.domains.memory.store import owner_of
from rookery.domains.memory.tables import memories
from rookery.domains.memory.words import Owner, Tokens
from rookery.sealing.keyring import Keyring

NOW_MS = 1_750_000_000_000
VOCABULARY = 30_000
LEAST_WORDS, MOST_WORDS = 18, 40
BULK = 50_000
CACHE_KB = 512 * 1024
INDEX_BYTES = 64 * 1024**2
"""What a full-text index gathers in memory before it writes; with its usual megabyte most of the time goes to merging.
"""
USUAL_INDEX_BYTES = 1024**2
CHUNKS_A_DOCUMENT, CHUNK_LETTERS, NAMES_A_CHUNK = 10, 1_500, 8
SECTIONS_A_FILE, SECTION_LETTERS = 3, 900
LEAST_PARAGRAPH, MOST_PARAGRAPH = 80, 800
MEMORY_COLUMNS = (
    "id", "tenant", "owner", "key", "key_version", "updated_ms", "expires_ms", "archived", "created_ms", "revision",
    "words", "status", "sealed_key", "content", "tokens",
)  # fmt: skip
Record = tuple[Any, ...]


class Zipf:
    """A vocabulary of made-up words, in which the second is half as frequent as the first and so on."""

    def __init__(self) -> None:
        self.words = [_word(number) for number in range(VOCABULARY)]
        self._places = range(VOCABULARY)
        self._cumulative = list(itertools.accumulate(1 / (rank + 1) for rank in range(VOCABULARY)))

    def places(self, chance: random.Random, count: int) -> list[int]:
        """The ranks of some words, the most frequent being 0."""
        return chance.choices(self._places, cum_weights=self._cumulative, k=count)

    def queries(self, words: int, count: int) -> list[str]:
        """Queries of so many words, as frequent in them as in the texts."""
        chance = random.Random(words)
        return [" ".join(self.words[place] for place in self.places(chance, words)) for _ in range(count)]

    def text(self, chance: random.Random) -> str:
        """What a memory says."""
        return " ".join(self.words[place] for place in self.places(chance, chance.randint(LEAST_WORDS, MOST_WORDS)))


def _word(number: int) -> str:
    made, number = "", number + 100
    while number:
        made += "bcdfghjklmnprstvwz"[number % 18] + "aeiou"[number // 18 % 5]
        number //= 90
    return made


@contextlib.contextmanager
def filling(home: Path, index: str) -> Generator[sqlite3.Connection]:
    """A fast connection to the home's database, in one transaction. Afterwards nothing is left in the log of pages."""
    with contextlib.closing(sqlite3.connect(home / "rookery.db", isolation_level=None)) as connection:
        for pragma in ("synchronous=OFF", f"cache_size=-{CACHE_KB}"):
            connection.execute(f"PRAGMA {pragma}")
        gather = f"INSERT INTO {index} ({index}, rank) VALUES ('hashsize', ?)"
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(gather, (INDEX_BYTES,))
        yield connection
        connection.execute(gather, (USUAL_INDEX_BYTES,))
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def insert(connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: Iterator[Record]) -> None:
    """Many rows with one statement: with one for each, the full-text index would write itself out after every row."""
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    connection.execute(f"CREATE TEMP TABLE waiting ({names})")
    while some := list(itertools.islice(rows, BULK)):
        connection.executemany(f"INSERT INTO waiting VALUES ({marks})", some)
        connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM waiting ORDER BY rowid")
        connection.execute("DELETE FROM waiting")
    connection.execute("DROP TABLE waiting")


@dataclass(frozen=True)
class Keepers:
    """Whose memories are made: the actor's, and those of so many agents together, each as many. Sealed with a key."""

    actor: Actor
    agents: int
    keyring: Keyring | None = None
    key_version: int | None = None

    @property
    def owners(self) -> list[Owner]:
        mine = owner_of(self.actor)
        return [mine, *(Owner(mine.tenant, f"agent:other-{number}") for number in range(1, self.agents))]


def fill_memories(home: Path, zipf: Zipf, keepers: Keepers, count: int) -> None:
    """So many memories, of every owner in turn, under keys such as `note 17`."""
    with filling(home, "memories_fts") as connection:
        insert(connection, memories.name, MEMORY_COLUMNS, _memories(zipf, keepers, count))
        connection.execute(
            "INSERT INTO memory_owners (tenant, owner, memories, words, plain) "
            "SELECT tenant, owner, count(*), sum(words), sum(key_version IS NULL) FROM memories GROUP BY tenant, owner"
        )


def _memories(zipf: Zipf, keepers: Keepers, count: int) -> Iterator[Record]:
    chance, owners, keyring = random.Random(7), keepers.owners, keepers.keyring
    tokens = [Tokens(owner, keyring) for owner in owners]
    known: list[dict[int, str]] = [{} for _ in owners]
    for number in range(count):
        whose = number % len(owners)
        owner, mine = owners[whose], known[whose]
        places = zipf.places(chance, chance.randint(LEAST_WORDS, MOST_WORDS))
        for place in places:
            if place not in mine:
                mine[place] = tokens[whose].of(zipf.words[place])[0]
        key, memory_id = f"note {number}", f"mem-{NOW_MS + number:012x}{number:020x}"
        found = [*tokens[whose].of(key), *(mine[place] for place in places)]
        content = " ".join([zipf.words[place] for place in places])
        about = f"{owner.tenant}\0{owner.name}\0{memory_id}"
        stored = content.encode() if keyring is None else keyring.seal(CONTENT, content, about)
        yield (
            memory_id, owner.tenant, owner.name, key, keepers.key_version, NOW_MS + number, None, False,
            NOW_MS + number, 1, len(found), "none", None, stored, " ".join(found),
        )  # fmt: skip


class Prose:
    """English as people write documentation: paragraphs of what Python says of itself, put together anew."""

    def __init__(self, zipf: Zipf) -> None:
        self._zipf = zipf
        pieces = (" ".join(piece.split()) for text in topics.values() for piece in re.split(r"\n\s*\n", text))
        self.paragraphs = [piece for piece in pieces if LEAST_PARAGRAPH <= len(piece) <= MOST_PARAGRAPH]

    def section(self, chance: random.Random, letters: int) -> str:
        """Paragraphs of about so many letters together, the last of which has some names that are hardly elsewhere."""
        found: list[str] = []
        while sum(map(len, found)) < letters:
            found.append(chance.choice(self.paragraphs))
        names = " ".join(self._zipf.words[place] for place in self._zipf.places(chance, NAMES_A_CHUNK))
        return "\n\n".join([*found, f"See also: {names}."])

    def heading(self, chance: random.Random) -> str:
        words = chance.choice(self.paragraphs).split()[:4]
        return re.sub(r"[^A-Za-z0-9 ]", "", " ".join(words)).strip() or "Notes"

    def queries(self, count: int) -> dict[str, list[str]]:
        """What people look for: a name, some words, and what could be the beginning of an answer."""
        chance = random.Random(3)
        spoken = [re.findall(r"[a-z]{3,}", text.lower()) for text in chance.sample(self.paragraphs, 2 * count)]
        long = [words for words in spoken if len(words) >= 10][:count]
        return {
            "a name": self._zipf.queries(1, count),
            "three words": [" ".join(chance.sample(words, 3)) for words in long],
            "ten words": [" ".join(words[:10]) for words in long],
        }


@dataclass(frozen=True)
class Shelf:
    """Where documents belong, who put them there, and what made their vectors."""

    actor: Actor
    embedder: str

    @property
    def place(self) -> tuple[str, str]:
        assert self.actor.project is not None
        return self.actor.tenant, self.actor.project


def fill_chunks(home: Path, prose: Prose, shelf: Shelf, count: int, vectors: Iterator[bytes]) -> None:
    """So many chunks with a vector each, and the documents that they are of."""
    with filling(home, "knowledge_chunks_fts") as connection:
        insert(connection, chunks.name, CHUNK_COLUMNS, _chunks(prose, shelf, count, vectors))
        connection.execute(
            f"INSERT INTO {documents.name} (id, tenant, project_id, path, title, kind, hash, bytes, chunks, embedder, "
            "revision, subject, indexed_ms) SELECT document_id, tenant, project_id, document_id || '.md', "
            "min(heading), 'markdown', document_id, sum(length(content)), count(*), embedder, 1, ?, ? "
            f"FROM {chunks.name} GROUP BY document_id",
            (shelf.actor.subject, NOW_MS),
        )


def _chunks(prose: Prose, shelf: Shelf, count: int, vectors: Iterator[bytes]) -> Iterator[Record]:
    chance = random.Random(5)
    for number, vector in zip(range(count), vectors, strict=False):
        document, position = divmod(number, CHUNKS_A_DOCUMENT)
        text = prose.section(chance, chance.randint(CHUNK_LETTERS // 2, CHUNK_LETTERS * 3 // 2))
        yield (
            *shelf.place, f"doc-{document:032x}", position, prose.heading(chance), text, 0, 1 + text.count(" "), None,
            vector, shelf.embedder,
        )  # fmt: skip


def write_files(folder: Path, prose: Prose, count: int) -> list[str]:
    """So many Markdown files with some sections each; their paths inside the folder."""
    chance = random.Random(6)
    paths: list[str] = []
    for number in range(count):
        sections = [
            f"## {prose.heading(chance)}\n\n{prose.section(chance, SECTION_LETTERS)}\n" for _ in range(SECTIONS_A_FILE)
        ]
        path = f"part-{number // 100}/page-{number}.md"
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"# {prose.heading(chance)} {number}\n\n" + "\n".join(sections))
        paths.append(path)
    return paths
