"""The owner's yes or no to an execution. The first counts, by whatever way it came, and has its effect once."""

from typing import Any

import sqlalchemy as sa

from rookery.asks.answering import Decision, read_decision
from rookery.asks.store import Asks
from rookery.asks.tables import ANSWERED, OPEN
from rookery.core.errors import Conflict
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.schedules.asking import DecideArgs, ask_of
from rookery.domains.schedules.planning import begin_execution
from rookery.domains.schedules.tables import executions
from rookery.jobs.claims import said

Row = sa.Row[Any]


def decided_here(tx: Tx, execution: Row, decision: Decision, subject: str, person: str, via: str) -> tuple[Row, bool]:
    """Decide as a person who is there says, and whether that answered an ask; Conflict if somebody was first."""
    asked = ask_of(tx, execution.tenant, execution.id)
    # Who has answered the ask was first, though the job that follows may not have run yet.
    answers = asked is not None and asked.status in (OPEN, ANSWERED)
    if asked is not None and answers:
        Asks(tx, execution.tenant).answer(asked.id, "approve" if decision.verdict == "yes" else "deny", person, via)
    row = _decide(tx, execution.tenant, execution.id, decision, subject)
    if row is None:
        raise Conflict(f"execution {execution.id[:8]} was decided at this very moment", hint="action history shows how")
    return row, answers


def decided_by_answer(tx: Tx, tenant: str, args: DecideArgs) -> Row | None:
    """Decide as the ask was answered; None if the execution is gone or decided already."""
    ask = Asks(tx, tenant).find(args.ask_id)
    if ask is None or ask.status != ANSWERED or ask.kind != "schedule" or ask.subject != args.execution_id:
        return None
    return _decide(tx, tenant, args.execution_id, read_decision(ask.answer["text"]), ask.answered_by)


def _decide(tx: Tx, tenant: str, execution_id: str, decision: Decision, by: str) -> Row | None:
    yes = decision.verdict == "yes"
    row = tx.one(
        sa.update(executions)
        .where(
            executions.c.tenant == tenant, executions.c.id == execution_id, executions.c.status == "awaiting_approval"
        )
        .values(
            status="approved" if yes else "denied",
            decided_by=by,
            result=said(decision.reason) or None,
            completed_ms=None if yes else now_ms(tx),
        )
        .returning(executions)
    )
    if row is None or not yes:
        return row
    begin_execution(tx, row)
    return row
