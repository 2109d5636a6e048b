"""Looks through the memories of one owner with the full-text index of either database.

A word that half of the memories have would cost as much as reading them all. So of what matches, the newest are
looked at, and among those the most relevant are found. What has every word is better than what has some; if there
is little of that, each word is looked for alone, so that a rare word is found however old the memory is.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.memory.words import Owner, Sought, fts5_any, ts_any
from rookery.fulltext.query import bm25

WINDOW = 200
"""So many of the newest that have every word are ranked."""
WINDOW_EACH = 100
"""So many of the newest that have one word, where few have all of them."""
ENOUGH = 5
"""With fewer memories that have every word of a query, those that have any of them are shown too."""
DAY_MS = 86_400_000
DECAY = ((7 * DAY_MS, 1.0), (30 * DAY_MS, 0.8), (90 * DAY_MS, 0.6))
OLDEST = 0.4
"""What a match counts that is younger than this, and what one that is older than all of them."""


class Match(NamedTuple):
    """A memory that was found. `relevance` is its BM25, of the words that were looked for."""

    seq: int
    relevance: float
    updated_ms: int


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memories, as of when, and how many words the owner's memories have together."""

    owner: Owner
    now_ms: int
    memories: int
    words: int

    @property
    def values(self) -> dict[str, Any]:
        return {"tenant": self.owner.tenant, "owner": self.owner.name, "now": self.now_ms}


class SqliteIndex:
    """FTS5, whose own bm25() counts."""

    # Without CROSS the planner may walk through all memories and ask the index about each. What is looked up of
    # each match is in an index of its own, since rows are long and far apart.
    _FOUND = sa.text(
        "SELECT seq, -bm25(memories_fts) AS relevance, updated_ms "
        "FROM memories_fts CROSS JOIN memories INDEXED BY memories_times ON seq = memories_fts.rowid "
        "WHERE memories_fts MATCH :query AND (expires_ms IS NULL OR expires_ms > :now) "
        "ORDER BY memories_fts.rowid DESC LIMIT :number"
    )
    _HOLDING = sa.text(
        "SELECT memories.* FROM memories_fts CROSS JOIN memories ON seq = memories_fts.rowid "
        "WHERE memories_fts MATCH :query AND tenant = :tenant AND owner = :owner "
        "AND (expires_ms IS NULL OR expires_ms > :now) ORDER BY memories_fts.rowid DESC LIMIT :number"
    )

    def __init__(self, tx: Tx, scope: Scope) -> None:
        self.tx = tx
        self.scope = scope

    def every(self, sought: Sequence[Sought]) -> Sequence[Match]:
        """The newest that have every word."""
        return self._run(" AND ".join(fts5_any(sought)), WINDOW)

    def each(self, sought: Sequence[Sought]) -> list[Sequence[Match]]:
        """For each word the newest that have it."""
        return [self._run(query, WINDOW_EACH) for query in fts5_any(sought)]

    def _run(self, query: str, number: int) -> Sequence[Match]:
        # Rows have the names of a match; to make matches of them would take as long as to find them.
        rows = self.tx.all(self._FOUND, {"query": query, "now": self.scope.now_ms, "number": number})
        return cast("Sequence[Match]", rows)

    def holding(self, groups: Sequence[Sequence[str]], number: int) -> Sequence[sa.Row[Any]]:
        """The rows of memories that have every token of one of the groups."""
        query = " OR ".join(f"({' AND '.join(f'{chr(34)}{token}{chr(34)}' for token in group)})" for group in groups)
        return self.tx.all(self._HOLDING, {**self.scope.values, "query": query, "number": number})


