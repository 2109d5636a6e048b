"""Finds what a scanner could do next in a project. Git is asked only if something has changed since the last look."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import sqlalchemy as sa

from rookery.db.clock import now_ms
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.domains.tracker.coverage_store import epoch_of
from rookery.domains.tracker.project_store import ProjectSettings
from rookery.domains.tracker.tables import coverage, scan_readings
from rookery.engine.assigning import session_key
from rookery.engine.dispatches import NewDispatch
from rookery.engine.project_settings import OrchestratorSettings
from rookery.engine.scan_files import Scannable, branch_marks, scannable
from rookery.engine.scanning import Given, Pair, Seen, due_pairs, first_batch, tried_of
from rookery.engine.tables import ENDED, dispatches, orchestrator_projects
from rookery.files.git_trees import TreeFile, texts_among
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.states import FINISHED

MAX_HISTORY = 5_000
MAX_CONCEPT = 100
_c, _d, _r = coverage.c, dispatches.c, scan_readings.c
_FINISHED = sa.or_(_c.ticket_id.is_(None), issues.c.id.is_(None), issues.c.status.in_(FINISHED))
_SETTLED = sa.or_(_c.status != "has_issues", _FINISHED)
# Written out: with a parameter the index of finished issues could not be used.
_NEWEST = [
    sa.select(sa.func.max(issues.c.updated_ms)).where(
        issues.c.project_id == sa.bindparam("in_project"), issues.c.status == sa.literal_column(f"'{status}'")
    )
    for status in FINISHED
]
_TICKETS = sa.and_(issues.c.tenant == _c.tenant, issues.c.id == _c.ticket_id)


@dataclass(frozen=True, slots=True)
class Standing:
    """What decides whether it is time for a scan: what is set, the last one, and when an issue was last finished."""

    at_ms: int
    set_ms: int
    live: bool
    last: tuple[str, int, str | None] | None
    finished: tuple[int | None, ...]
    leftovers: bool

    def due(self, every_s: int) -> bool:
        """Whether one may begin. The plan says when one that failed is tried again, so that is not waited for here."""
        if self.live:
            return False
        if self.last is None or self.last[2] != "succeeded" or self.set_ms > self.last[1]:
            return True
        return self.last[1] + every_s * 1000 <= self.at_ms


@dataclass(slots=True)
class _Look:
    """What one process remembers of a project: what it found to be done when, and contents that are not text."""

    key: tuple[Any, ...] | None = None
    payload: dict[str, Any] | None = None
    not_text: set[str] = field(default_factory=set[str])


_looks: WeakKeyDictionary[Database, dict[tuple[str, str], _Look]] = WeakKeyDictionary()


async def next_scan(
    database: Database, tenant: str, project: ProjectSettings, settings: OrchestratorSettings
) -> NewDispatch | None:
    """The scan that could start now, if there is one. ValidationFailed for a folder or a branch that is not there."""
    concepts = tuple(dict.fromkeys(name for each in settings.scan_concepts if (name := each.strip()[:MAX_CONCEPT])))
    if not concepts or not project.path:
        return None
    standing = await database.read(lambda tx: read_standing(tx, tenant, project.project_id))
    if standing.leftovers:
        await database.change(lambda tx: end_readings(tx, tenant, project.project_id))
    if not standing.due(settings.scan_every_s):
        return None
    look = _looks.setdefault(database, {}).setdefault((tenant, project.project_id), _Look())
    # Before anything is read, so that what is recorded meanwhile is seen the next time.
    epoch = database.epoch(epoch_of(project.project_id))
    marks = await asyncio.to_thread(branch_marks, project.path, project.base_branch)
    key = (epoch, marks, concepts, settings, standing.last, standing.set_ms, standing.finished)
    if look.key != key:
        place = (tenant, project.project_id)
        found = await database.read(
            lambda tx: (read_seen(tx, *place, concepts), read_given(tx, *place, standing.set_ms))
        )
        choice = _Choice(project.path, project.base_branch, settings, concepts, *found, look.not_text)
        look.payload, look.key = await asyncio.to_thread(choice.made), key
    if look.payload is None:
        return None
    return NewDispatch(project_id=project.project_id, work="scan", role="scanner", agent="", payload=look.payload)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The choice of a batch. It asks git, and may take a while."""

    folder: str
    base_branch: str
    settings: OrchestratorSettings
    concepts: Sequence[str]
    seen: Mapping[Pair, Seen]
    given: Sequence[Given]
    not_text: set[str]

    def made(self) -> dict[str, Any] | None:
        """What a scanner is to be given; None if nothing is due."""
        tree = scannable(self.folder, self.base_branch, self.settings.scan_paths)
        due = due_pairs(tree.files, self.concepts, self.seen, tried_of(self.given), self.settings.max_retries)
        batch = first_batch(due, max(self.settings.scan_batch, 1), lambda files: self._texts(tree, files))
        if batch is None:
            return None
        files = [{"path": file.path, "content": file.blob} for file in batch.files]
        return {"concept": batch.concept, "commit": tree.commit, "files": files}

    def _texts(self, tree: Scannable, files: Sequence[TreeFile]) -> Collection[str]:
        """Those of the files that have text in them, by path. What has none is not asked for again."""
        asked = [file for file in files if file.blob not in self.not_text]
        named = texts_among(tree.repository, tree.commit, [file.path for file in asked])
        self.not_text.update(file.blob for file in asked if file.path not in named)
        return named


