"""Keeps workflows. An agent reaches its own and nobody else's; a person those of the whole tenant."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound, PermissionDenied
from rookery.core.ids import new_id
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.workflows.tables import workflow_node_runs, workflow_runs, workflows

OPEN = ("running", "paused")
"""What a run that has not ended can be."""
LISTED = 100
MOST_WORKFLOWS = 200
MOST_OPEN_RUNS = 100
"""How many an agent may have. A session that goes round in circles must not fill the database; people may go on."""
Row = sa.Row[Any]


def owner_of(actor: Actor) -> str | None:
    """The agent whose workflows the actor has; None for a person, who has those of every agent."""
    if actor.kind == "human":
        return None
    if actor.agent is None:
        raise PermissionDenied(
            "workflows belong to agents, and this caller is none", hint="use a token of an agent", layer="principal"
        )
    return actor.agent


class Workflows:
    """The workflows of one agent, or of a tenant."""

    def __init__(self, tx: Tx, tenant: str, agent: str | None) -> None:
        self.tx = tx
        self.tenant = tenant
        self.agent = agent
        self._mine = [workflows.c.tenant == tenant]
        if agent is not None:
            self._mine.append(workflows.c.agent_id == agent)

    def page(self, limit: int = LISTED) -> Sequence[Row]:
        """The newest workflows."""
        return self.tx.all(sa.select(workflows).where(*self._mine).order_by(workflows.c.id.desc()).limit(limit))

    def get(self, workflow_id: str, *, held: bool = False) -> Row:
        """The workflow of this id. With `held` nobody else changes or removes it until the transaction ends."""
        wanted = sa.select(workflows).where(*self._mine, workflows.c.id == workflow_id)
        row = self.tx.one(wanted.with_for_update() if held else wanted)
        if row is None:
            raise NotFound(f"there is no workflow {workflow_id}", hint="action list shows those there are")
        return row

    def create(self, **values: Any) -> Row:
        """A new draft."""
        if self.agent is not None and self._count(workflows, *self._mine) >= MOST_WORKFLOWS:
            raise Conflict(f"you have {MOST_WORKFLOWS} workflows already", hint="delete or update one of them")
        at = now_ms(self.tx)
        given = {"id": new_id("wfl"), "tenant": self.tenant, "status": "draft", "created_ms": at, "updated_ms": at}
        made = self.tx.one(sa.insert(workflows).values(**given, **values).returning(*workflows.c))
        assert made is not None
        return made

    def check_room(self) -> None:
        """Refuse an agent that has as many open runs as it may."""
        if self.agent is None:
            return
        mine = (workflow_runs.c.tenant == self.tenant, workflow_runs.c.agent_id == self.agent)
        if self._count(workflow_runs, *mine, workflow_runs.c.ended_ms.is_(None)) >= MOST_OPEN_RUNS:
            raise Conflict(f"{MOST_OPEN_RUNS} runs have not ended yet", hint="wait for them, or cancel some")

    def _count(self, table: sa.Table, *which: sa.ColumnElement[bool]) -> int:
        return self.tx.scalar(sa.select(sa.func.count()).select_from(table).where(*which))

    def update(self, workflow_id: str, **values: Any) -> Row:
        """Change some fields; runs that have begun keep what they began with."""
        changed = self.tx.one(
            sa.update(workflows)
            .where(*self._mine, workflows.c.id == workflow_id)
            .values(updated_ms=now_ms(self.tx), **values)
            .returning(*workflows.c)
        )
        return changed if changed is not None else self.get(workflow_id)

    def activate(self, workflow_id: str) -> Row:
        """Let it be run. Nothing happens to one that is active."""
        return self.update(workflow_id, status="active")

    def pause(self, workflow_id: str) -> Row:
        """Let nobody run it any more; runs that have begun go on."""
        row = self.get(workflow_id, held=True)
        if row.status == "draft":
            raise Conflict(f"the workflow {workflow_id} is a draft, which cannot be run anyway", hint="action activate")
        return self.update(workflow_id, status="paused")

    def delete(self, workflow_id: str) -> Row:
        """Remove it with its runs. One that still runs is refused."""
        row = self.get(workflow_id, held=True)
        of_it = (workflow_runs.c.tenant == self.tenant, workflow_runs.c.workflow_id == workflow_id)
        busy = self.tx.scalar(sa.select(workflow_runs.c.id).where(*of_it, workflow_runs.c.status.in_(OPEN)).limit(1))
        if busy is not None:
            raise Conflict(f"run {busy} of the workflow has not ended", hint="cancel it first, or pause the workflow")
        its_runs = sa.select(workflow_runs.c.id).where(*of_it)
        self.tx.run(sa.delete(workflow_node_runs).where(workflow_node_runs.c.run_id.in_(its_runs)))
        self.tx.run(sa.delete(workflow_runs).where(*of_it))
        self.tx.run(sa.delete(workflows).where(*self._mine, workflows.c.id == workflow_id))
        return row