class PostgresIndex:
    """A tsvector finds the rows; BM25 is computed here."""

    _MINE = (
        "FROM memories WHERE tokens @@ CAST(:query AS tsquery) AND tenant = :tenant AND owner = :owner "
        "AND (expires_ms IS NULL OR expires_ms > :now) "
        # By seq alone the planner might walk through everybody's memories from the newest on.
        "ORDER BY seq + 0 DESC LIMIT :number"
    )
    _FOUND = sa.text(f"SELECT seq, updated_ms, words, CAST(tokens AS text) AS tokens {_MINE}")
    _HOLDING = sa.text(f"SELECT * {_MINE}")
    _HAVING = sa.text("SELECT count(*) FROM memories WHERE tokens @@ CAST(:query AS tsquery)")

    def __init__(self, tx: Tx, scope: Scope) -> None:
        self.tx = tx
        self.scope = scope

    def every(self, sought: Sequence[Sought]) -> Sequence[Match]:
        """The newest that have every word."""
        return self._run(" & ".join(ts_any(sought)), sought, WINDOW)

    def each(self, sought: Sequence[Sought]) -> list[Sequence[Match]]:
        """For each word the newest that have it."""
        return [self._run(query, [word], WINDOW_EACH) for word, query in zip(sought, ts_any(sought), strict=True)]

    def _run(self, query: str, sought: Sequence[Sought], number: int) -> Sequence[Match]:
        rows = self.tx.all(self._FOUND, {**self.scope.values, "query": query, "number": number})
        if not rows:
            return []
        having = [self.tx.scalar(self._HAVING, {"query": each}) for each in ts_any(sought)]
        total = max(self.scope.memories, *having)
        mean = max(self.scope.words / total, 1.0)
        places = [_places(word) for word in sought]
        return [
            Match(
                row.seq,
                bm25([_often(each, row.tokens) for each in places], having, row.words, total, mean),
                row.updated_ms,
            )
            for row in rows
        ]

    def holding(self, groups: Sequence[Sequence[str]], number: int) -> Sequence[sa.Row[Any]]:
        """The rows of memories that have every token of one of the groups."""
        query = " | ".join(f"({' & '.join(f'{chr(39)}{token}{chr(39)}' for token in group)})" for group in groups)
        return self.tx.all(self._HOLDING, {**self.scope.values, "query": query, "number": number})


def _places(word: Sought) -> re.Pattern[str]:
    """Finds the places of a word in the text of a tsvector."""
    forms = [*word.exact, *([] if word.beginning is None else [f"{word.beginning}[^']*"])]
    return re.compile(f"'(?:{'|'.join(forms)})':([^ ]+)")


def _often(places: re.Pattern[str], vector: str) -> int:
    return sum(found[1].count(",") + 1 for found in places.finditer(vector))


def index(tx: Tx, scope: Scope) -> SqliteIndex | PostgresIndex:
    """The full-text index of this database."""
    return (SqliteIndex if tx.dialect == "sqlite" else PostgresIndex)(tx, scope)


def search(tx: Tx, scope: Scope, sought: Sequence[Sought], limit: int) -> Mapping[int, float]:
    """The best matches by `seq`, best first, with a score from 0 to 1."""
    if not sought:
        return {}
    found = index(tx, scope)
    matches = found.every(sought)
    if len(sought) > 1 and len(matches) < min(ENOUGH, limit):
        matches = _joined(matches, found.each(sought))
    return _ranked(matches, scope.now_ms, limit)


def _joined(every: Sequence[Match], lists: Iterable[Sequence[Match]]) -> list[Match]:
    """One match for each memory. BM25 of several words is the sum of what it is of each."""
    complete = {match.seq for match in every}
    parts: dict[int, tuple[float, int]] = {}
    for matches in lists:
        for seq, relevance, updated_ms in matches:
            parts[seq] = (parts.get(seq, (0.0, 0))[0] + relevance, updated_ms)
    return [*every, *(Match(seq, *part) for seq, part in parts.items() if seq not in complete)]


def _ranked(matches: Iterable[Match], now_ms: int, limit: int) -> dict[int, float]:
    scored = [(relevance * decay(now_ms - updated), updated, seq) for seq, relevance, updated in matches]
    best = sorted(scored, reverse=True)[:limit]
    highest = best[0][0] if best else 1.0
    return {seq: round(score / highest, 3) for score, _, seq in best}


def decay(age_ms: int) -> float:
    """What a match counts that was written so long ago."""
    for limit_ms, worth in DECAY:
        if age_ms < limit_ms:
            return worth
    return OLDEST
