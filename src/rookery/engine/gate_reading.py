"""With what people see how a project's gates fare on what was claimed last, before a pull request has the results."""

from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.tracker.inputs import Ref
from rookery.domains.tracker.pr_reading import OUTPUT_SHOWN
from rookery.domains.tracker.store import Issues
from rookery.engine.tables import gate_runs

_g = gate_runs.c


class ReadGateRun(ToolInput):
    issue_id: Ref = Field(description="Id or identifier.")


class GateRunShown(ToolOutput):
    run: dict[str, Any] | None


@tool(
    title="Read gate run", effect="read", action="orchestrator:read", tier="observe", group="Review", profiles="",
    default=False, principals="people",
)  # fmt: skip
def read_gate_run(ctx: Context, args: ReadGateRun) -> GateRunShown:
    """Show the newest run of the gates for an issue, also while it goes on."""
    issue = Issues(ctx.tx, ctx.actor).find(args.issue_id)
    mine = (_g.tenant == issue.tenant, _g.issue_id == issue.id)
    row = ctx.tx.one(sa.select(gate_runs).where(*mine).order_by(_g.created_ms.desc(), _g.claim_id.desc()).limit(1))
    if row is None:
        return GateRunShown(run=None)
    shown = {name: getattr(row, name) for name in ("claim_id", "head", "error", "created_ms", "ended_ms")}
    results: list[dict[str, Any]] = row.results or []
    ends = [{**each, "output": each["output"][-OUTPUT_SHOWN:], "length": len(each["output"])} for each in results]
    return GateRunShown(run={**shown, "results": ends})
