"""What tests of leases do again and again: claim as some session, and let a lease run out."""

from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.lifecycle.issue_tables import issues
from tests.domains.tracker.desk import Desk

LONG_AGO_MS = 1_000


async def claimed(desk: Desk, issue: Any, session: str, profile: str = "worker", **binding: Any) -> Actor:
    """A session that holds the issue, as it is from its next call on."""
    await desk.call(desk.actor(profile, session=session, **binding), "claim_issue", issue_id=issue.identifier)
    return desk.actor(profile, session=session, **binding)


def run_out(desk: Desk, issue: Any) -> None:
    """Let the lease of the issue end long ago."""
    desk.change(sa.update(issues).where(issues.c.id == issue.id).values(lease_until_ms=LONG_AGO_MS))
