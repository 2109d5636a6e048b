"""From what somebody types to a query of a full-text index, and how well a text matches it. No database here.

A query is words and nothing else: whatever else was typed separates them, so that no text can be anything but words
to the database.
"""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rookery.fulltext.porter import stem
from rookery.fulltext.words import STOP_WORDS, raw_words

MAX_TERMS = 32
MAX_LETTERS = 64
"""Of a longer word the beginning is looked for."""
K1, B = 1.2, 0.75
LEAST_IDF = 1e-6
"""What a word counts that more than half of the texts have, as in SQLite."""
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


def stems(text: str) -> Iterator[str]:
    """The stems of a text's words, in their order."""
    return (stem(plain)[: 4 * MAX_LETTERS] for plain in map(_plain, raw_words(text)) if plain)


def fts5_expression(looked_for: Sequence[Term], wanted: Wanted) -> str:
    """For SQLite: rows that have every term, or any."""
    joint = " AND " if wanted == "every" else " OR "
    return joint.join(f'"{term.word}"{"*" if term.is_prefix else ""}' for term in looked_for)


def ts_query(looked_for: Sequence[Term], wanted: Wanted, weight: str = "") -> str:
    """The same for PostgreSQL; with a weight only in words that have it."""
    joint = " & " if wanted == "every" else " | "
    return joint.join(f"'{term.stem}'{ending(term, weight)}" for term in looked_for)


def ending(term: Term, weight: str) -> str:
    marks = ("*" if term.is_prefix else "") + weight
    return f":{marks}" if marks else ""


def tsvector(texts: Mapping[str, str]) -> str:
    """What PostgreSQL looks through, as the text of a tsvector: the stems of each text with their places and weight."""
    places: dict[str, list[str]] = defaultdict(list)
    place = 0
    for weight, text in texts.items():
        for lexeme in stems(text):
            place += 1
            places[lexeme].append(f"{place}{weight}")
    return " ".join(f"'{lexeme}':{','.join(found)}" for lexeme, found in places.items())


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
