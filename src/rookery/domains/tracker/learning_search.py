"""Looks through learnings with the full-text index of either database. Both find the same and order it alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.search import FIELDS, Match, fts5_query
from rookery.fulltext.query import Frequencies, Term, Wanted, bm25, idf, ts_query

CANDIDATES = 200
"""So many of the most relevant are scored. Common words match thousands, of which nobody sees more than a hundred."""
COUNTED = 1_000
"""On PostgreSQL so many are looked at more closely to find these: those for which its own rank is best."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look: some projects of a tenant, at learnings of some quality. Verified ones are always looked at."""

    tenant: str
    projects: Sequence[str]
    min_quality: int | None = None

    @property
    def condition(self) -> str:
        quality = "" if self.min_quality is None else " AND (verified OR quality_score >= :min_quality)"
        return f"tenant = :tenant AND project_id IN :projects{quality}"

    def bind(self, statement: str, **values: Any) -> sa.TextClause:
        """The statement with its parameters, and with those of the condition."""
        values |= {"tenant": self.tenant, "projects": list(self.projects)}
        values |= {} if self.min_quality is None else {"min_quality": self.min_quality}
        return sa.text(statement).bindparams(sa.bindparam("projects", expanding=True)).bindparams(**values)


class SqliteSearch:
    """FTS5. Its own bm25() counts; of a single column's share of it only the sign is looked at.

    The index knows of each learning to which project it belongs, so it alone finds and orders them; only the most
    relevant are looked up in the table. A limit of quality it does not know.
    """

    _FIELD = (
        f"CASE WHEN bm25(learnings_fts, 0, 1, 0, 0) < 0 THEN {FIELDS['A']} "
        f"WHEN bm25(learnings_fts, 0, 0, 1, 0) < 0 THEN {FIELDS['B']} ELSE {FIELDS['C']} END AS field"
    )
    _FOUND = sa.text("SELECT rowid FROM learnings_fts WHERE learnings_fts MATCH :query LIMIT :number")
    # Ordered by its rank, FTS5 computes the field for those alone that are within the limit.
    _RANKED = sa.text(
        f"SELECT seq, quality_score, -relevance AS relevance, field FROM (SELECT rowid, rank AS relevance, {_FIELD} "
        "FROM learnings_fts WHERE learnings_fts MATCH :query AND rank MATCH 'bm25(0, 1, 1, 1)' "
        "ORDER BY rank LIMIT :number) AS best JOIN learnings ON seq = best.rowid"
    )
    # Without CROSS the planner may walk through all learnings and ask the index about each.
    _GOOD = (
        "FROM learnings_fts CROSS JOIN learnings INDEXED BY learnings_narrow ON seq = learnings_fts.rowid "
        "WHERE learnings_fts MATCH :query AND (verified OR quality_score >= :least) "
    )
    _FOUND_GOOD = sa.text(f"SELECT seq {_GOOD} LIMIT :number")
    _RANKED_GOOD = sa.text(
        f"SELECT seq, quality_score, -bm25(learnings_fts, 0, 1, 1, 1) AS relevance, {_FIELD} {_GOOD} "
        "ORDER BY relevance DESC, seq DESC LIMIT :number"
    )

    def __init__(self, tx: Tx, scope: Scope) -> None:
        self.tx = tx
        self.scope = scope

    def _run(self, plain: sa.TextClause, good: sa.TextClause, query: str, number: int) -> Sequence[sa.Row[Any]]:
        least = self.scope.min_quality
        values: dict[str, Any] = {"query": query, "number": number}
        return self.tx.all(plain, values) if least is None else self.tx.all(good, {**values, "least": least})

    def has(self, looked_for: Sequence[Term], wanted: Wanted, number: int) -> bool:
        """Whether so many learnings match."""
        query = fts5_query(looked_for, wanted, self.scope.tenant, self.scope.projects)
        return len(self._run(self._FOUND, self._FOUND_GOOD, query, number)) == number

    def matches(self, looked_for: Sequence[Term], wanted: Wanted) -> list[Match]:
        """The most relevant matches."""
        query = fts5_query(looked_for, wanted, self.scope.tenant, self.scope.projects)
        found = self._run(self._RANKED, self._RANKED_GOOD, query, CANDIDATES)
        return [Match(row.seq, row.relevance, row.field, row.quality_score) for row in found]


