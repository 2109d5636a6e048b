"""The steps that build what stands between agents and their owner: asks, notifications, approvals."""

from rookery.asks.tables import ASK_STATEMENTS
from rookery.db.migrate import Migration
from rookery.domains.owner.notify_tables import NOTIFY_STATEMENTS

MIGRATIONS = (
    Migration(1, "asks", ASK_STATEMENTS),
    Migration(2, "notifications", NOTIFY_STATEMENTS),
)
