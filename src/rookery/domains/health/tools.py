"""Tools that look at the health of a codebase, keep what was found, and show how it moves."""

import contextlib
from typing import Any

from pydantic import ConfigDict

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import NotFound, RookeryError, ValidationFailed
from rookery.core.tool import ToolOutput, tool
from rookery.db.tx import Tx
from rookery.domains.health.collecting import PROBES, Outcome, collect
from rookery.domains.health.inputs import CheckHealthTrends, CollectHealth, RecordHealthSnapshot
from rookery.domains.health.project_settings import MAX_LIMIT_S, HealthSettings, ProjectHealth
from rookery.domains.health.shown import RECORDED, message_on, snapshot, suite, told, trends
from rookery.domains.health.store import Collections, Row, Snapshots
from rookery.identity.store import IdentityStore

# What a look may take beyond its slowest probe: the database, and processes that are slow to go.
SPARE_S = 60


def _without_fields(schema: dict[str, Any]) -> None:
    schema.pop("properties", None)


class HealthTrends(ToolOutput):
    """Its fields are listed for no agent: whoever calls sees them."""

    model_config = ConfigDict(json_schema_extra=_without_fields)

    project: str
    snapshots: int
    latest: dict[str, Any] | None
    trends: dict[str, str]
    suite: dict[str, str]
    message: str | None = None

    def as_text(self) -> str:
        return told(self.project, self.latest, self.trends, self.suite, self.message)


class HealthSnapshot(ToolOutput):
    model_config = ConfigDict(json_schema_extra=_without_fields)

    snapshot: dict[str, Any]


class CollectedHealth(HealthSnapshot):
    """`missing` says of each probe without a count why it has none; `samples` are some of the notes."""

    missing: dict[str, str]
    samples: list[str]


def _project(tx: Tx, actor: Actor, named: str | None) -> Row:
    wanted = named or actor.project
    if wanted is None:
        raise NotFound("this session has no project", hint="name one: project_id")
    return IdentityStore(tx, actor.tenant).project(wanted, actor.closed)


@tool(
    title="Check health trends", effect="read", action="reputation:read", tier="observe", group="Read", profiles="",
    default=True, bundles=("preset-analyst",),
)  # fmt: skip
def check_health_trends(ctx: Context, args: CheckHealthTrends) -> HealthTrends:
    """Use it to see if code improves. Returns trends. Reads only."""
    project = _project(ctx.tx, ctx.actor, args.project_id)
    kept = Snapshots(ctx.tx, ctx.actor.tenant, project.id)
    agent = None if args.agent_id is None else IdentityStore(ctx.tx, ctx.actor.tenant).agent(args.agent_id)
    by = None if agent is None else agent.id
    rows, runs = kept.newest(args.limit, args.days, by), kept.runs(args.limit, args.days)
    older = () if rows or args.days is None else kept.newest(1, by=by)
    whose = project.slug if agent is None else f"{project.slug} by {agent.name}"
    return HealthTrends(
        project=project.slug,
        snapshots=len(rows),
        latest=snapshot(rows[-1]) if rows else None,
        trends=trends(rows),
        suite=suite(runs),
        message=message_on(whose, rows, older, args.days),
    )


@tool(
    title="Record health snapshot", effect="write", action="health:record", tier="act", group="Write", profiles="",
    default=True,
)  # fmt: skip
def record_health_snapshot(ctx: Context, args: RecordHealthSnapshot) -> HealthSnapshot:
    """Use it to keep counts of your own. Returns a snapshot. No undo."""
    project = _project(ctx.tx, ctx.actor, args.project_id)
    kept = Snapshots(ctx.tx, ctx.actor.tenant, project.id)
    row = kept.add(args.counts, agent=ctx.actor.agent, source=RECORDED, details={})
    ctx.publish("HealthRecorded", subject=project.id, snapshot=row.id)
    return HealthSnapshot(snapshot=snapshot(row))


@tool(
    title="Collect health", effect="external", action="health:collect", tier="act", group="Write", profiles="",
    default=True, open_world=False, timeout_s=MAX_LIMIT_S + SPARE_S,
)  # fmt: skip
async def collect_health(ctx: Context, args: CollectHealth) -> CollectedHealth:
    """Use it to probe a project's code. Returns counts. Only one at a time."""
    actor = ctx.actor
    project, settings = await ctx.read(lambda tx: _looked_at(tx, actor, args.project_id))
    begun = await ctx.write(lambda tx: Collections(tx, actor.tenant).begin(project.id, settings.limit_s + SPARE_S))
    try:
        outcomes = await _watched(ctx, project.path, settings)
        row = await ctx.write(lambda tx: _keep(tx, actor, project.id, outcomes))
    finally:
        # If this fails too, whoever looks next waits until the time is over.
        with contextlib.suppress(RookeryError):
            await ctx.write(lambda tx: Collections(tx, actor.tenant).end(begun))
    ctx.publish("HealthRecorded", subject=project.id, snapshot=row.id)
    return CollectedHealth(
        snapshot=snapshot(row), missing=row.details["missing"], samples=row.details["samples"]
    )  # fmt: skip


async def _watched(ctx: Context, folder: str, settings: HealthSettings) -> list[Outcome]:
    """The outcomes, of which whoever called is told one by one."""
    done = 0

    def tell(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        ctx.progress(done, len(PROBES), outcome.line)

    ctx.progress(0, len(PROBES), f"probing {', '.join(PROBES)}")
    return await collect(folder, settings, tell)


def _looked_at(tx: Tx, actor: Actor, named: str | None) -> tuple[Row, HealthSettings]:
    project = _project(tx, actor, named)
    if project.path is None:
        raise ValidationFailed(
            f"project {project.slug} has no folder to look at", hint="name a project that was created with a path"
        )
    return project, ProjectHealth(tx, actor.tenant).of(project.id)


def _keep(tx: Tx, actor: Actor, project_id: str, outcomes: list[Outcome]) -> Row:
    counts = {column: count for outcome in outcomes for column, count in outcome.counts.items()}
    details = {
        "missing": {outcome.probe: outcome.missing for outcome in outcomes if outcome.missing is not None},
        "samples": [sample for outcome in outcomes for sample in outcome.samples],
    }
    kept = Snapshots(tx, actor.tenant, project_id)
    return kept.add(counts, agent=actor.agent, source="collected", details=details)
