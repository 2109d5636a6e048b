"""Lists of GitHub in pages of ours: a cursor says at which of its pages, and where in it, the next one begins."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rookery.core.errors import InvalidParams
from rookery.domains.github.answers import Json, a_list, checked, has_next
from rookery.domains.github.client import PAGE, GitHub

MAX_ASKED = 10
"""Pages of GitHub for one of ours, where most of what they have is left out."""
_CURSOR = re.compile(r"([1-9][0-9]{0,5})\.([0-9]{1,3})\.([1-9][0-9]{0,2})")


@dataclass(frozen=True, slots=True)
class Place:
    """The entry after `skip` others on a page of GitHub with `size` entries."""

    page: int
    skip: int
    size: int

    def __str__(self) -> str:
        return f"{self.page}.{self.skip}.{self.size}"


def place_of(cursor: str | None, size: int) -> Place:
    """Where a list goes on, or begins with pages of `size`."""
    if cursor is None:
        return Place(1, 0, min(size, PAGE))
    found = _CURSOR.fullmatch(cursor)
    place = Place(int(found[1]), int(found[2]), int(found[3])) if found else None
    if place is None or place.size > PAGE or place.skip >= place.size:
        raise InvalidParams("the cursor is not one of ours", hint="start again without a cursor")
    return place


async def listed(
    github: GitHub, path: str, query: Mapping[str, Any], what: str, *, limit: int, place: Place,
    wanted: Callable[[Json], bool],
) -> tuple[list[Json], str | None]:  # fmt: skip
    """Up to `limit` of the wanted entries from `place` on, and the cursor for more, if there may be any."""
    found: list[Json] = []
    for _ in range(MAX_ASKED):
        asked = {**query, "per_page": place.size, "page": place.page}
        answer = checked(await github.get(path, asked), what)
        entries = a_list(answer)
        for position, entry in enumerate(entries[place.skip :], start=place.skip):
            if not wanted(entry):
                continue
            if len(found) == limit:
                return found, str(Place(place.page, position, place.size))
            found.append(entry)
        if not has_next(answer):
            return found, None
        place = Place(place.page + 1, 0, place.size)
        if len(found) == limit:
            break
    return found, str(place)
