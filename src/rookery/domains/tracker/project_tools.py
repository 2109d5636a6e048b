"""The tool with which a project is set up for its work."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from rookery.core.context import Context
from rookery.core.errors import InvalidParams
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.tracker.branches import Branch
from rookery.domains.tracker.contract import Phase
from rookery.domains.tracker.inputs import LongText
from rookery.domains.tracker.project_store import Projects, ProjectSettings, Thresholds
from rookery.domains.tracker.risk import matching
from rookery.lifecycle.states import PHASES

Limit = Annotated[int, Field(ge=0, le=1_000_000)]
Pattern = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]


def _folder(path: str) -> str:
    parts = path.rstrip("/").split("/")
    if path and ("\\" in path or ":" in path or any(part in ("", ".", "..", ".git") for part in parts)):
        raise ValueError("must be a folder inside the project, such as prompts/phases")
    return "/".join(parts)


class GateCommand(ToolInput):
    command: Line = Field(description="What is run.")
    label: str = Field(min_length=1, max_length=100, description="Its name.")
    required: bool = Field(description="Whether it must pass.")


class RiskThresholds(ToolInput):
    low_lines: Limit | None = Field(None, alias="lowLines", description="Up to here lines add no risk.")
    high_lines: Limit | None = Field(None, alias="highLines", description="From here the risk is high.")
    low_files: Limit | None = Field(None, alias="lowFiles", description="The same for files.")
    high_files: Limit | None = Field(None, alias="highFiles", description="The same for files.")


class ConfigureProject(ToolInput):
    gates: list[GateCommand] | None = Field(None, max_length=30, description="All quality gates.")
    sensitive_paths: list[Pattern] | None = Field(None, max_length=100, description="All patterns, as in .gitignore.")
    risk_thresholds: RiskThresholds | None = Field(None, description="Some or all.")
    worker_instructions: LongText | None = Field(None, description="For every worker.")
    judge_instructions: LongText | None = Field(None, description="For every judge.")
    prefix: str | None = Field(
        None, pattern=r"^[A-Za-z][A-Za-z0-9]{1,9}$", description="Of identifiers; before the first issue."
    )
    pipeline: list[Phase] | None = Field(None, description="Phases in their order; the last is ready.")
    unjudged: list[Phase] | None = Field(None, description="Phases that need no judge.")
    base_branch: Branch | None = Field(None, description="Work is compared with it.")
    contracts_dir: Annotated[str, AfterValidator(_folder)] | None = Field(
        None, max_length=500, description="Folder of phase contracts; '' for the default."
    )


class Configured(ToolOutput):
    project: str
    settings: dict[str, Any]


# Gates are commands that the orchestrator runs, so only an explicit grant gives this to an agent.
@tool(
    title="Configure project", effect="write", action="tracker:configure", tier="privileged", group="System",
    profiles="", default=False, binds="project", idempotent=True,
)  # fmt: skip
def configure_project(ctx: Context, args: ConfigureProject) -> Configured:
    """Set up the bound project. Use it once at the start, or without arguments to look. Returns all settings.
    Absent ones stay; lists are replaced, not extended."""
    projects = Projects(ctx.tx, ctx.actor)
    given: dict[str, Any] = {
        name: getattr(args, name)
        for name in ("sensitive_paths", "worker_instructions", "judge_instructions", "base_branch")
        if getattr(args, name) is not None
    }
    matching(args.sensitive_paths or (), ())
    if args.gates is not None:
        given["gates"] = _gates(args.gates)
    if args.risk_thresholds is not None:
        # Of two who set different ones at once the second must see the first.
        projects.lock_settings()
        given["risk_thresholds"] = _thresholds(projects.settings().risk_thresholds, args.risk_thresholds)
    if args.pipeline is not None:
        given["pipeline"] = _pipeline(args.pipeline)
    if args.unjudged is not None:
        given["unjudged"] = _unjudged(args.unjudged)
    if args.contracts_dir is not None:
        given["contracts_dir"] = args.contracts_dir or None
    if args.prefix is not None:
        # Two projects that choose at once take turns within a tenant, or both would find the prefix free.
        projects.lock_settings()
        given["prefix"] = args.prefix.upper()
    return shown_settings(projects.update(**given) if given else projects.settings())


def _gates(gates: list[GateCommand]) -> list[dict[str, Any]]:
    commands = [gate.command for gate in gates]
    if twice := sorted({command for command in commands if commands.count(command) > 1}):
        raise InvalidParams(f"gates: {twice[0]!r} stands there twice", hint="give each command once")
    return [gate.model_dump() for gate in gates]


def _thresholds(now: Thresholds, given: RiskThresholds) -> dict[str, int]:
    new = now.model_copy(update=given.model_dump(exclude_none=True))
    for what, low, high in (("Lines", new.low_lines, new.high_lines), ("Files", new.low_files, new.high_files)):
        if low >= high:
            raise InvalidParams(
                f"risk_thresholds: low{what} {low} is not below high{what} {high}",
                hint="absent thresholds keep their values; give both",
            )
    return new.model_dump()


def _pipeline(phases: Sequence[str]) -> list[str]:
    if not phases or phases[-1] != "ready" or list(phases) != [phase for phase in PHASES if phase in phases]:
        raise InvalidParams(
            f"pipeline: {', '.join(phases) or 'nothing'} is not some of {', '.join(PHASES)} in this order",
            hint="each phase once, the last is ready",
        )
    return list(phases)


def _unjudged(phases: Sequence[str]) -> list[str]:
    if "ready" in phases:
        raise InvalidParams("unjudged: ready is judged by its pull request", hint="leave it out")
    return [phase for phase in PHASES if phase in phases]


def shown_settings(found: ProjectSettings) -> Configured:
    """The settings as callers see them."""
    limits = RiskThresholds(**found.risk_thresholds.model_dump()).model_dump(by_alias=True)
    settings = found.model_dump(mode="json", exclude={"project_id", "slug", "path"}) | {"risk_thresholds": limits}
    return Configured(project=found.slug, settings=settings)
