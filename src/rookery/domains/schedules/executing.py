"""An execution from its first step to its end. Every step is saved before the next begins, so none is done again."""

from typing import Any

import sqlalchemy as sa

from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.schedules.action import Action, stored_actions
from rookery.domains.schedules.actions import Step, StepFailed, do
from rookery.domains.schedules.planning import halt, locked
from rookery.domains.schedules.tables import ACTIVE, MICROS, PAUSED, executions, schedules
from rookery.jobs.claims import said
from rookery.jobs.running import Running

MAX_FAILURES = 5
"""After so many failures in a row a schedule is paused."""
MAX_ERROR = 2_000
OVER = ("completed", "failed")
Row = sa.Row[Any]
Known = dict[str, Any]


def begin(tx: Tx, tenant: str, execution_id: str) -> Row | None:
    """The execution, running from now on; None if it is over or gone."""
    return tx.one(
        sa.update(executions)
        .where(
            executions.c.tenant == tenant,
            executions.c.id == execution_id,
            executions.c.status.in_(("running", "approved")),
        )
        .values(status="running", started_ms=sa.func.coalesce(executions.c.started_ms, now_ms(tx)))
        .returning(executions)
    )


class Execution:
    """The steps of an execution that a worker is at."""

    def __init__(self, job: Running, row: Row) -> None:
        self.job = job
        self.row = row
        self.steps: list[Known] = [dict(step) for step in row.steps]

    @property
    def cost_micros(self) -> int:
        return sum(round(step.get("cost_usd", 0.0) * MICROS) for step in self.steps)

    @property
    def failed(self) -> list[Known]:
        return [step for step in self.steps if step["status"] != "completed"]

    @property
    def result(self) -> str:
        """What came of it, in a few words for each step."""
        told = [f"{step['type']}: {step.get('error') or step.get('result') or step['status']}" for step in self.steps]
        return "; ".join(told)[:MAX_ERROR]

    async def run(self) -> None:
        """Do what is left to do. A step that fails does not keep the next from its turn."""
        actions = stored_actions(self.row.config_snapshot["actions"])
        for number, action in enumerate(actions):
            if self.steps[number]["status"] in OVER:
                continue
            await self._save(number, {"status": "running"})
            await self._save(number, await self._step(number, action))
            await self.job.progress(number + 1, len(actions), action.type)

    async def _step(self, number: int, action: Action) -> Known:
        budget: int | None = self.row.config_snapshot["max_budget_micros"]
        left = None if budget is None else (budget - self.cost_micros) / MICROS
        if budget is not None and self.cost_micros >= budget:
            return {"status": "failed", "error": f"the budget of {budget / MICROS:g} USD a run is used up"}

        def note(tx: Tx, known: Known) -> None:
            self._put(tx, number, known)

        held: dict[str, Any] = self.row.config_snapshot["requester"]
        step = Step(self.job, self.row.id, number, self.row.agent_id, action, held, left, note, self._agreed(number))
        try:
            return {"status": "completed", **await do(step)}
        except StepFailed as failure:
            return {**failure.done, "status": "failed", "error": str(failure)[:MAX_ERROR]}

    def _agreed(self, number: int) -> bool:
        """Whether the owner has approved exactly this action, having read all of it."""
        return self.row.decided_by is not None and number in self.row.config_snapshot.get("shown_whole", ())

    async def _save(self, number: int, known: Known) -> None:
        await self.job.write(lambda tx: self._put(tx, number, known))

    def _put(self, tx: Tx, number: int, known: Known) -> None:
        self.steps[number] |= {name: said(value) if isinstance(value, str) else value for name, value in known.items()}
        steps = [dict(step) for step in self.steps]
        cost = self.cost_micros
        tx.run(sa.update(executions).where(executions.c.id == self.row.id).values(steps=steps, cost_micros=cost))


def settle(tx: Tx, tenant: str, schedule_id: str, execution_id: str, status: str, result: str) -> Row | None:
    """The end of an execution, and what it means for its schedule; None if it was over or gone already."""
    # The schedule first, as everywhere: two who take them in different orders wait for each other.
    schedule = locked(tx, tenant, schedule_id)
    ended = tx.one(
        sa.update(executions)
        .where(executions.c.id == execution_id, executions.c.status.in_(("running", "approved")))
        .values(status=status, result=result[:MAX_ERROR], completed_ms=now_ms(tx))
        .returning(executions)
    )
    if ended is None or schedule is None or status == "cancelled":
        return ended
    failures = schedule.failures + 1 if status == "failed" else 0
    tx.run(sa.update(schedules).where(schedules.c.id == schedule.id).values(failures=failures))
    if failures >= MAX_FAILURES and schedule.status == ACTIVE:
        halt(tx, schedule, PAUSED, f"it failed {failures} times in a row, at last: {result}"[:MAX_ERROR])
    return ended
