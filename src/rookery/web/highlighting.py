"""Marks the words of a query in texts of others. Places are found in the plain text; every piece is escaped by itself.

So no text can become anything but text, and no mark can fall into the middle of an entity.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from rookery.fulltext.query import Term, stems, terms
from rookery.web.showing import harmless

Span = tuple[int, int]
PASSAGE = 420
"""So many characters of a text are shown around the first words that were found."""
MOST_MARKS = 500
_WORD = re.compile(r"[^\W_]+")
_OPEN, _CLOSE = Markup("<mark>"), Markup("</mark>")


@dataclass(frozen=True, slots=True)
class Sought:
    """The words of a query, as the indexes understand them."""

    terms: Sequence[Term]

    @classmethod
    def of(cls, query: str) -> "Sought":
        return cls(terms(query))

    def spans(self, text: str) -> list[Span]:
        """Where words of the query stand in the text, in order."""
        if not self.terms:
            return []
        found: list[Span] = []
        for word in _WORD.finditer(text):
            if self._matches(word[0]):
                found.append(word.span())
                if len(found) == MOST_MARKS:
                    break
        return found

    def _matches(self, word: str) -> bool:
        stem = next(stems(word), "")
        return any(stem == term.stem or (term.is_prefix and stem.startswith(term.stem)) for term in self.terms)


def marked(text: object, query: str, longest: int = 20_000) -> Markup:
    """The whole text, harmless, with the words of the query marked."""
    shown = harmless(unicodedata.normalize("NFC", str(text)), longest)
    return _marked(shown, Sought.of(query).spans(shown))


def passage(text: object, query: str, length: int = PASSAGE) -> Markup:
    """The part of a text in which most words of the query stand together, with these marked."""
    shown = harmless(unicodedata.normalize("NFC", str(text)))
    spans = Sought.of(query).spans(shown)
    start = _best_start(spans, length)
    start = max(0, min(start - length // 5, len(shown) - length))
    end = min(len(shown), start + length)
    start, end = _at_words(shown, start, end)
    within = [(first - start, last - start) for first, last in spans if first >= start and last <= end]
    before, after = "… " if start > 0 else "", " …" if end < len(shown) else ""
    return Markup("{}{}{}").format(before, _marked(shown[start:end], within), after)


def _best_start(spans: Sequence[Span], length: int) -> int:
    """Where the window begins that holds the most marks; the first of such."""
    best, best_start, last = 0, 0, 0
    for first, (start, _) in enumerate(spans):
        while last < len(spans) and spans[last][1] <= start + length:
            last += 1
        if last - first > best:
            best, best_start = last - first, start
    return best_start


def _at_words(text: str, start: int, end: int) -> Span:
    """The same piece, not beginning or ending within a word if one is not far."""
    if start > 0 and (blank := text.find(" ", start, start + 30)) >= 0:
        start = blank + 1
    if end < len(text) and (blank := text.rfind(" ", max(start, end - 30), end)) > start:
        end = blank
    return start, end


def _marked(text: str, spans: Sequence[Span]) -> Markup:
    pieces: list[Markup] = []
    place = 0
    for start, end in spans:
        pieces += [escape(text[place:start]), _OPEN, escape(text[start:end]), _CLOSE]
        place = end
    return Markup("").join([*pieces, escape(text[place:])])
