"""What one session may send, where the installation limits that."""

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.messages.limits import Limits, Refusal
from rookery.domains.messages.tables import messages

_SENT = sa.select(
    sa.func.count().label("sent"),
    sa.func.count(messages.c.to_id.distinct()).label("targets"),
    sa.func.max(messages.c.accepted_ms).label("last_ms"),
    sa.func.max(sa.case((messages.c.to_id == sa.bindparam("of_target"), 1), else_=0)).label("known"),
).where(
    messages.c.tenant == sa.bindparam("of_tenant"),
    messages.c.from_session == sa.bindparam("of_session"),
    messages.c.accepted_ms.is_not(None),
)


def over_session(tx: Tx, tenant: str, session: str | None, target: str, at_ms: int, limits: Limits) -> Refusal | None:
    """Why this session may not write to this receiver now, if it may not."""
    if session is None or not (limits.session_messages or limits.session_targets or limits.session_gap_ms):
        return None
    row = tx.one(_SENT, {"of_tenant": tenant, "of_session": session, "of_target": target})
    if row is None or not row.sent:
        return None
    if limits.session_messages and row.sent >= limits.session_messages:
        return _refusal(f"a session may send {limits.session_messages} messages")
    if limits.session_targets and not row.known and row.targets >= limits.session_targets:
        return _refusal(f"a session may write to {limits.session_targets} agents")
    if at_ms - row.last_ms < limits.session_gap_ms:
        wait_ms = row.last_ms + limits.session_gap_ms - at_ms
        return _refusal(f"a session waits {limits.session_gap_ms} ms between two messages", wait_ms)
    return None


def _refusal(why: str, wait_ms: int = 0) -> Refusal:
    return Refusal("RATE_LIMITED", f"{why}, no session was created", wait_ms)
