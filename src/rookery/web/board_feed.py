"""The cards that have changed, for all open boards: read and drawn once for those who look at the same."""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rookery.core.actor import Actor
from rookery.core.decide import decide
from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.domains.tracker.board_changes import Changes, Mark, changes_since, mark_of
from rookery.domains.tracker.show_board import show_board
from rookery.identity.binding import Binding
from rookery.identity.tables import EPOCH
from rookery.web.board_view import draw_cards, filters_of
from rookery.web.listener import Listener

if TYPE_CHECKING:
    from rookery.app import Platform

SETTLED_S = 2.0
"""After so long no transaction commits a change with a number below those that were seen."""
Project = tuple[str, str]


@dataclass(slots=True)
class Viewer:
    """An open board: whose it is, what they chose to see, and what they may do now."""

    listener: Listener
    filters: dict[str, Any]
    actor: Actor | None = None
    may_move: bool = False
    joined: bool = False

    @property
    def key(self) -> str:
        """The same for all who are sent the same."""
        return json.dumps([self.may_move, self.filters], sort_keys=True)


@dataclass(slots=True)
class Watched:
    """How far the changes of a project have been told."""

    mark: Mark
    low: int
    known: frozenset[int] = frozenset()
    passed: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])

    def advance(self, found: Changes) -> None:
        """Everything that was found has been told."""
        now = time.monotonic()
        self.mark = found.mark
        self.known |= found.seqs
        self.passed.append((now, found.mark.change))
        while self.passed and now - self.passed[0][0] > SETTLED_S:
            self.low = self.passed.pop(0)[1]
        self.known = frozenset(seq for seq in self.known if seq > self.low)


class BoardFeed:
    """Sends `board` events: drawn cards, the ids of those that are no longer there, and the counts."""

    def __init__(self, platform: "Platform") -> None:
        self._platform = platform
        self._viewers: dict[Listener, Viewer] = {}
        self._watched: dict[Project, Watched] = {}
        self._epoch: int | None = None

    async def look(self, listeners: Sequence[Listener]) -> None:
        known = self._viewers
        self._viewers = {each: known.get(each) or Viewer(each, filters_of(each.query)) for each in listeners}
        if not listeners:
            self._watched.clear()
            return
        await self._check_rights()
        boards: dict[Project, list[Viewer]] = {}
        for viewer in self._viewers.values():
            if viewer.actor is not None and viewer.actor.project is not None:
                boards.setdefault((viewer.actor.tenant, viewer.actor.project), []).append(viewer)
        self._watched = {project: watched for project, watched in self._watched.items() if project in boards}
        for project, viewers in boards.items():
            await self._look_at(project, viewers)

    async def _check_rights(self) -> None:
        """Who may see and move what, anew for everybody whenever any right has changed."""
        epoch = self._platform.database.epoch(EPOCH)
        unsure = [each for each in self._viewers.values() if epoch != self._epoch or not each.joined]
        if not unsure:
            return
        whose = {(each.listener.tenant, each.listener.signed_in.person, _slug(each)): each for each in unsure}
        found = await self._platform.database.read(partial(self._resolve, whose))
        for viewer in unsure:
            viewer.actor = found[viewer.listener.tenant, viewer.listener.signed_in.person, _slug(viewer)]
            viewer.may_move = viewer.actor is not None and self._may(viewer.actor, "set_issue_status")
        self._epoch = epoch

    def _resolve(self, whose: dict[tuple[str, str, str | None], Viewer], tx: Tx) -> dict[Any, Actor | None]:
        found: dict[Any, Actor | None] = {}
        for (tenant, person, slug), viewer in whose.items():
            binding = Binding(
                tenant=tenant, person=person, project=slug, session=viewer.listener.signed_in.id, source="web"
            )
            try:
                actor = self._platform.resolver.resolve(tx, binding).actor
            except RookeryError:
                actor = None
            allowed = actor is not None and decide(actor, show_board).outcome == "allow"
            found[tenant, person, slug] = actor if allowed else None
        return found

    def _may(self, actor: Actor, tool: str) -> bool:
        return decide(actor, self._platform.registry.require(tool)).listed

    async def _look_at(self, project: Project, viewers: Sequence[Viewer]) -> None:
        watched = self._watched.get(project)
        if watched is None:
            mark = await self._platform.database.read(lambda tx: mark_of(tx, project[1]))
            watched = self._watched[project] = Watched(mark, mark.change)
        here = [each for each in viewers if each.joined]
        since = Mark(watched.low, watched.mark.number)
        found = await self._platform.database.read(lambda tx: changes_since(tx, *project, since, watched.known))
        if not await self._tell(here, found):
            return
        watched.advance(found)
        await self._welcome([each for each in viewers if not each.joined], project, watched.mark)

    async def _welcome(self, viewers: Sequence[Viewer], project: Project, now: Mark) -> None:
        """Whoever comes is told what has changed since their page was drawn."""
        by_mark: dict[str, list[Viewer]] = {}
        for viewer in viewers:
            by_mark.setdefault(viewer.listener.mark or viewer.listener.query.get("since", ""), []).append(viewer)
        for text, alike in by_mark.items():
            since = Mark.parse(text)
            if since is not None and since.change <= now.change and since != now:
                work = partial(_changes_after, project, since)
                if not await self._tell(alike, await self._platform.database.read(work)):
                    return
            elif since != now:
                _tell_stale(alike, now)
            for viewer in alike:
                viewer.joined = True
                viewer.listener.reached(str(now))

    async def _tell(self, viewers: Sequence[Viewer], found: Changes) -> bool:
        """Send what was found, to all or to nobody: False if a right has changed meanwhile; the next look sends it."""
        if found.ids is None:
            _tell_stale(viewers, found.mark)
            return True
        alike: dict[str, list[Viewer]] = {}
        for viewer in viewers if found.ids else ():
            alike.setdefault(viewer.key, []).append(viewer)
        events = [await self._event(same[0], sorted(found.ids)) for same in alike.values()]
        if self._platform.database.epoch(EPOCH) != self._epoch:
            return False
        for event, same in zip(events, alike.values(), strict=True):
            for viewer in same:
                viewer.listener.push(event, str(found.mark))
        return True

    async def _event(self, viewer: Viewer, ids: list[str]) -> bytes:
        """The cards as this viewer, and everybody like them, may see them. The page was recorded when it was opened."""
        assert viewer.actor is not None
        arguments = {**viewer.filters, "only": ids}
        board = (await self._platform.calls.run(viewer.actor, show_board, arguments, seen=True)).structured
        cards = [
            {"id": card["id"], "status": card["status"], "html": html}
            for column in board["columns"]
            for card, html in zip(column["cards"], draw_cards(column, viewer.may_move), strict=True)
        ]
        shown = {card["id"] for card in cards}
        counts = {column["status"]: column["count"] for column in board["columns"]}
        content = {"cards": cards, "gone": [each for each in ids if each not in shown], "counts": counts}
        return f"event: board\ndata: {json.dumps(content)}\n\n".encode()


def _changes_after(project: Project, since: Mark, tx: Tx) -> Changes:
    return changes_since(tx, *project, since)


def _tell_stale(viewers: Iterable[Viewer], mark: Mark) -> None:
    for viewer in viewers:
        viewer.listener.stale(str(mark))


def _slug(viewer: Viewer) -> str | None:
    return viewer.listener.query.get("project") or None
