"""Of which workflows runs are, for pages that show what came of them. For people, in no list of tools: see
overview.py."""

from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.workflows.run_store import Runs
from rookery.domains.workflows.store import owner_of


class NameWorkflowRuns(ToolInput):
    run_ids: list[str] = Field(max_length=200, description="Their ids.")


class WorkflowRunName(ToolOutput):
    run_id: str
    workflow_id: str
    name: str


class WorkflowRunNames(ToolOutput):
    """One for each that is there; those of others are not."""

    runs: list[WorkflowRunName]


@tool(
    title="Name workflow runs", effect="read", action="workflow:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def name_workflow_runs(ctx: Context, args: NameWorkflowRuns) -> WorkflowRunNames:
    """Say of which workflows these runs are."""
    rows = Runs(ctx.tx, ctx.actor.tenant, owner_of(ctx.actor)).named(args.run_ids)
    found = [WorkflowRunName(run_id=row.id, workflow_id=row.workflow_id, name=row.name) for row in rows]
    return WorkflowRunNames(runs=found)


def run_of(key: str | None) -> str | None:
    """The run for which a session of this key was started, as the key says; None if it was for something else."""
    what, _, rest = (key or "").partition(":")
    return rest.partition(":")[0] or None if what == "node" else None
