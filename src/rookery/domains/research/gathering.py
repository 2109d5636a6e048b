"""Several searches about one topic, and what they find together."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rookery.core.context import Context
from rookery.core.errors import RookeryError
from rookery.domains.research.port import Search
from rookery.domains.research.searching import Found, Searching
from rookery.outgoing.rate_limits import show

SIDES = ("benefits", "challenges", "examples", "latest news")
MOST = 5
COUNT = 5
KEPT_S = 600.0
ASKS_BY_ANSWERS = "2026-07-28"


@dataclass(slots=True)
class Gathered:
    """What each query found that none before it had, and why some found nothing at all."""

    groups: list[tuple[str, list[Found]]] = field(default_factory=list[tuple[str, list[Found]]])
    failed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def total(self) -> int:
        return sum(len(found) for _, found in self.groups)

    def as_json(self) -> dict[str, Any]:
        groups = [[query, [each.as_dict() for each in found]] for query, found in self.groups]
        return {"groups": groups, "failed": [list(each) for each in self.failed]}

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> "Gathered":
        groups = [(query, [Found(**each) for each in found]) for query, found in kept["groups"]]
        return cls(groups, [cast("tuple[str, str]", tuple(each)) for each in kept["failed"]])


def queries_about(topic: str, given: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The queries to run, the topic first and each once; and those that are too many."""
    wanted = list(dict.fromkeys([topic, *(given or [f"{topic} {side}" for side in SIDES])]))
    return wanted[:MOST], wanted[MOST:]


async def gather(searching: Searching, queries: Sequence[str]) -> Gathered:
    """Run the queries at the same time. Those that fail are left out; if all do, the first error is raised."""
    done = 0

    async def run(query: str) -> list[Found] | RookeryError:
        nonlocal done
        try:
            return await searching.find(Search(query, COUNT))
        except RookeryError as error:
            return error
        finally:
            done += 1
            show(searching.ctx, f"{done} of {len(queries)} searches done")

    answers = await asyncio.gather(*map(run, queries))
    errors = [answer for answer in answers if isinstance(answer, RookeryError)]
    if len(errors) == len(answers):
        raise errors[0]
    gathered, known = Gathered(), set[str]()
    for query, answer in zip(queries, answers, strict=True):
        if isinstance(answer, RookeryError):
            gathered.failed.append((query, answer.message))
            continue
        new = {found.url: found for found in reversed(answer) if found.url not in known}
        gathered.groups.append((query, [found for found in answer if new.get(found.url) is found]))
        known |= new.keys()
    return gathered


class Kept:
    """What was found before the client was asked: a client of 2026-07-28 answers by calling again from the start."""

    def __init__(self, ctx: Context, queries: Sequence[str]) -> None:
        self._ctx = ctx
        said = json.dumps([ctx.actor.subject, *queries])
        self._key = f"asked/{hashlib.sha256(said.encode()).hexdigest()}"
        self.needed = ctx.client.sampling and ctx.client.protocol >= ASKS_BY_ANSWERS
        self.found = False
        """Whether the client has been asked before, in a call that ended with the question."""

    async def get(self) -> Gathered | None:
        if not self.needed:
            return None
        kept = await self._ctx.read(lambda tx: self._ctx.storage_in(tx).get(self._key))
        self.found = kept is not None
        return Gathered.from_json(kept) if self.found else None

    async def keep(self, gathered: Gathered) -> None:
        if self.needed:
            value = gathered.as_json()
            await self._ctx.write(lambda tx: self._ctx.storage_in(tx).set(self._key, value, KEPT_S))

    async def forget(self) -> None:
        if self.needed:
            await self._ctx.write(lambda tx: self._ctx.storage_in(tx).delete(self._key))
