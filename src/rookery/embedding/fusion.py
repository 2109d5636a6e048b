"""Makes one ranked list of several."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)
DEPTH = 50
"""How many of each list are worth asking for. More changed nothing."""
STEEP = 2
EVERY, SHARE, AHEAD = 3.0, 8, 0.5
"""Tuned on pairs from packages other than those that `make bench` measures with: with numbers like these the worst of
four sets comes out best. Equal weights at k = 60 do better on plain questions, by 4 %, and far worse on names of
functions and on questions in other words than the answer.
"""


def rrf(
    lists: Iterable[Sequence[Item]], k: float = 60, weights: Sequence[float] | None = None
) -> list[tuple[Item, float]]:
    """Every item of the lists with the sum of weight / (k + rank) over them, best first.

    Of items with one sum that comes first which was met first, so the order depends on the lists alone.
    """
    ranked = list(lists)
    sums: dict[Item, float] = {}
    for items, weight in zip(ranked, weights or [1.0] * len(ranked), strict=True):
        for rank, item in enumerate(dict.fromkeys(items), start=1):
            sums[item] = sums.get(item, 0.0) + weight / (k + rank)
    return sorted(sums.items(), key=lambda found: -found[1])


def hybrid(keyword: Sequence[tuple[Item, float]], vectors: Sequence[Item], coverage: float) -> list[Item]:
    """What was found by words, each with its BM25, and what was found by meaning, in one order.

    `coverage` is the share of the query's words that the best find by words has. If that is all of them, as with the
    name of a function, words count three times as much as meaning; with four words of five half as much, with less
    hardly, unless the best is far ahead of the second.
    """
    weight = EVERY * coverage**SHARE + AHEAD * _lead([relevance for _, relevance in keyword[:2]])
    return [item for item, _ in rrf([[item for item, _ in keyword], vectors], STEEP, [weight, 1.0])]


def _lead(relevances: Sequence[float]) -> float:
    """How far the first is ahead of the second: from 0 to 1, 1 if it is the only one."""
    if len(relevances) < 2:
        return 1.0
    first, second = relevances
    return (first - second) / first if first > 0 else 0.0
