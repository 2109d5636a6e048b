"""From what somebody types to a query of a full-text index, and from what it finds to an order. No database here.

A query is words and nothing else: whatever else was typed separates them, so that no text can be anything but words
to the database.
"""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rookery.domains.tracker.learning_tables import SCOPE_MARK
from rookery.domains.tracker.porter import stem
from rookery.domains.tracker.similarity import STOP_WORDS, raw_words

MAX_TERMS = 32
MAX_LETTERS = 64
"""Of a longer word the beginning is looked for."""
K1, B = 1.2, 0.75
LEAST_IDF = 1e-6
"""What a word counts that more than half of the texts have, as in SQLite."""
FIELDS = {"A": 1.0, "B": 0.6, "C": 0.4}
"""What a match in the pattern, in the context and in applies_to is worth, by the weight of its words."""
NO_DIFFERENCE = 1e-12
Wanted = Literal["every", "any"]


@dataclass(frozen=True, slots=True)
class Term:
    """A word that is looked for, and its stem."""

    word: str
    stem: str

    @property
    def is_prefix(self) -> bool:
        """Whether longer words match as well. Of a single letter they would be too many to mean anything."""
        return len(self.word) > 1


def terms(query: str) -> list[Term]:
    """The distinct words of a query, at most 32; those that mean nothing are left out unless there are no others."""
    found: dict[str, Term] = {}
    idle: dict[str, Term] = {}
    for whole in raw_words(query):
        word = whole[:MAX_LETTERS]
        if plain := _plain(word):
            kept = idle if plain in STOP_WORDS else found
            kept.setdefault(stem(plain), Term(word, stem(plain)))
    return list((found or idle).values())[:MAX_TERMS]


def _plain(word: str) -> str:
    """The word without case and accents, as SQLite's index has it: letters and digits only, or empty."""
    if word.isascii():
        return word.lower()
    return "".join(letter for letter in unicodedata.normalize("NFD", word.lower()) if letter.isalnum())


def _stems(text: str) -> Iterator[str]:
    return (stem(plain)[: 4 * MAX_LETTERS] for plain in map(_plain, raw_words(text)) if plain)


def fts5_query(looked_for: Sequence[Term], wanted: Wanted, tenant: str, projects: Sequence[str]) -> str:
    """For SQLite: rows of these projects of a tenant that have every term, or any."""
    joint = " AND " if wanted == "every" else " OR "
    expression = joint.join(f'"{term.word}"{"*" if term.is_prefix else ""}' for term in looked_for)
    # To ask for a column would cost more than a word that is in no other.
    of = " OR ".join(f'"{chr(SCOPE_MARK)}{f"{tenant} {project}".encode().hex()}"' for project in projects)
    return f"({of}) AND ({expression})"


def ts_query(looked_for: Sequence[Term], wanted: Wanted, weight: str = "") -> str:
    """The same for PostgreSQL; with a weight only in words that have it."""
    joint = " & " if wanted == "every" else " | "
    return joint.join(f"'{term.stem}'{ending(term, weight)}" for term in looked_for)


def ending(term: Term, weight: str) -> str:
    marks = ("*" if term.is_prefix else "") + weight
    return f":{marks}" if marks else ""


def lexemes(pattern: str, context: str | None, applies_to: Sequence[str]) -> str:
    """What PostgreSQL looks through, as the text of a tsvector: the stems with their places and weights."""
    places: dict[str, list[str]] = defaultdict(list)
    place = 0
    for weight, text in zip(FIELDS, (pattern, context or "", " ".join(applies_to)), strict=True):
        for lexeme in _stems(text):
            place += 1
            places[lexeme].append(f"{place}{weight}")
    return " ".join(f"'{lexeme}':{','.join(found)}" for lexeme, found in places.items())


def length(pattern: str, context: str | None, applies_to: Sequence[str]) -> int:
    """How many words a learning has. SQLite's index counts its project as one more, so it is counted here too."""
    return 1 + sum(1 for text in (pattern, context or "", *applies_to) for _ in raw_words(text))


class Frequencies:
    """Counts terms in the text of a tsvector."""

    def __init__(self, looked_for: Sequence[Term]) -> None:
        endings = [(term.stem, "[^']*" if term.is_prefix else "") for term in looked_for]
        self._places = [re.compile(f"'{start}{rest}':([^ ]+)") for start, rest in endings]

    def of(self, vector: str) -> list[int]:
        """How often each term occurs."""
        return [sum(found[1].count(",") + 1 for found in each.finditer(vector)) for each in self._places]


def bm25(frequencies: Sequence[int], documents: Sequence[int], length: int, total: int, mean_length: float) -> float:
    """How well a text matches: `frequencies` of each term in it, `documents` of `total` that have the term at all."""
    norm = K1 * (1 - B + B * length / mean_length)
    return sum(
        idf(having, total) * often * (K1 + 1) / (often + norm)
        for often, having in zip(frequencies, documents, strict=True)
    )


def idf(having: int, total: int) -> float:
    """How much it says that a text has a term which `having` of `total` texts have."""
    value = math.log((total - having + 0.5) / (having + 0.5))
    return value if value > 0 else LEAST_IDF


@dataclass(frozen=True, slots=True)
class Match:
    """A learning that was found. `relevance` is its BM25: the higher the better."""

    seq: int
    relevance: float
    field: float
    quality: int


def ranked(found: Iterable[Match], limit: int) -> list[tuple[Match, float]]:
    """The best with their scores: half relevance within what was found, then the field, then quality; newest first."""
    matches = list(found)
    least = min((match.relevance for match in matches), default=0.0)
    span = max((match.relevance for match in matches), default=0.0) - least
    scored = [(match, round(_score(match, least, span), 6)) for match in matches]
    return sorted(scored, key=lambda pair: (-pair[1], -pair[0].seq))[:limit]


def _score(match: Match, least: float, span: float) -> float:
    relevance = (match.relevance - least) / span if span > NO_DIFFERENCE else 1.0
    return 0.5 * relevance + 0.3 * match.field + 0.2 * match.quality / 100
