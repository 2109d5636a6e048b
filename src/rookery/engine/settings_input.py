"""What the owner may set for a project that is worked on, and within which bounds."""

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from pydantic import Field, StringConstraints

from rookery.core.errors import Conflict, ValidationFailed
from rookery.core.tool import ToolInput
from rookery.engine.project_settings import ROLES, OrchestratorSettings, PromptBudgets
from rookery.identity.store import IdentityStore

Row = sa.Row[Any]
DAY_S = 86_400
MAX_DOLLARS = 1_000_000
BOUNDS: dict[str, tuple[int, int]] = {
    "max_agents": (0, 1_000),
    "role_caps": (0, 1_000),
    "prompt": (0, 200_000),
    "max_retries": (0, 20),
    "run_limit_s": (1, 7 * DAY_S),
    "max_turns": (1, 10_000),
    "gate_limit_s": (1, DAY_S),
    "run_budget_usd": (0, MAX_DOLLARS),
    "issue_budget_usd": (0, MAX_DOLLARS),
    "daily_budget_usd": (0, MAX_DOLLARS),
    "scan_batch": (1, 100),
    "scan_every_s": (1, 31 * DAY_S),
    "intake_batch": (1, 100),
    "hooks.limit_s": (1, 3_600),
}
_TABLES = ("role_caps", "prompt", "hooks")
Limit = Literal["max_turns", "run_budget_usd", "issue_budget_usd", "daily_budget_usd"]
Command = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2_000)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Glob = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
Folder = Annotated[str, StringConstraints(strip_whitespace=True, max_length=1_000)]


class HookChanges(ToolInput):
    """Commands around a workspace; the empty text is no command."""

    after_create: Command | None = Field(None, description="Runs once in a new workspace.")
    before_run: Command | None = Field(None, description="Runs before every run; its failure ends the run.")
    after_run: Command | None = Field(None, description="Runs after every run; its failure is told.")
    before_remove: Command | None = Field(None, description="Runs before a workspace is removed.")
    limit_s: int | None = Field(None, description="Seconds for each of them.")


class ConfigureOrchestrator(ToolInput):
    """Absent values stay. In a table the names that are not given stay, and null takes one out."""

    enabled: bool | None = Field(None, description="Whether agents work on the project's issues.")
    max_agents: int | None = Field(None, description="How many agents work at once.")
    role_caps: dict[str, int | None] | None = Field(None, description="How many of a role.")
    agents: dict[str, Name | None] | None = Field(None, description="Which agent does the work of a role.")
    models: dict[str, Name | None] | None = Field(None, description="Which model a role uses.")
    hooks: HookChanges | None = Field(None, description="Commands around a workspace.")
    prompt: dict[str, int | None] | None = Field(None, description="Tokens of each kind of context; null: as at first.")
    max_retries: int | None = Field(None, description="How often what failed is tried again.")
    run_limit_s: int | None = Field(None, description="Seconds that a run may take.")
    max_turns: int | None = Field(None, description="Turns that a run may have.")
    gate_limit_s: int | None = Field(None, description="Seconds that each gate may take.")
    run_budget_usd: float | None = Field(None, description="What a run may cost.")
    issue_budget_usd: float | None = Field(None, description="What an issue may cost.")
    daily_budget_usd: float | None = Field(None, description="What a day (UTC) may cost.")
    unlimited: list[Limit] | None = Field(None, description="Which of these limits there are no more.")
    merge: Literal["ff", "merge"] | None = Field(None, description="Fast-forward, or a merge commit.")
    auto_merge: bool | None = Field(None, description="Merge approved changes of low risk without a person.")
    scan_concepts: list[Name] | None = Field(None, max_length=50, description="All that files are examined for.")
    scan_paths: list[Glob] | None = Field(None, min_length=1, max_length=100, description="All globs of files.")
    scan_batch: int | None = Field(None, description="Files of one scan.")
    scan_every_s: int | None = Field(None, description="Seconds between scans.")
    intake_batch: int | None = Field(None, description="Requests of one intake.")
    intake_folder: Folder | None = Field(None, description="Whose files become requests; '' for none.")


def changed_settings(
    args: ConfigureOrchestrator, kept: OrchestratorSettings, store: IdentityStore, project: Row
) -> dict[str, Any]:
    """The values to be stored. What is out of bounds, or names what is not there, is refused with what may be said."""
    values = args.model_dump(exclude_none=True, exclude={"enabled", "unlimited"})
    _check_bounds(values)
    for name in ("role_caps", "agents", "models"):
        if (said := getattr(args, name)) is not None:
            _check_names("role", said, ROLES)
            values[name] = _merged(getattr(kept, name), said)
    if args.prompt is not None:
        _check_names("part of the prompt", args.prompt, PromptBudgets.model_fields)
        values["prompt"] = _merged(kept.prompt.model_dump(), args.prompt)
    if "hooks" in values:
        values["hooks"] = kept.hooks.model_dump() | values["hooks"]
    for role, name in (args.agents or {}).items():
        if name is not None:
            values["agents"][role] = _member(store, project, name, role)
    _check_folder(values.get("intake_folder"), project)
    return {**values, **dict.fromkeys(args.unlimited or ())}


def _check_bounds(values: Mapping[str, Any]) -> None:
    tables = ((f"{name}.{part}", each) for name in _TABLES for part, each in values.get(name, {}).items())
    for name, value in (*values.items(), *tables):
        if isinstance(value, int | float) and not isinstance(value, bool):
            lowest, highest = BOUNDS.get(name) or BOUNDS[name.partition(".")[0]]
            if not (math.isfinite(value) and lowest <= value <= highest):
                raise ValidationFailed(f"{name} cannot be {value}", hint=f"it must be between {lowest} and {highest}")


def _check_names(kind: str, said: Iterable[str], known: Iterable[str]) -> None:
    for name in said:
        if name not in known:
            raise ValidationFailed(f"there is no {kind} {name}", hint=f"known: {', '.join(known)}")


def _check_folder(folder: str | None, project: Row) -> None:
    if folder and not project.path and not folder.startswith("/"):
        raise ValidationFailed(
            f"the project {project.slug} has no folder in which {folder} could be", hint="give an absolute path"
        )


def _merged(kept: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**kept, **said}.items() if value is not None}


def _member(store: IdentityStore, project: Row, name: str, role: str) -> str:
    """The agent's name, if it may work in the project."""
    agent = store.agent(name)
    if project.members is not None and agent.id not in project.members:
        raise Conflict(
            f"the agent {agent.name} cannot be the {role} of {project.slug}: it has no role in the project",
            hint=f"rookery projects members {project.slug} says who may enter",
        )
    return agent.name
