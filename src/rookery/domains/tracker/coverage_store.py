"""Keeps what scanners have examined, and as what content they examined it."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.domains.tracker.tables import coverage, scan_readings
from rookery.files.git import open_repository, resolve
from rookery.files.git_trees import blob_at

Row = sa.Row[Any]
_r = scan_readings.c


class Readings:
    """What the sessions of a tenant's scanners read. Kept while a session lasts; no agent writes here."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def give(self, session: str, project_id: str, head: str, files: Mapping[str, str]) -> None:
        """The session reads this commit and these files of it, each with git's hash of its content."""
        new = {"tenant": self.tenant, "project_id": project_id, "head": head, "files": dict(files)}
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(scan_readings)
        given = insert.values(session=session, **new)
        self.tx.run(given.on_conflict_do_update(index_elements=["session"], set_=new))

    def of(self, session: str | None, project_id: str | None) -> Row | None:
        """What the session reads of the project; None for one that chose its files by itself."""
        mine = (_r.tenant == self.tenant, _r.project_id == project_id, _r.session == session)
        return self.tx.one(sa.select(scan_readings).where(*mine)) if session is not None else None

    def end(self, session: str) -> None:
        """The session is over."""
        self.tx.run(sa.delete(scan_readings).where(_r.tenant == self.tenant, _r.session == session))


def content_at(folder: str, name: str, path: str) -> str | None:
    """Git's hash of the file at a branch or commit of the folder; None where that cannot be told."""
    try:
        repository = open_repository(folder)
        return blob_at(repository, resolve(repository, name), path)
    except RookeryError:
        return None


def keep_coverage(tx: Tx, key: Mapping[str, Any], values: Mapping[str, Any], tenant: str) -> Row:
    """Keep what was said of a file and a concept, instead of what was said before; the project's epoch moves on."""
    insert = (sqlite if tx.dialect == "sqlite" else postgresql).insert(coverage)
    row = tx.one(
        insert.values(**key, **values, tenant=tenant)
        .on_conflict_do_update(index_elements=list(key), set_=dict(values))
        .returning(*coverage.c)
    )
    assert row is not None
    tx.bump(epoch_of(row.project_id))
    return row


def epoch_of(project_id: str) -> str:
    """The name under which it is counted how often something was recorded in the project."""
    return f"coverage:{project_id}"
