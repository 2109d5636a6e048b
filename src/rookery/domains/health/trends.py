"""Whether a count gets better. Pure: a few numbers in, a word out."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

Direction = Literal["falling", "steady", "rising"]
LEAST_CHANGE = 1
LEAST_PERCENT = 10
NO_TREND = "no trend data"
_OF_A_DEFECT: dict[Direction, str] = {"falling": "IMPROVING", "steady": "STABLE", "rising": "REGRESSING"}
_OF_A_SIZE: dict[Direction, str] = {"falling": "SHRINKING", "steady": "STABLE", "rising": "GROWING"}


def direction(values: Sequence[int]) -> Direction | None:
    """Where `values`, oldest first, are going: the average of the newer half compared with that of the older.

    With an odd number the one in the middle is of the older half. A difference of less than 1, or of less than 10 % of
    the older average, is none. None: there are fewer than two.
    """
    if len(values) < 2:
        return None
    middle = (len(values) + 1) // 2
    older, newer = sum(values[:middle]), sum(values[middle:])
    old_count, new_count = middle, len(values) - middle
    # Everything times both counts: in whole numbers the limit itself is never missed by a rounding.
    change = newer * old_count - older * new_count
    if abs(change) * 100 < max(LEAST_CHANGE * 100 * old_count * new_count, LEAST_PERCENT * older * new_count):
        return "steady"
    return "rising" if change > 0 else "falling"


def shown(values: Sequence[int], *, defect: bool = True, starred: Sequence[bool] = ()) -> str:
    """The values with arrows between them, and what they say; `defect` is what there should be less of.

    `starred` says of each value whether it gets a star; absent: none does.
    """
    found = direction(values)
    if found is None:
        return NO_TREND
    texts = [f"{value}{'*' if star else ''}" for value, star in zip_longest(values, starred)]
    return f"{' → '.join(texts)} {(_OF_A_DEFECT if defect else _OF_A_SIZE)[found]}"
