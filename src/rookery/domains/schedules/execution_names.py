"""Of which schedules executions are, for pages that show what came of them. For people, in no list of tools: see
overview.py."""

from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.schedules.store import Schedules


class NameExecutions(ToolInput):
    execution_ids: list[str] = Field(max_length=200, description="Their ids.")


class ExecutionName(ToolOutput):
    execution_id: str
    schedule_id: str
    name: str


class ExecutionNames(ToolOutput):
    """One for each that is there; those of others are not."""

    executions: list[ExecutionName]


@tool(
    title="Name executions", effect="read", action="schedule:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def name_executions(ctx: Context, args: NameExecutions) -> ExecutionNames:
    """Say of which schedules these executions are."""
    rows = Schedules(ctx.tx, ctx.actor).named_executions(args.execution_ids)
    found = [ExecutionName(execution_id=row.id, schedule_id=row.schedule_id, name=row.name) for row in rows]
    return ExecutionNames(executions=found)


def execution_of(key: str | None) -> str | None:
    """The execution for which a session of this key was started, as the key says; None if it was for something else."""
    what, _, rest = (key or "").partition(":")
    return rest.partition(":")[0] or None if what == "execution" else None
