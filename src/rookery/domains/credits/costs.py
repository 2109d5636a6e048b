"""What runs have cost, summed for agents, issues or runs."""

from typing import Any, Literal

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import NotFound
from rookery.db.tx import Tx
from rookery.identity.store import IdentityStore
from rookery.identity.tables import agents
from rookery.lifecycle.issue_ref import find_issue
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_tables import agent_runs

Subject = Literal["agent", "issue", "run"]
LISTED = 50
MICROS = 1_000_000

_r = agent_runs.c
_OF: dict[Subject, sa.Column[Any]] = {"agent": _r.agent, "issue": _r.issue_id, "run": _r.id}
_NAMES: dict[Subject, tuple[sa.Table, sa.Column[Any]]] = {
    "agent": (agents, agents.c.name),
    "issue": (issues, issues.c.identifier),
}


def _total(column: sa.Column[int]) -> sa.Label[int]:
    return sa.cast(sa.func.coalesce(sa.func.sum(column), 0), sa.BigInteger).label(column.name)


_SPENT = (
    sa.func.count().label("runs"),
    _total(_r.cost_micros),
    _total(_r.input_tokens),
    _total(_r.output_tokens),
)


def costs(tx: Tx, actor: Actor, by: Subject, wanted: str | None) -> dict[str, Any]:
    """The dearest first, up to 50, and the total of all. An agent sees what its own runs have cost, people everything.

    `wanted` is an id, or an agent's name or an issue's identifier; what the caller may not see is NotFound.
    """
    seen = _seen(actor)
    if wanted is not None:
        seen.append(_OF[by] == _found(tx, actor, by, wanted))
    of = _OF[by]
    some = sa.select(of.label("id"), *_SPENT).where(*seen, of.is_not(None)).group_by(of)
    rows = tx.all(some.order_by(sa.desc("cost_micros"), of).limit(LISTED))
    total = tx.one(sa.select(*_SPENT).where(*seen))
    assert total is not None
    if wanted is not None and by == "run" and not rows:
        raise NotFound(f"there is no run {wanted}", hint="leave id out to see those there are")
    named = _named(tx, actor, by, [row.id for row in rows])
    return {
        "costs": [{"id": row.id, **named.get(row.id, {}), **_shown(row)} for row in rows],
        "total": _shown(total),
    }


def _seen(actor: Actor) -> list[sa.ColumnElement[bool]]:
    """The runs that the caller may know of."""
    seen = [_r.tenant == actor.tenant]
    if actor.closed:
        seen.append(_r.project_id.not_in(sorted(actor.closed)))
    if actor.kind != "human":
        seen.append(_r.agent == (actor.agent or ""))
    return seen


def _found(tx: Tx, actor: Actor, by: Subject, wanted: str) -> str:
    """The id of what was named."""
    if by == "run":
        return wanted
    if by == "issue":
        issue = find_issue(tx, actor.tenant, wanted)
        if issue is None or issue.project_id in actor.closed:
            raise NotFound(f"there is no issue {wanted}", hint="list_issues shows those there are")
        return issue.id
    if actor.kind == "human":
        return IdentityStore(tx, actor.tenant).agent(wanted).id
    if actor.agent is None or wanted.lower() not in (actor.agent, (actor.agent_name or actor.agent).lower()):
        raise NotFound(f"there is no agent {wanted}", hint="leave id out to see yourself")
    return actor.agent


def _named(tx: Tx, actor: Actor, by: Subject, ids: list[str]) -> dict[str, dict[str, str]]:
    if by not in _NAMES or not ids:
        return {}
    table, name = _NAMES[by]
    rows = tx.all(sa.select(table.c.id, name.label("name")).where(table.c.tenant == actor.tenant, table.c.id.in_(ids)))
    return {row.id: {"name": row.name} for row in rows}


def _shown(row: sa.Row[Any]) -> dict[str, Any]:
    return {
        "runs": row.runs,
        "cost_usd": row.cost_micros / MICROS,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
    }