def read_standing(tx: Tx, tenant: str, project_id: str) -> Standing:
    """How it stands with the scans of a project: a few rows, however large the project is."""
    mine = (_d.tenant == tenant, _d.project_id == project_id, _d.work == "scan", _d.issue_id.is_(None))
    live = tx.one(sa.select(_d.id).where(*mine, _d.state != ENDED).limit(1))
    counted = (_d.state == ENDED, _d.outcome != "cancelled")
    last = tx.one(sa.select(dispatches).where(*mine, *counted).order_by(_d.created_ms.desc(), _d.id.desc()).limit(1))
    kept = (orchestrator_projects.c.tenant == tenant, orchestrator_projects.c.project_id == project_id)
    left = sa.select(_r.session).where(_r.tenant == tenant, _r.project_id == project_id).limit(1)
    return Standing(
        at_ms=now_ms(tx),
        set_ms=tx.scalar(sa.select(orchestrator_projects.c.updated_ms).where(*kept)) or 0,
        live=live is not None,
        last=None if last is None else (last.id, last.created_ms, last.outcome),
        finished=tuple(tx.scalar(newest, {"in_project": project_id}) for newest in _NEWEST),
        leftovers=live is None and tx.one(left) is not None,
    )


def read_seen(tx: Tx, tenant: str, project_id: str, concepts: Sequence[str]) -> dict[Pair, Seen]:
    """What was recorded of these concepts in the project."""
    mine = (_c.tenant == tenant, _c.project_id == project_id, _c.concept.in_(concepts))
    columns = (_c.file_path, _c.concept, _c.content, _c.updated_ms, _SETTLED.label("settled"))
    rows = tx.all(sa.select(*columns).select_from(coverage.outerjoin(issues, _TICKETS)).where(*mine))
    return {(row.file_path, row.concept): Seen(row.content, bool(row.settled), row.updated_ms) for row in rows}


def read_given(tx: Tx, tenant: str, project_id: str, since_ms: int) -> list[Given]:
    """The batches that scanners were given since somebody set how the project is worked on."""
    mine = (_d.tenant == tenant, _d.project_id == project_id, _d.work == "scan", _d.issue_id.is_(None))
    ended = sa.select(_d.created_ms, _d.outcome, _d.payload).where(*mine, _d.state == ENDED, _d.created_ms >= since_ms)
    rows = tx.all(ended.order_by(_d.created_ms.desc(), _d.id.desc()).limit(MAX_HISTORY))
    return [Given(row.created_ms, row.outcome, row.payload) for row in rows]


def end_readings(tx: Tx, tenant: str, project_id: str) -> None:
    """Forget what sessions were given to read whose dispatch has ended, as when their worker died."""
    live = sa.select(_d.id).where(_d.tenant == tenant, _d.project_id == project_id, _d.state != ENDED)
    alive = [session_key(row.id) for row in tx.all(live)]
    mine = (_r.tenant == tenant, _r.project_id == project_id)
    tx.run(sa.delete(scan_readings).where(*mine, _r.session.not_in(alive)))
