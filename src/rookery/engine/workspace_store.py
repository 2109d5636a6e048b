"""Keeps which workspaces there are."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.db.clock import DbNow
from rookery.db.tx import Tx
from rookery.engine.dispatches import MAX_ERROR
from rookery.engine.tables import ENDED, dispatches, workspaces
from rookery.engine.workspace_names import Site, Workspace
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.states import FINISHED

Row = sa.Row[Any]
_w = workspaces.c


class WorkspaceRows:
    """The workspaces of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def keep(self, issue: Row, site: Site, workspace: Workspace) -> Row:
        """Remember the workspace of an issue, in place of an earlier one."""
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(workspaces)
        where = {"project_id": issue.project_id, "repository": site.repository}
        where |= {"path": workspace.path, "branch": workspace.branch, "base": workspace.base}
        again = {**where, "kept": None, "removed_ms": None}
        made = insert.values(issue_id=issue.id, tenant=self.tenant, made_ms=DbNow(), **where)
        put = made.on_conflict_do_update(index_elements=[_w.issue_id], set_=again, where=_w.tenant == self.tenant)
        row = self.tx.one(put.returning(*workspaces.c))
        assert row is not None
        return row

    def of(self, issue_id: str) -> Row | None:
        """The workspace of an issue, also one that has been removed."""
        return self.tx.one(sa.select(workspaces).where(_w.tenant == self.tenant, _w.issue_id == issue_id))

    def over(self, limit: int) -> Sequence[Row]:
        """Workspaces of issues that have ended and that nobody works on, which have not been looked at yet."""
        return self.tx.all(over().where(_w.tenant == self.tenant).limit(limit))

    def over_of(self, issue_id: str) -> Row | None:
        """The workspace of an issue, if the issue has ended and nobody works on it, also one that is kept."""
        return self.tx.one(_ended().where(_w.tenant == self.tenant, _w.issue_id == issue_id))

    def kept(self, row: Row, why: str) -> bool:
        """Say why a workspace is not removed; whether that is new."""
        said = why[:MAX_ERROR].replace("\0", "").encode("utf-8", "replace").decode()
        new = sa.or_(_w.kept.is_(None), _w.kept != said)
        return self._change(row, [new], kept=said) is not None

    def removed(self, row: Row) -> None:
        self._change(row, [], kept=None, removed_ms=DbNow())

    def _change(self, row: Row, guards: Sequence[sa.ColumnElement[bool]], **values: Any) -> Row | None:
        """The one that was looked at, if it is still that."""
        same = (_w.tenant == self.tenant, _w.issue_id == row.issue_id, _w.path == row.path, _w.removed_ms.is_(None))
        return self.tx.one(sa.update(workspaces).where(*same, *guards).values(**values).returning(_w.issue_id))


def over() -> sa.Select[Any]:
    """The same of every tenant."""
    return _ended().where(_w.kept.is_(None)).order_by(_w.made_ms, _w.issue_id)


def _ended() -> sa.Select[Any]:
    live = sa.exists().where(dispatches.c.issue_id == _w.issue_id, dispatches.c.state != ENDED)
    there = sa.select(workspaces).join(issues, issues.c.id == _w.issue_id)
    return there.where(issues.c.status.in_(FINISHED), _w.removed_ms.is_(None), ~live)
