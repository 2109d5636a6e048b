"""Finds names in the texts of defined names, whatever their case: the whole name, its begin, a part, or nearly so."""

import re
from collections.abc import Callable, Mapping
from typing import Literal

from rookery.domains.code.extract import MAX_NAME

CLOSE = 0.75
MAX_LONGER = 3
Span = tuple[tuple[int, int], int, int, int]
"""How good it is, the lower the better, the segment, and where the line starts and ends in its text."""


def lines_like(folded: Mapping[int, str], query: str, match: Literal["exact", "prefix", "fuzzy"]) -> list[Span]:
    """The lines of names that match, the best first. Only if no name contains the query do looser ones count: those
    that have its letters in this order, and if there are none either, those that differ in a few."""
    whole = fold(query)
    if not query.isprintable() or len(query) > MAX_NAME + MAX_LONGER:
        return []
    if match == "exact":
        hits = _found(folded, f"\n{whole}\t", lambda name: (0, 0))
    elif match == "prefix":
        hits = _found(folded, f"\n{whole}", lambda name: (int(name != whole), len(name)))
    else:
        hits = _found(folded, whole, lambda name: (_rank(name, whole), len(name)))
        hits = hits or _scattered(folded, whole) or _near(folded, whole)
    hits.sort()
    return hits


def _rank(name: str, whole: str) -> int:
    return 0 if name == whole else 1 if name.startswith(whole) else 2


def _found(folded: Mapping[int, str], wanted: str, rank: Callable[[str], tuple[int, int]]) -> list[Span]:
    """Every line whose name has `wanted`, which may include the ends of the name."""
    hits: list[Span] = []
    for segment, text in folded.items():
        at = text.find(wanted)
        while at >= 0:
            start = text.rfind("\n", 0, at + 1) + 1
            end = text.index("\n", max(start, at + 1))
            tab = text.find("\t", start, end)
            # What stands behind the name are places, which may look like one.
            if at < tab:
                hits.append((rank(text[start:tab]), segment, start, end))
            at = text.find(wanted, end)
    return hits


def fold(text: str) -> str:
    """The text in small letters, every character where it was."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    # Of some letters the small one is two characters.
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


def _scattered(folded: Mapping[int, str], whole: str) -> list[Span]:
    if len(whole) < 2:
        return []
    letters = "".join(rf"[^\n\t{re.escape(each)}]*{re.escape(each)}" for each in whole)
    pattern = re.compile(rf"^({letters}[^\t\n]*)\t.*$", re.MULTILINE)
    return [
        ((3, len(found[1])), segment, found.start(), found.end())
        for segment, text in folded.items()
        for found in pattern.finditer(text)
    ]


def _near(folded: Mapping[int, str], whole: str) -> list[Span]:
    """Names that share three letters in a row with the query and are nearly it."""
    from difflib import SequenceMatcher

    grams = {whole[at : at + 3] for at in range(len(whole) - 2)}
    if not grams:
        return []
    # Names are looked at one by one only where three letters are the same and the length is about it.
    near = {
        span[1:]
        for gram in grams
        for span in _found(folded, gram, lambda name: (abs(len(name) - len(whole)), 0))
        if span[0][0] <= MAX_LONGER
    }
    matcher = SequenceMatcher(b=whole)
    hits: list[Span] = []
    for segment, start, end in near:
        text = folded[segment]
        matcher.set_seq1(text[start : text.index("\t", start)])
        if matcher.quick_ratio() >= CLOSE and matcher.ratio() >= CLOSE:
            hits.append(((4, int(1000 * (1 - matcher.ratio()))), segment, start, end))
    return hits
