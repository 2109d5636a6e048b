"""What a run may cost: the least of its own budget and of what is left to its issue, its project and everybody.

What is left of a day is shared among the agents that may be at work at once, and what one was promised is nobody
else's while it runs.
"""

from typing import Any, NamedTuple

import sqlalchemy as sa

from rookery.core.errors import Conflict
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.engine.limits import DAY_MS, MICROS
from rookery.engine.project_settings import OrchestratorSettings
from rookery.engine.tables import RUNNING, dispatches
from rookery.lifecycle.run_tables import agent_runs
from rookery.settings import Settings

Row = sa.Row[Any]
Conditions = tuple[sa.ColumnElement[bool], ...]
_r, _d = agent_runs.c, dispatches.c
_TAKE_TURNS = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('orchestrator:budget', 0))")


class _Purse(NamedTuple):
    """Money for a while: how much, the runs it was spent on, and who may be at work on the rest of it at once."""

    whose: str
    budget_usd: float | None
    spent_on: Conditions
    shared_by: Conditions = ()
    most: int = 1


def granted_micros(tx: Tx, dispatch: Row, settings: OrchestratorSettings, installed: Settings) -> int | None:
    """What the run of this dispatch may cost, in millionths of a dollar; None if nothing limits it.

    Conflict if one of the budgets is used up. Those who ask at the same moment take turns, until they commit.
    """
    today = _r.created_ms >= now_ms(tx) // DAY_MS * DAY_MS
    mine = _r.tenant == dispatch.tenant
    here = (_d.tenant == dispatch.tenant, _d.project_id == dispatch.project_id)
    purses = [
        _Purse(
            "the project",
            settings.daily_budget_usd,
            (mine, _r.project_id == dispatch.project_id, today),
            here,
            settings.max_agents,
        ),
        _Purse("the installation", installed.daily_budget_usd or None, (today,), (sa.true(),), installed.max_agents),
    ]
    if dispatch.issue_id is not None:
        purses.append(_Purse("the issue", settings.issue_budget_usd, (mine, _r.issue_id == dispatch.issue_id)))
    if tx.dialect == "postgresql" and any(purse.budget_usd is not None for purse in purses):
        tx.run(_TAKE_TURNS)
    left = [] if settings.run_budget_usd is None else [round(settings.run_budget_usd * MICROS)]
    left += [_left(tx, dispatch, purse) for purse in purses if purse.budget_usd is not None]
    return min(left, default=None)


def _left(tx: Tx, dispatch: Row, purse: _Purse) -> int:
    assert purse.budget_usd is not None
    spent = int(tx.scalar(sa.select(sa.func.sum(_r.cost_micros)).where(*purse.spent_on)) or 0)
    rest = round(purse.budget_usd * MICROS) - spent
    if purse.shared_by:
        others = (_d.state == RUNNING, _d.id != dispatch.id, *purse.shared_by)
        found = tx.one(sa.select(sa.func.count().label("n"), sa.func.sum(_d.budget_micros).label("all")).where(*others))
        assert found is not None
        rest = (rest - int(found.all or 0)) // max(purse.most - found.n, 1)
    if rest <= 0:
        raise Conflict(f"the budget of {purse.whose} is used up", hint="rookery orchestrator configure can allow more")
    return rest
