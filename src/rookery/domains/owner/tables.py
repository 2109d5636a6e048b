"""The steps that build what stands between agents and their owner: asks, notifications, approvals."""

from rookery.asks.tables import APPROVAL_STATEMENTS, ASK_STATEMENTS, FOLLOW_STATEMENTS, FOUND_STATEMENTS
from rookery.db.migrate import Migration
from rookery.domains.owner.notify_tables import NOTIFY_STATEMENTS
from rookery.domains.owner.outside_tables import OUTSIDE_STATEMENTS

MIGRATIONS = (
    Migration(1, "asks", ASK_STATEMENTS),
    Migration(2, "notifications", NOTIFY_STATEMENTS),
    Migration(3, "asks that lead to a job, or wait", [*FOLLOW_STATEMENTS, *APPROVAL_STATEMENTS]),
    Migration(4, "asks that are found fast", FOUND_STATEMENTS),
    Migration(5, "answers from outside", OUTSIDE_STATEMENTS),
)
