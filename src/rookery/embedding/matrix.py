"""Exact search among stored vectors, in memory. Needs numpy: import this only where there is an embedder.

The rows of a table are the truth. A matrix is what a process remembers of them; every search first asks the
transaction it runs in whether the project's vectors were touched since, by whichever process, and follows.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from rookery.db.tx import Tx
from rookery.embedding.epochs import epoch_name
from rookery.embedding.nearest import Found

ROOM = 512 * 1024**2
"""Bytes that a matrix may hold: 348,000 vectors of 384 numbers. What does not fit is read anew for each search."""
PAGE_ROWS = 16_384
Floats = NDArray[np.float32]
Wholes = NDArray[np.int64]
_EPOCHS = sa.text("SELECT name, value FROM epochs WHERE name IN :names").bindparams(
    sa.bindparam("names", expanding=True)
)


def cosines(query: bytes, vectors: Sequence[bytes]) -> list[float]:
    """How close each of some stored vectors is to the query."""
    wanted = _floats([query])[0]
    return [min(float(score), 1.0) for score in _floats(vectors).reshape(-1, wanted.size) @ wanted]


@dataclass(frozen=True, slots=True)
class Page:
    """Some vectors, one under the other, and the numbers of their rows. Never changed, so searches need no lock."""

    seqs: Wholes
    vectors: Floats

    @property
    def size(self) -> int:
        return self.seqs.nbytes + self.vectors.nbytes

    def best(self, query: Floats, k: int) -> Found:
        # A matrix product would take every core, and wait for the slowest: longer than this on a machine that is busy.
        scores: Floats = np.vecdot(self.vectors, query)
        some = np.argpartition(scores, -k)[-k:] if k < len(scores) else np.arange(len(scores))
        return [(int(self.seqs[place]), min(float(scores[place]), 1.0)) for place in some]

    def only(self, living: Wholes) -> "Page":
        keep = np.isin(self.seqs, living, assume_unique=True)
        return self if keep.all() else Page(self.seqs[keep], self.vectors[keep])


@dataclass(frozen=True, slots=True)
class Block:
    """The vectors of one project, as they were at an epoch."""

    epoch: int
    pages: tuple[Page, ...] = ()

    @property
    def sums(self) -> tuple[int, int]:
        """How many rows it has, and the sum of their numbers: both are equal only if the rows are the same."""
        return sum(len(page.seqs) for page in self.pages), sum(int(page.seqs.sum()) for page in self.pages)

    @property
    def last(self) -> int:
        """The highest number of a row; pages are in the order of the numbers."""
        return int(self.pages[-1].seqs[-1]) if self.pages else 0

    @property
    def size(self) -> int:
        return sum(page.size for page in self.pages)


class Matrix:
    """The vectors that one embedder made of a table's rows, by project.

    The table has the columns `seq`, `project_id`, `embedder` and `vector`, an index that starts with (project_id,
    embedder, seq), and numbers that are never used again. A vector is never changed: its row is replaced by a new one.
    """

    def __init__(self, table: str, embedder: str, dims: int, *, room: int = ROOM) -> None:
        self.table = table
        self.embedder = embedder
        self.dims = dims
        self.room = room
        self._blocks: OrderedDict[str, Block] = OrderedDict()
        self._lock = threading.Lock()
        mine = f"FROM {table} WHERE project_id = :project AND embedder = :embedder"
        self._sums = sa.text(f"SELECT count(*) AS rows, coalesce(sum(seq), 0) AS total {mine}")
        self._living = sa.text(f"SELECT seq {mine} ORDER BY seq")
        self._rows = sa.text(f"SELECT seq, vector {mine} AND seq > :after ORDER BY seq LIMIT {PAGE_ROWS}")

    @property
    def size(self) -> int:
        """Bytes that are held; at most `room`, apart from what searches that run right now still look at."""
        with self._lock:
            return self._held()

    def search(self, tx: Tx, query: bytes, projects: Sequence[str], k: int) -> Found:
        """The k rows of these projects that are closest to the query, best first, of all that `tx` sees.

        100,000 vectors take about 10 ms, and once about half a second to be read.
        """
        wanted = _floats([query])[0]
        if wanted.size != self.dims or k < 1 or not projects:
            return []
        epochs = self._epochs(tx, projects)
        found: Found = []
        for project, epoch in epochs.items():
            for page in self._pages(tx, project, epoch):
                found += page.best(wanted, k)
        return sorted(found, key=lambda row: (-row[1], -row[0]))[:k]

    def forget(self) -> None:
        """Give back the memory."""
        with self._lock:
            self._blocks.clear()

    def _epochs(self, tx: Tx, projects: Sequence[str]) -> dict[str, int]:
        """How often each project was touched. Nobody ever touched one that has no vectors: it is left out."""
        names = {epoch_name(self.table, project): project for project in projects}
        return {names[row.name]: row.value for row in tx.all(_EPOCHS, {"names": list(names)})}

    def _pages(self, tx: Tx, project: str, epoch: int) -> Iterator[Page]:
        with self._lock:
            block = self._current(tx, project, epoch)
        return self._read(tx, project, 0) if block is None else iter(block.pages)

    def _current(self, tx: Tx, project: str, epoch: int) -> Block | None:
        """The project's block as of `tx`, or None if it is too large to be kept."""
        block = self._blocks.get(project, Block(0))
        if block.epoch != epoch:
            block = self._followed(tx, project, block, epoch)
        if block is None:
            self._blocks.pop(project, None)
            return None
        self._blocks[project] = block
        self._blocks.move_to_end(project)
        while self._held() > self.room:
            self._blocks.popitem(last=False)
        return block

    def _followed(self, tx: Tx, project: str, old: Block, epoch: int) -> Block | None:
        """The block with what was added and without what was removed; None if there is no room for it."""
        sums = tx.one(self._sums, self._mine(project))
        assert sums is not None
        if sums.rows * (4 * self.dims + 8) > self.room:
            return None
        self._make_room(project, sums.rows)
        now = (int(sums.rows), int(sums.total))
        block = Block(epoch, packed([*old.pages, *self._read(tx, project, old.last)]))
        if block.sums != now:
            living = np.array([row.seq for row in tx.all(self._living, self._mine(project))], dtype=np.int64)
            block = Block(epoch, packed([page.only(living) for page in block.pages]))
        # Somebody gave an old row a vector, or the database went back to an earlier state.
        if block.sums != now:
            block = Block(epoch, packed(self._read(tx, project, 0)))
        return block

    def _make_room(self, project: str, rows: int) -> None:
        """Forget projects that were not searched for the longest time, before there is too much rather than after."""
        wanted = rows * (4 * self.dims + 8)
        for other in [name for name in self._blocks if name != project]:
            if wanted + sum(block.size for name, block in self._blocks.items() if name != project) <= self.room:
                return
            del self._blocks[other]

    def _held(self) -> int:
        return sum(block.size for block in self._blocks.values())

    def _mine(self, project: str) -> dict[str, Any]:
        return {"project": project, "embedder": self.embedder}

    def _read(self, tx: Tx, project: str, after: int) -> Iterator[Page]:
        while rows := tx.all(self._rows, {**self._mine(project), "after": after}):
            seqs = np.array([row.seq for row in rows], dtype=np.int64)
            yield Page(seqs, _floats([row.vector for row in rows]).reshape(-1, self.dims))
            after = rows[-1].seq


def _floats(vectors: Sequence[bytes]) -> Floats:
    """One row for each vector. numpy computes with 32 bits many times faster than with 16."""
    return np.frombuffer(b"".join(vectors), dtype="<f2").astype(np.float32).reshape(len(vectors), -1)


def packed(pages: Sequence[Page] | Iterator[Page]) -> tuple[Page, ...]:
    """The same rows in pages that are on average at least half full."""
    packed: list[Page] = []
    for page in pages:
        if packed and len(packed[-1].seqs) + len(page.seqs) <= PAGE_ROWS:
            last = packed.pop()
            page = Page(np.concatenate([last.seqs, page.seqs]), np.concatenate([last.vectors, page.vectors]))
        if len(page.seqs):
            packed.append(page)
    return tuple(packed)
