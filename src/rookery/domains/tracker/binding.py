"""Tells the doors which issue a session is bound to."""

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.lease_store import db_now
from rookery.identity.binding import BoundIssue
from rookery.lifecycle.issue_ref import find_issue
from rookery.lifecycle.issue_tables import issues


class TrackerIssues:
    """The issues that sessions can be bound to: one named at the start, or one that the session has claimed."""

    def find(self, tx: Tx, tenant: str, text: str) -> BoundIssue | None:
        row = find_issue(tx, tenant, text)
        return None if row is None else BoundIssue(row.id, row.identifier, row.project_id)

    def claimed(self, tx: Tx, tenant: str, subject: str, session: str | None) -> BoundIssue | None:
        """The issue whose lease this session holds, until when."""
        mine = (issues.c.tenant == tenant, issues.c.lease_subject == subject, issues.c.lease_session == session)
        live = issues.c.lease_until_ms > db_now(tx)
        row = tx.one(sa.select(issues).where(*mine, live).order_by(issues.c.lease_until_ms.desc()))
        return None if row is None else BoundIssue(row.id, row.identifier, row.project_id, row.lease_until_ms)
