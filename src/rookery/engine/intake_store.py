"""Keeps raw requests, from when they come in until issues stand for them. Every change is one guarded statement."""

import hashlib
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.errors import Conflict
from rookery.core.ids import new_id
from rookery.db.clock import DbNow, now_ms
from rookery.db.tx import Tx
from rookery.engine.tables import ENDED, dispatches, intake_requests
from rookery.lifecycle.issue_tables import WAKE

Row = sa.Row[Any]
State = Literal["new", "taken", "done", "failed"]
MAX_TEXT = 20_000
MAX_WAITING = 10_000
"""So many requests of a project may wait; whoever brings more is told to come back."""
MAX_NOTE = 2_000
_q, _d = intake_requests.c, dispatches.c
# Built once: every tick asks them, and to build them costs more than to run them.
_OURS = (_q.tenant == sa.bindparam("of_tenant"), _q.project_id == sa.bindparam("wanted"))
_WAITING = (
    sa.select(intake_requests)
    .where(*_OURS, _q.state == "new")
    .order_by(_q.created_ms, _q.id)
    .limit(sa.bindparam("at_most"))
)
_LEFT_BEHIND = (
    sa.select(dispatches)
    .where(_d.tenant == sa.bindparam("of_tenant"), _d.project_id == sa.bindparam("wanted"), _d.state == ENDED)
    .where(_d.id.in_(sa.select(_q.dispatch_id).where(*_OURS, _q.state == "taken")))
    .order_by(_d.created_ms, _d.id)
)


@dataclass(frozen=True, slots=True)
class Stored:
    """A request that is kept. `known`: the same text was there already."""

    id: str
    state: str
    known: bool


@dataclass(frozen=True, slots=True)
class _New:
    id: str
    digest: str
    text: str


def digest_of(text: str) -> str:
    """What two spellings of the same request have in common: spaces, line ends and capitals do not count."""
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()


