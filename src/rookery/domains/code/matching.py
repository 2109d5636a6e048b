"""Finds names in the texts of defined names, whatever their case: the whole name, its begin, a part, or nearly so."""

import re
from collections.abc import Callable, Mapping
from typing import Literal

MAX_LINES = 2_000
CLOSE = 0.75
MAX_LONGER = 3
Hit = tuple[tuple[int, int], int, str]
"""How good it is, the lower the better, the segment, and the line."""
_Span = tuple[tuple[int, int], int, int, int]
"""The same, with where the line starts and ends."""


def lines_like(
    texts: Mapping[int, str], folded: Mapping[int, str], query: str, match: Literal["exact", "prefix", "fuzzy"]
) -> list[Hit]:
    """The lines of names that match, at most so many. Only if no name contains the query do looser ones count: those
    that have its letters in this order, and if there are none either, those that differ in a few."""
    whole = fold(query)
    if not query.isprintable():
        return []
    if match == "exact":
        hits = _found(folded, f"\n{whole}\t", lambda name: (0, 0))
    elif match == "prefix":
        hits = _found(folded, f"\n{whole}", lambda name: (int(name != whole), len(name)))
    else:
        hits = _found(folded, whole, lambda name: (_rank(name, whole), len(name)))
        hits = hits or _scattered(folded, whole) or _near(folded, whole)
    return [(rank, segment, texts[segment][start:end]) for rank, segment, start, end in sorted(hits)[:MAX_LINES]]


def _rank(name: str, whole: str) -> int:
    return 0 if name == whole else 1 if name.startswith(whole) else 2


def _found(folded: Mapping[int, str], wanted: str, rank: Callable[[str], tuple[int, int]]) -> list[_Span]:
    """Every line whose name has `wanted`, which may include the ends of the name."""
    hits: list[_Span] = []
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


def _scattered(folded: Mapping[int, str], whole: str) -> list[_Span]:
    if len(whole) < 2:
        return []
    letters = "".join(rf"[^\n\t{re.escape(each)}]*{re.escape(each)}" for each in whole)
    pattern = re.compile(rf"^({letters}[^\t\n]*)\t.*$", re.MULTILINE)
    return [
        ((3, len(found[1])), segment, found.start(), found.end())
        for segment, text in folded.items()
        for found in pattern.finditer(text)
    ]


def _near(folded: Mapping[int, str], whole: str) -> list[_Span]:
    """Names that share three letters in a row with the query and are nearly it."""
    from difflib import SequenceMatcher

    grams = {whole[at : at + 3] for at in range(len(whole) - 2)}
    shared = {hit[1:] for gram in grams for hit in _found(folded, gram, lambda name: (0, 0))}
    matcher = SequenceMatcher(b=whole)
    hits: list[_Span] = []
    for segment, start, end in shared:
        name = folded[segment][start:end].partition("\t")[0]
        if abs(len(name) - len(whole)) <= MAX_LONGER:
            matcher.set_seq1(name)
            if matcher.quick_ratio() >= CLOSE and matcher.ratio() >= CLOSE:
                hits.append(((4, int(1000 * (1 - matcher.ratio()))), segment, start, end))
    return hits
