"""One open page at the end of a stream: what it has not been told yet, and what it had seen when it was last here."""

import asyncio
import zlib
from collections.abc import Mapping
from typing import Any

from rookery.identity.signing_in import SignedIn
from rookery.web.topics import TOPICS

MOST_FRAMES = 32
"""Whoever reads so slowly that more are waiting is told to fetch everything instead."""
STALE = "stale"


def digest_of(value: Any) -> str:
    """A short name of what a topic's question was answered."""
    return f"{zlib.crc32(repr(value).encode()):x}"


class Listener:
    """What waits to be sent to a page. However slowly it reads, that does not grow without end.

    `last` is the id of the last event that the browser had, if it comes back: what has changed since is told then.
    """

    def __init__(
        self,
        signed_in: SignedIn,
        topics: frozenset[str],
        *,
        last: str = "",
        feed: str = "",
        query: Mapping[str, str] | None = None,
    ) -> None:
        self.signed_in = signed_in
        self.tenant = signed_in.tenant
        self.topics = topics & TOPICS.keys()
        self.feed = feed
        self.query: Mapping[str, str] = query or {}
        self.woken = asyncio.Event()
        self.mark, _, seen = last.partition("|")
        """Up to which moment the feed has been told; the feed alone knows what it says."""
        self._digests = dict(each.split("=", 1) for each in seen.split(",") if "=" in each)
        self._changed: set[str] = set()
        self._frames: list[bytes] = []

    def see(self, topic: str, digest: str, *, changed: bool) -> None:
        """The present answer of a topic. The page hears of it if it is new, or not the one that it had seen."""
        before = self._digests.get(topic)
        self._digests[topic] = digest
        if changed or (before is not None and before != digest):
            self._changed.add(topic)
        if changed or before != digest:
            self.woken.set()

    def push(self, event: bytes, mark: str) -> None:
        """Send the content of a feed, which is true up to `mark`."""
        if len(self._frames) >= MOST_FRAMES:
            self.stale(mark)
            return
        self._frames.append(event)
        self.reached(mark)

    def reached(self, mark: str) -> None:
        """The page shows what is true up to `mark`."""
        self.mark = mark
        self.woken.set()

    def stale(self, mark: str) -> None:
        """Let the page fetch all that the feed has shown it."""
        self._frames.clear()
        self._changed.add(f"{self.feed}-{STALE}")
        self.reached(mark)

    def take(self) -> bytes:
        """What is new, as events of the stream, and the id to come back with; empty if there is nothing."""
        if not self.woken.is_set():
            return b""
        self.woken.clear()
        changed, self._changed = sorted(self._changed), set()
        frames, self._frames = self._frames, []
        seen = ",".join(f"{topic}={digest}" for topic, digest in sorted(self._digests.items()))
        named = [f"event: {topic}\ndata: changed\n\n".encode() for topic in changed]
        return b"".join([*frames, *named, f"id: {self.mark}|{seen}\n\n".encode()])
