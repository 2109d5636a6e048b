"""Keeps runs of workflows, and what each node of a run has come to. What is over never changes again."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import NotFound
from rookery.core.ids import new_id
from rookery.db.clock import DbNow
from rookery.db.tx import Tx
from rookery.domains.workflows.machine import SETTLED, NodeState
from rookery.domains.workflows.store import OPEN
from rookery.domains.workflows.tables import workflow_node_runs as nodes
from rookery.domains.workflows.tables import workflow_runs as runs
from rookery.domains.workflows.tables import workflows

LISTED = 20
KEPT = 1_000
"""So many runs of a workflow that have ended are kept when another one begins."""
FORGOTTEN = 100
UNDER_WAY = ("running", "waiting")
"""What a node that somebody carries out can be."""
Row = sa.Row[Any]
Json = dict[str, Any]

_JSON = sa.JSON(none_as_null=True)
_RUN = sa.select(runs).where(runs.c.id == sa.bindparam("the_run"))
_HELD = _RUN.with_for_update()
_NODES = sa.select(nodes).where(nodes.c.run_id == sa.bindparam("the_run"))
_AT = (nodes.c.run_id == sa.bindparam("the_run"), nodes.c.node_id == sa.bindparam("the_node"))
_NODE = sa.select(nodes).where(*_AT)
_BY_NAME = {name: sa.bindparam(f"new_{name}", type_=sa.Text) for name in ("status", "error")}
_AS_JSON = {name: sa.bindparam(f"new_{name}", type_=_JSON) for name in ("input", "output")}
_OVER = sa.case((sa.bindparam("over", type_=sa.Boolean), DbNow()), else_=None)
_DECIDE = (
    sa.update(nodes)
    .where(*_AT, nodes.c.status == "pending")
    .values(**_BY_NAME, **_AS_JSON, started_ms=DbNow(), ended_ms=_OVER)
)
_SETTLE = (
    sa.update(nodes)
    .where(*_AT, nodes.c.status.in_(UNDER_WAY))
    .values(**_BY_NAME, output=_AS_JSON["output"], ended_ms=DbNow())
)
_NOTE = sa.update(nodes).where(*_AT, nodes.c.status.in_(UNDER_WAY))
_SKIP = (
    sa.update(nodes)
    .where(nodes.c.run_id == sa.bindparam("the_run"), nodes.c.status.not_in(SETTLED))
    .values(status="skipped", ended_ms=DbNow())
)
_END = (
    sa.update(runs)
    .where(runs.c.id == sa.bindparam("the_run"), runs.c.status.in_(OPEN))
    .values(**_BY_NAME, output=_AS_JSON["output"], ended_ms=DbNow())
)


def new_run(tx: Tx, workflow: Row, snapshot: Json, given: Json, started_by: str) -> str:
    """The id of a new run of the workflow, all of whose nodes are pending."""
    _forget_old(tx, workflow)
    run_id = new_id("wfr")
    values = {"workflow_id": workflow.id, "agent_id": workflow.agent_id, "started_by": started_by, "input": given}
    tx.run(
        sa.insert(runs).values(
            id=run_id,
            tenant=workflow.tenant,
            status="running",
            workflow_snapshot=snapshot,
            started_ms=DbNow(),
            **values,
        )
    )
    columns = ("run_id", "node_id", "tenant", "node_type", "status")
    rows = [(run_id, node["id"], workflow.tenant, node["type"], "pending") for node in snapshot["graph"]["nodes"]]
    tx.insert_rows(nodes.name, columns, rows)
    return run_id


def _forget_old(tx: Tx, workflow: Row) -> None:
    ended = (runs.c.tenant == workflow.tenant, runs.c.workflow_id == workflow.id, runs.c.ended_ms.is_not(None))
    old = tx.all(sa.select(runs.c.id).where(*ended).order_by(runs.c.id.desc()).offset(KEPT).limit(FORGOTTEN))
    if old:
        ids = [row.id for row in old]
        tx.run(sa.delete(nodes).where(nodes.c.run_id.in_(ids)))
        tx.run(sa.delete(runs).where(runs.c.id.in_(ids)))


def run_row(tx: Tx, run_id: str) -> Row | None:
    """The run as it is now."""
    return tx.one(_RUN, {"the_run": run_id})


def held_run(tx: Tx, run_id: str) -> Row | None:
    """The run, which until the end of the transaction nobody else changes; None if there is none."""
    return tx.one(_HELD, {"the_run": run_id})


def node_rows(tx: Tx, run_id: str) -> Sequence[Row]:
    """What has become of each node, in no order."""
    return tx.all(_NODES, {"the_run": run_id})


def node_row(tx: Tx, run_id: str, node_id: str) -> Row | None:
    """What has become of one node."""
    return tx.one(_NODE, {"the_run": run_id, "the_node": node_id})


def states_of(rows: Sequence[Row]) -> dict[str, NodeState]:
    """The same as the machine reads it."""
    return {row.node_id: NodeState(row.status, row.input, row.output, row.error) for row in rows}


def decide_nodes(tx: Tx, run_id: str, changed: Mapping[str, NodeState]) -> None:
    """Write what pending nodes have become. The run is held."""
    if changed:
        tx.run(
            _DECIDE,
            [
                {**_named(run_id, node_id), **_new(state), "new_input": state.input, "over": state.status in SETTLED}
                for node_id, state in changed.items()
            ],
        )


def settle(tx: Tx, run_id: str, node_id: str, state: NodeState) -> bool:
    """Write how a node under way ended; False, and nothing written, if it was not under way any more."""
    return tx.run(_SETTLE, [{**_named(run_id, node_id), **_new(state)}]) == 1


def note(tx: Tx, run_id: str, node_id: str, **values: Any) -> bool:
    """Write who carries out a node under way: `job_id`, `session_id`, `work_task_id`. False if it is not."""
    return tx.run(_NOTE.values(**values), [_named(run_id, node_id)]) == 1


def skip_open_nodes(tx: Tx, run_id: str) -> None:
    """Nothing will become of nodes that are not settled."""
    tx.run(_SKIP, [{"the_run": run_id}])


def end_run(tx: Tx, run_id: str, status: str, output: Json | None, error: str | None) -> bool:
    """Write how the run ended; False if it had ended before."""
    values = {"the_run": run_id, "new_status": status, "new_output": output, "new_error": error}
    return tx.run(_END, [values]) == 1


def turn_run(tx: Tx, run_id: str, before: str, after: str) -> bool:
    """Move an open run from one status to another; False if it was not in the first."""
    moved = sa.update(runs).where(runs.c.id == run_id, runs.c.status == before).values(status=after)
    return tx.run(moved) == 1


def _named(run_id: str, node_id: str) -> dict[str, Any]:
    return {"the_run": run_id, "the_node": node_id}


def _new(state: NodeState) -> dict[str, Any]:
    return {"new_status": state.status, "new_output": state.output, "new_error": state.error}


class Runs:
    """The runs of one agent's workflows, or of a tenant's, as callers see them."""

    def __init__(self, tx: Tx, tenant: str, agent: str | None) -> None:
        self.tx = tx
        self._mine = [runs.c.tenant == tenant]
        if agent is not None:
            self._mine.append(runs.c.agent_id == agent)

    def page(self, workflow_id: str, limit: int = LISTED) -> Sequence[Row]:
        """The newest runs of a workflow."""
        wanted = sa.select(runs).where(*self._mine, runs.c.workflow_id == workflow_id)
        return self.tx.all(wanted.order_by(runs.c.id.desc()).limit(limit))

    def get(self, run_id: str) -> Row:
        """The run of this id."""
        row = self.tx.one(sa.select(runs).where(*self._mine, runs.c.id == run_id))
        if row is None:
            raise NotFound(f"there is no run {run_id}", hint="action runs shows those of a workflow")
        return row

    def named(self, ids: Sequence[str]) -> Sequence[Row]:
        """Of each of these runs that is there: its id, and the id and the name of its workflow."""
        joined = sa.select(runs.c.id, runs.c.workflow_id, workflows.c.name).join(
            workflows, workflows.c.id == runs.c.workflow_id
        )
        return self.tx.all(joined.where(*self._mine, runs.c.id.in_(ids)))