class PostgresSearch:
    """A tsvector finds the rows; its ts_rank knows nothing of how rare a word is, so BM25 is computed here."""

    _FOUND = "SELECT seq FROM learnings WHERE {where} AND lexemes @@ CAST(:query AS tsquery) LIMIT :number"
    # Close to BM25, at a fraction of its cost.
    _NEARLY = ":idf_{number} * ts_rank('{{1, 1, 1, 1}}', lexemes, CAST(:term_{number} AS tsquery), 1)"
    _BEST = (
        "SELECT seq, words, quality_score, lexemes FROM learnings WHERE {where} AND lexemes @@ CAST(:query AS tsquery) "
        "ORDER BY {nearly} DESC, seq DESC LIMIT :number"
    )
    _RANKED = (
        "SELECT seq, words, quality_score, CAST(lexemes AS text) AS lexemes, "
        f"CASE WHEN lexemes @@ CAST(:in_pattern AS tsquery) THEN {FIELDS['A']} "
        f"WHEN lexemes @@ CAST(:in_context AS tsquery) THEN {FIELDS['B']} ELSE {FIELDS['C']} END AS field "
        f"FROM ({_BEST}) AS best"
    )
    _HAVING = "(SELECT count(*) FROM learnings WHERE tenant = :tenant AND lexemes @@ CAST(:term_{number} AS tsquery))"
    _TEXTS = "(SELECT count(*) FROM learnings WHERE tenant = :tenant)"
    _WORDS = "(SELECT sum(words) FROM learnings WHERE tenant = :tenant)"

    def __init__(self, tx: Tx, scope: Scope) -> None:
        self.tx = tx
        self.scope = scope

    def has(self, looked_for: Sequence[Term], wanted: Wanted, number: int) -> bool:
        """Whether so many learnings match."""
        statement = self._FOUND.format(where=self.scope.condition)
        query = ts_query(looked_for, wanted)
        return len(self.tx.all(self.scope.bind(statement, query=query, number=number))) == number

    def matches(self, looked_for: Sequence[Term], wanted: Wanted) -> list[Match]:
        """The most relevant matches."""
        single = {f"term_{number}": ts_query([term], "any") for number, term in enumerate(looked_for)}
        total, all_words, *having = self._counts(single)
        if not all(having) and (wanted == "every" or not any(having)):
            return []
        statement = self.scope.bind(
            self._RANKED.format(where=self.scope.condition, nearly=self._each(self._NEARLY, " + ", single)),
            query=ts_query(looked_for, wanted),
            in_pattern=ts_query(looked_for, "any", "A"),
            in_context=ts_query(looked_for, "any", "B"),
            number=COUNTED,
            **single,
            **{f"idf_{number}": idf(count, total) for number, count in enumerate(having)},
        )
        often, mean = Frequencies(looked_for), float(all_words) / total
        found = [
            Match(
                row.seq,
                bm25(often.of(row.lexemes), having, row.words, total, mean),
                float(row.field),
                row.quality_score,
            )
            for row in self.tx.all(statement)
        ]
        return sorted(found, key=lambda match: (-match.relevance, -match.seq))[:CANDIDATES]

    def _counts(self, single: Mapping[str, str]) -> Sequence[Any]:
        """Of the tenant: how many learnings, how many words in all, and how many learnings have each term."""
        having = self._each(self._HAVING, ", ", single)
        statement = sa.text(f"SELECT {self._TEXTS}, {self._WORDS}, {having}")
        row = self.tx.one(statement.bindparams(tenant=self.scope.tenant, **single))
        assert row is not None
        return tuple(row)

    @staticmethod
    def _each(part: str, joint: str, single: Mapping[str, str]) -> str:
        return joint.join(part.format(number=number) for number in range(len(single)))


def find(tx: Tx, scope: Scope, looked_for: Sequence[Term], enough: int) -> list[Match]:
    """What has every term; if that is not enough, what has any of them."""
    if not looked_for or not scope.projects:
        return []
    index = (SqliteSearch if tx.dialect == "sqlite" else PostgresSearch)(tx, scope)
    wanted: Wanted = "every" if len(looked_for) == 1 or index.has(looked_for, "every", enough) else "any"
    return index.matches(looked_for, wanted)