class Requests:
    """The requests of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def submit(self, project_id: str, texts: Sequence[str], *, source: str, by: str) -> list[Stored]:
        """Keep the requests, each once. One that could not be done before is tried again."""
        waiting = sa.select(sa.func.count()).select_from(intake_requests)
        count = self.tx.scalar(waiting.where(*self._of(project_id), _q.state.in_(("new", "taken"))))
        if count + len(texts) > MAX_WAITING:
            raise Conflict(f"{count} requests wait already", hint="bring more when some of them are done")
        # Ids in order, so that requests of one moment stay as they came; written by digest, so that two who bring the
        # same do not wait for each other.
        ids = sorted(new_id("req") for _ in texts)
        new = [_New(each, digest_of(text), text) for each, text in zip(ids, texts, strict=True)]
        at_ms = now_ms(self.tx)
        common = {"source": source, "submitted_by": by, "state": "new", "created_ms": at_ms}
        stored = {each.id: self._keep(project_id, each, common) for each in sorted(new, key=lambda one: one.digest)}
        if any(each.state == "new" for each in stored.values()):
            self.tx.wake(WAKE)
        return [stored[each] for each in ids]

    def _keep(self, project_id: str, new: _New, common: Mapping[str, Any]) -> Stored:
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(intake_requests)
        key = {"tenant": self.tenant, "project_id": project_id, "digest": new.digest}
        made = insert.values(**key, **common, id=new.id, text=new.text).on_conflict_do_nothing()
        row = self.tx.one(made.returning(_q.id, _q.state))
        if row is not None:
            return Stored(row.id, row.state, known=False)
        same = (*self._of(project_id), _q.digest == new.digest)
        fresh = {"state": "new", "dispatch_id": None, "note": None, "done_ms": None, "created_ms": common["created_ms"]}
        again = sa.update(intake_requests).where(*same, _q.state == "failed").values(**fresh)
        row = self.tx.one(again.returning(_q.id, _q.state)) or self.tx.one(sa.select(intake_requests).where(*same))
        assert row is not None
        return Stored(row.id, row.state, known=True)

    def waiting(self, project_id: str, limit: int) -> Sequence[Row]:
        """What nobody has taken yet, oldest first."""
        return self.tx.all(_WAITING, {"of_tenant": self.tenant, "wanted": project_id, "at_most": limit})

    def take(self, dispatch: Row, ids: Sequence[str]) -> Sequence[Row]:
        """Those of the requests that the dispatch has from now on, oldest first; none if it has ended."""
        lives = sa.exists().where(_d.tenant == self.tenant, _d.id == dispatch.id, _d.state != ENDED)
        mine = (*self._of(dispatch.project_id), _q.id.in_(ids))
        self.tx.run(
            sa.update(intake_requests)
            .where(*mine, _q.state == "new", lives)
            .values(state="taken", dispatch_id=dispatch.id)
        )
        return self.held_by(dispatch)

    def held_by(self, dispatch: Row) -> Sequence[Row]:
        """What the dispatch has taken and not settled, oldest first."""
        mine = (*self._of(dispatch.project_id), _q.state == "taken", _q.dispatch_id == dispatch.id)
        return self.tx.all(sa.select(intake_requests).where(*mine).order_by(_q.created_ms, _q.id))

    def undone(self, project_id: str, ids: Sequence[str]) -> list[str]:
        """Those of the requests that are not done, as they were given."""
        over = sa.select(_q.id).where(*self._of(project_id), _q.id.in_(ids), _q.state == "done")
        done = {row.id for row in self.tx.all(over)}
        return [each for each in ids if each not in done]

    def done(self, request: Row, issues: Sequence[str], note: str | None) -> None:
        """Issues stand for the request, or the note says why none does."""
        self._settle(request, state="done", issues=list(issues), note=_kept(note), done_ms=DbNow())

    def put_back(self, request: Row) -> None:
        """It waits again. The dispatch that had it last stays noted."""
        self._settle(request, state="new")

    def give_up(self, request: Row, why: str) -> None:
        """Nobody tries it again until somebody brings it again."""
        self._settle(request, state="failed", note=_kept(why), done_ms=DbNow())

    def _settle(self, request: Row, **values: Any) -> None:
        same = (*self._of(request.project_id), _q.id == request.id)
        held = (_q.state == "taken", _q.dispatch_id == request.dispatch_id)
        self.tx.run(sa.update(intake_requests).where(*same, *held).values(**values))

    def left_behind(self, project_id: str) -> Sequence[Row]:
        """Dispatches that have ended and whose requests nobody has settled."""
        return self.tx.all(_LEFT_BEHIND, {"of_tenant": self.tenant, "wanted": project_id})

    def tries(self, project_id: str, requests: Collection[Row]) -> Mapping[str, tuple[int, int]]:
        """How often each of the requests was tried in vain, and how often a worker was lost over it."""
        tried = [request for request in requests if request.dispatch_id is not None]
        counts = {request.id: (0, 0) for request in requests}
        if not tried:
            return counts
        since = {request.id: request.created_ms for request in tried}
        mine = (_d.tenant == self.tenant, _d.project_id == project_id, _d.work == "intake", _d.issue_id.is_(None))
        ended = (_d.state == ENDED, _d.outcome != "cancelled", _d.created_ms >= min(since.values()))
        for row in self.tx.all(sa.select(_d.payload, _d.outcome, _d.created_ms).where(*mine, *ended)):
            for name in row.payload["requests"]:
                if name in since and row.created_ms >= since[name]:
                    ends, losses = counts[name]
                    counts[name] = (ends, losses + 1) if row.outcome == "lost" else (ends + 1, losses)
        return counts

    def listed(self, project_id: str, state: State | None, limit: int) -> Sequence[Row]:
        """Requests as they stand, newest first."""
        mine = sa.select(intake_requests).where(*self._of(project_id))
        wanted = mine if state is None else mine.where(_q.state == state)
        return self.tx.all(wanted.order_by(_q.created_ms.desc(), _q.id.desc()).limit(limit))

    def counts(self, project_id: str) -> dict[str, int]:
        """How many requests there are in each state."""
        counted = sa.select(_q.state, sa.func.count().label("number")).where(*self._of(project_id))
        return {row.state: row.number for row in self.tx.all(counted.group_by(_q.state))}

    def _of(self, project_id: str) -> tuple[sa.ColumnElement[bool], ...]:
        return (_q.tenant == self.tenant, _q.project_id == project_id)


def _kept(note: str | None) -> str | None:
    """The words of an agent as both databases take them."""
    return None if note is None else note[:MAX_NOTE].replace("\0", "").encode("utf-8", "replace").decode()
