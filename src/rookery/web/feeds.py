"""Feeds: what pages can follow whose content is made once for all who look at the same."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from rookery.web.board_feed import BoardFeed
from rookery.web.listener import Listener

if TYPE_CHECKING:
    from rookery.app import Platform


class Feed(Protocol):
    """Asked at most a few times a second, and at least once, with all pages that follow it now."""

    async def look(self, listeners: Sequence[Listener]) -> None: ...


def make_feeds(platform: "Platform") -> dict[str, Feed]:
    """Every feed by the name that a page gives."""
    return {"board": BoardFeed(platform)}
