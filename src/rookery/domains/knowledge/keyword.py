"""Looks through chunks with the full-text index of either database. Both find the same and order it alike."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.knowledge.tables import SCOPE_MARK
from rookery.fulltext.porter import stem
from rookery.fulltext.query import Frequencies, Term, Wanted, bm25, fts5_expression, idf, terms, ts_query
from rookery.fulltext.words import words

CLOSELY = 4_000
"""How many chunks may be compared with each other: each costs about 3 µs. A common word alone is in far more."""
COUNTED = 300
"""On PostgreSQL so many are looked at more closely: those for which its own rank is best."""
Ranked = list[tuple[int, float]]
"""Numbers of chunks, each with its BM25: the higher the better."""


@dataclass(frozen=True, slots=True)
class Word(Term):
    """A word that is looked for as such: in a document longer words that begin like it mean something else."""

    @property
    def is_prefix(self) -> bool:
        return False


def looked_for(query: str) -> list[Word]:
    """The distinct words of a query that mean something, at most 32."""
    return [Word(term.word, term.stem) for term in terms(query)]


class Coverage:
    """Says of texts which part of some words they have."""

    def __init__(self, wanted: Sequence[Term]) -> None:
        self._stems = [term.stem for term in wanted]
        # A stem begins like the word it is of, so nearly all words of a text need not be stemmed.
        self._beginnings = tuple({found[:2] for found in self._stems})
        self._likely = re.compile(f"(?<![^\\W_])(?:{'|'.join(map(re.escape, self._beginnings))})[^\\W_]*")

    def of(self, text: str) -> float:
        there = {stem(word) for word in self._words(text)}
        return sum(found in there for found in self._stems) / len(self._stems)

    def _words(self, text: str) -> set[str]:
        if text.isascii():
            return set(self._likely.findall(text.lower()))
        return {word for word in words(text) if word.startswith(self._beginnings)}


def keyword_scores(wanted: Sequence[Term], ranked: Ranked, texts: Mapping[int, str]) -> dict[int, float]:
    """From 0 to 1: how relevant each is beside the most relevant, less where words of the query are missing."""
    best, coverage = max((relevance for _, relevance in ranked), default=0.0), Coverage(wanted)
    return {
        seq: (relevance / best if best > 0 else 1.0) * math.sqrt(coverage.of(texts[seq]))
        for seq, relevance in ranked
        if seq in texts
    }


@dataclass(frozen=True, slots=True)
class Choice:
    """What a chunk must have to be compared with others, and which further words count then."""

    required: Sequence[Term]
    how: Wanted = "any"
    further: Sequence[Term] = ()

    @property
    def counted(self) -> list[Term]:
        """What the relevance is made of. A required word that is a further one as well counts twice."""
        return [*self.required, *self.further]


def choose(counts: Sequence[tuple[Term, int]], enough: Callable[[Sequence[Term]], bool]) -> Choice:
    """How to compare few chunks and still find the best.

    `counts` says how many chunks have each term, `enough` whether as many as are wanted have all of some terms. Chunks
    that have every term come first; if these are too few, rare terms decide, since common ones say next to nothing.
    """
    rarest = [term for term, count in sorted(counts, key=lambda each: each[1]) if count]
    if sum(count for _, count in counts) <= CLOSELY or len(rarest) < 2:
        return Choice(rarest)
    if enough(rarest):
        return Choice(rarest, "every")
    having, total, rare = dict(counts), 0, list[Term]()
    for term in rarest:
        total += having[term]
        if total > CLOSELY:
            break
        rare.append(term)
    if rare:
        return Choice(rare, "any", rarest)
    sizes = range(len(rarest) - 1, 1, -1)
    return Choice(next((some for size in sizes if enough(some := rarest[:size])), rarest[:1]), "every")


class SqliteKeywords:
    """FTS5. The index knows to which project each chunk belongs, so it alone finds and orders them."""

    _RANKED = sa.text(
        "SELECT rowid AS seq, -rank AS relevance FROM knowledge_chunks_fts WHERE knowledge_chunks_fts MATCH :query "
        "AND rank MATCH 'bm25(0, 1, 1)' ORDER BY rank LIMIT :number"
    )
    _FOUND = sa.text("SELECT rowid FROM knowledge_chunks_fts WHERE knowledge_chunks_fts MATCH :query LIMIT :number")
    _COUNT = sa.text("SELECT count(*) FROM knowledge_chunks_fts WHERE knowledge_chunks_fts MATCH :query")
    _SIZE = sa.text(
        "SELECT count(*) FROM (SELECT 1 FROM knowledge_chunks WHERE project_id IN :projects LIMIT :number)"
    ).bindparams(sa.bindparam("projects", expanding=True))

    def __init__(self, tx: Tx, tenant: str, projects: Sequence[str]) -> None:
        self.tx = tx
        self.projects = list(projects)
        # To ask for a column would cost more than a word that is in no other.
        self._of = " OR ".join(f'"{chr(SCOPE_MARK)}{f"{tenant} {project}".encode().hex()}"' for project in projects)

    def ranked(self, wanted: Sequence[Term], number: int) -> Ranked:
        many = self.tx.scalar(self._SIZE, {"projects": self.projects, "number": CLOSELY}) == CLOSELY
        choice = self._chosen(wanted, number) if many else Choice(wanted)
        if not choice.required:
            return []
        query = f"({self._of}) AND ({fts5_expression(choice.required, choice.how)})"
        if choice.further:
            query += f" AND ({fts5_expression(choice.further, 'any')})"
        return [(row.seq, row.relevance) for row in self.tx.all(self._RANKED, {"query": query, "number": number})]

    def _chosen(self, wanted: Sequence[Term], number: int) -> Choice:
        def enough(some: Sequence[Term]) -> bool:
            query = f"({fts5_expression(some, 'every')}) AND ({self._of})"
            return len(self.tx.all(self._FOUND, {"query": query, "number": number})) == number

        # Of everybody's chunks: these are counted in a moment, and it is only a matter of cost.
        counts = [int(self.tx.scalar(self._COUNT, {"query": fts5_expression([term], "any")})) for term in wanted]
        return choose(list(zip(wanted, counts, strict=True)), enough)


class PostgresKeywords:
    """A tsvector finds the rows; its ts_rank knows nothing of how rare a word is, so BM25 is computed here."""

    _HAVING = (
        "(SELECT count(*) FROM knowledge_chunks WHERE tenant = :tenant AND lexemes @@ CAST(:term_{number} AS tsquery))"
    )
    _TEXTS = "(SELECT count(*) FROM knowledge_chunks WHERE tenant = :tenant)"
    _WORDS = "(SELECT sum(words) FROM knowledge_chunks WHERE tenant = :tenant)"
    # Close to BM25, at a fraction of its cost.
    _NEARLY = "CAST(:idf_{number} AS float) * ts_rank('{{1, 1, 1, 1}}', lexemes, CAST(:term_{number} AS tsquery), 1)"
    _MATCHING = (
        "FROM knowledge_chunks WHERE tenant = :tenant AND project_id IN :projects "
        "AND lexemes @@ CAST(:query AS tsquery)"
    )
    _BEST = (
        f"SELECT seq, words, CAST(lexemes AS text) AS lexemes {_MATCHING} "
        "ORDER BY {nearly} DESC, seq DESC LIMIT :number"
    )
    _FOUND = f"SELECT seq {_MATCHING} LIMIT :number"

    def __init__(self, tx: Tx, tenant: str, projects: Sequence[str]) -> None:
        self.tx = tx
        self.tenant = tenant
        self.projects = list(projects)

    def ranked(self, wanted: Sequence[Term], number: int) -> Ranked:
        total, all_words, *counts = self._counts(wanted)
        having = dict(zip(wanted, counts, strict=True))
        choice = choose(
            list(having.items()),
            lambda some: len(self._matching(self._FOUND, ts_query(some, "every"), number)) == number,
        )
        if not choice.required:
            return []
        single = _single(choice.counted)
        rows = self._matching(
            self._BEST.format(nearly=_each(self._NEARLY, " + ", single)),
            ts_query(choice.required, choice.how),
            COUNTED,
            **single,
            **{f"idf_{place}": idf(having[term], total) for place, term in enumerate(choice.counted)},
        )
        often, mean = Frequencies(choice.counted), float(all_words) / total
        documents = [having[term] for term in choice.counted]
        found = [(row.seq, bm25(often.of(row.lexemes), documents, row.words, total, mean)) for row in rows]
        return sorted(found, key=lambda each: (-each[1], each[0]))[:number]

    def _matching(self, statement: str, query: str, number: int, **values: Any) -> Sequence[sa.Row[Any]]:
        values |= {"tenant": self.tenant, "projects": self.projects, "query": query, "number": number}
        return self.tx.all(sa.text(statement).bindparams(sa.bindparam("projects", expanding=True)), values)

    def _counts(self, wanted: Sequence[Term]) -> Sequence[Any]:
        """Of the tenant: how many chunks, how many words in all, and how many chunks have each term."""
        single = _single(wanted)
        having = _each(self._HAVING, ", ", single)
        row = self.tx.one(sa.text(f"SELECT {self._TEXTS}, {self._WORDS}, {having}"), {"tenant": self.tenant, **single})
        assert row is not None
        return tuple(row)


def _single(wanted: Sequence[Term]) -> dict[str, str]:
    return {f"term_{place}": ts_query([term], "any") for place, term in enumerate(wanted)}


def _each(part: str, joint: str, single: Mapping[str, str]) -> str:
    return joint.join(part.format(number=number) for number in range(len(single)))


def find(tx: Tx, tenant: str, projects: Sequence[str], wanted: Sequence[Term], number: int) -> Ranked:
    """The chunks of these projects that have the words, or the rarer of them, the most relevant first."""
    if not wanted or not projects:
        return []
    index = (SqliteKeywords if tx.dialect == "sqlite" else PostgresKeywords)(tx, tenant, projects)
    return index.ranked(wanted, number)
