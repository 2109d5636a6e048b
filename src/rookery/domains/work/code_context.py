"""Asks the installation's code index for what an agent is told of a project's code, with the agent's own rights."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rookery.core.actor import Actor
from rookery.core.call import Calls
from rookery.core.errors import NotFound, RookeryError
from rookery.domains.work.repo_map import (
    FIRST,
    MAP_LINES,
    Symbol,
    best_matches,
    is_test,
    matches_text,
    offered,
    repo_map,
    words_of,
)

log = logging.getLogger("rookery.work")
TOOL = "code_symbols"
LIMIT_S = 120.0
"""So long a first look at a large project may take; without it the agent begins all the same."""
KINDS = ["function", "class", "interface", "type_alias", "enum", "namespace", "export"]
PAGE = 200
PAGES = 2
FOUND_FOR_A_WORD = 20


@dataclass(frozen=True, slots=True)
class CodeContext:
    """What is told: the map, and the symbols that the task names. Both may be empty."""

    map: str = ""
    matches: str = ""


async def code_context(calls: Calls, actor: Actor, description: str) -> CodeContext:
    """What the agent may see of the code; nothing if it has no such tool, or the index cannot be had in time."""
    if TOOL not in calls.registry:
        return CodeContext()
    index = _Index(calls, actor)
    try:
        async with asyncio.timeout(LIMIT_S):
            return CodeContext(repo_map(await index.exported()), matches_text(await index.named_in(description)))
    except TimeoutError:
        log.warning("the code of %s was not read within %g s; its agent begins without a map", actor.project, LIMIT_S)
    except RookeryError as error:
        log.info("the agent begins without a map of the code: %s", error.message)
    return CodeContext()


class _Index:
    def __init__(self, calls: Calls, actor: Actor) -> None:
        self._calls = calls
        self._actor = actor

    async def exported(self) -> list[Symbol]:
        """Enough of what the files offer to fill a map: of the folders that count first, then of all."""
        found: list[Symbol] = []
        for folder in (*FIRST, None):
            if sum(not is_test(each["path"]) for each in found) >= MAP_LINES:
                break
            try:
                found += offered(await self._pages(folder))
            except NotFound:
                # The project has no such folder.
                if folder is None:
                    raise
        return found

    async def named_in(self, description: str) -> Sequence[Symbol]:
        found = {
            word: (await self._ask(query=word, match="fuzzy", limit=FOUND_FOR_A_WORD))["symbols"]
            for word in words_of(description)
        }
        return best_matches(found)

    async def _pages(self, folder: str | None) -> list[Symbol]:
        found: list[Symbol] = []
        where: dict[str, Any] = {} if folder is None else {"path": folder}
        for _ in range(PAGES):
            page = await self._ask(kinds=KINDS, limit=PAGE, **where)
            found += page["symbols"]
            if "next_cursor" not in page:
                break
            where["cursor"] = page["next_cursor"]
        return found

    async def _ask(self, **arguments: Any) -> dict[str, Any]:
        return (await self._calls.call(self._actor, TOOL, arguments)).structured
