"""An execution that waits for the owner is an ask: told on every channel, and answered wherever asks are answered."""

from typing import Any

import sqlalchemy as sa

from rookery.asks.store import Asks, NewAsk, digest_of
from rookery.asks.tables import OPEN, asks
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.schedules.ask_card import action_lines, limits_of, one_line
from rookery.domains.schedules.shown import moment
from rookery.identity.store import IdentityStore
from rookery.jobs.kinds import JobArgs

DECIDE = "schedules.decide"
NEVER_MS = 4_102_444_800_000
"""The year 2100. An execution waits as long as it takes, so its ask is not over before; one job sees to all of them."""
ALIKE = ("actions", "requester", "max_budget_micros", "notify_address")
Row = sa.Row[Any]
_NEWEST = (
    sa.select(asks)
    .where(asks.c.tenant == sa.bindparam("of_tenant"), asks.c.key == sa.bindparam("wanted"))
    .order_by(asks.c.created_ms.desc(), asks.c.id.desc())
    .limit(1)
)


class DecideArgs(JobArgs):
    """Which execution, and the ask that was answered."""

    execution_id: str
    ask_id: str


def ask_for(tx: Tx, execution: Row) -> Row:
    """Ask the owner whether the execution may go on. Asks of one agent for the very same, with the same limits, are
    alike."""
    agent = IdentityStore(tx, execution.tenant).find_agent(execution.agent_id)
    snapshot = execution.config_snapshot
    made, _ = Asks(tx, execution.tenant).open(
        NewAsk(
            kind="schedule",
            agent_id=execution.agent_id,
            question=f"May {one_line(snapshot['name'])} of {_named(agent.name if agent else execution.agent_id)} run?",
            context=_told(execution),
            subject=execution.id,
            key=ask_key(execution.id),
            batch_key=digest_of("schedule", *(snapshot[name] for name in ALIKE)),
            open_for_ms=NEVER_MS - now_ms(tx),
            follow={"job": DECIDE, "args": {"execution_id": execution.id}, "queue": "default"},
        )
    )
    return made


def ask_key(execution_id: str) -> str:
    return f"execution:{execution_id}"


def _told(execution: Row) -> str:
    snapshot = execution.config_snapshot
    lines = [f"{number}. {line}" for number, line in enumerate(action_lines(snapshot["actions"]), 1)]
    why = [f"Said of it: {one_line(snapshot['description'])}"] if snapshot["description"] else []
    about = f"Due {moment(execution.due_ms)}. It would do:"
    whole = f"In full: rookery schedules history --execution {execution.id}"
    return "\n".join([*why, f"Limits: {limits_of(snapshot)}", about, *lines, whole])


def _named(agent: str) -> str:
    """A name as it is, if that is one that nobody takes for something else."""
    return agent if agent.isprintable() else one_line(agent)


def ask_of(tx: Tx, tenant: str, execution_id: str) -> Row | None:
    """The ask about an execution, whatever has come of it."""
    return tx.one(_NEWEST, {"of_tenant": tenant, "wanted": ask_key(execution_id)})


def take_back(tx: Tx, tenant: str, execution_id: str) -> None:
    """Ask no longer: there is nothing left to decide."""
    found = ask_of(tx, tenant, execution_id)
    if found is not None and found.status == OPEN:
        Asks(tx, tenant).withdraw(found.id)
