"""What a schedule can do: the types of actions, what each needs, and which of them a person has to agree to."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from rookery.core.errors import ValidationFailed

ActionType = Literal[
    "star_repo", "fork_repo", "review_prs", "work_task", "send_message", "github_suggest", "codebase_review",
    "dependency_audit", "improvement_loop", "memory_maintenance", "reputation_attestation", "custom",
]  # fmt: skip
Policy = Literal["auto", "owner_approve", "council_approve"]
TOOLS: dict[ActionType, str] = {
    "star_repo": "github_star_repo",
    "fork_repo": "github_fork_repo",
    "send_message": "send_message",
    "reputation_attestation": "publish_attestation",
    "work_task": "create_work_task",
    "improvement_loop": "create_work_task",
}
"""The tool that an action calls as the agent."""
SESSIONS: frozenset[ActionType] = frozenset(
    {"review_prs", "github_suggest", "codebase_review", "dependency_audit", "custom"}
)
"""The actions that are left to an agent's session."""
OWNER_APPROVES: frozenset[str] = frozenset(
    {"work_task", "github_suggest", "fork_repo", "codebase_review", "dependency_audit", "improvement_loop"}
)
MAX_ACTIONS = 10
MAX_REPOS = 20
MAX_TEXT = 8_000
_NEEDS: dict[ActionType, tuple[str, ...]] = {
    "star_repo": ("repos",),
    "fork_repo": ("repos",),
    "review_prs": ("repos",),
    "github_suggest": ("repos",),
    "work_task": ("description",),
    "send_message": ("to_agent_id", "message"),
    "custom": ("prompt",),
}
_HINT = "docs/schedules.md lists what each type takes"
_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")


def _repo(text: str) -> str:
    if not _REPO.fullmatch(text) or text.rpartition("/")[2] in (".", ".."):
        raise ValueError("is not owner/name")
    return text


Text = Annotated[str, Field(max_length=MAX_TEXT)]


class Action(BaseModel):
    """One action. The spelling of the seed's own records, such as `maxPrs`, is taken as well."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    type: ActionType
    repos: list[Annotated[str, AfterValidator(_repo)]] = Field(default=[], max_length=MAX_REPOS)
    description: Text | None = None
    project_id: Text | None = None
    to_agent_id: Text | None = None
    message: Text | None = None
    prompt: Text | None = None
    max_prs: int = Field(5, ge=1, le=50)
    auto_create_pr: bool = False
    max_improvement_tasks: int = Field(3, ge=1, le=5)
    focus_area: Annotated[str, Field(max_length=200)] | None = None

    def stored(self) -> dict[str, Any]:
        """What is kept of it: what was said, and nothing that was not."""
        return self.model_dump(mode="json", exclude_defaults=True) | {"type": self.type}


def read_actions(given: Sequence[dict[str, Any]]) -> list[Action]:
    """The actions, or what is wrong with the first bad one."""
    if not 1 <= len(given) <= MAX_ACTIONS:
        raise ValidationFailed(
            f"schedule_actions: must have 1 to {MAX_ACTIONS} actions, not {len(given)}",
            hint='such as [{"type": "custom", "prompt": "…"}]',
        )
    return [_read(number, each) for number, each in enumerate(given, start=1)]


def _read(number: int, given: dict[str, Any]) -> Action:
    where = f"schedule_actions: action {number}"
    if str(given.get("type", "")).startswith("council"):
        raise ValidationFailed(
            f"{where}: {given['type']} is not supported: there are no councils here",
            hint="use custom with a prompt, or work_task",
        )
    try:
        action = Action.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "it"
        raise ValidationFailed(f"{where}: {place}: {first['msg']}", hint=_HINT) from None
    missing = [name for name in _NEEDS.get(action.type, ()) if not _filled(getattr(action, name))]
    if missing:
        raise ValidationFailed(f"{where}: {action.type} needs {', '.join(missing)}", hint=_HINT)
    return action


def _filled(value: object) -> bool:
    return bool(value.strip() if isinstance(value, str) else value)


def stored_actions(rows: Sequence[dict[str, Any]]) -> list[Action]:
    """Actions as they were kept."""
    return [Action.model_validate(row) for row in rows]


def needs_approval(policy: str, actions: Sequence[Action]) -> bool:
    """Whether the owner has to agree before each execution. Councils are none here, so their vote is the owner's."""
    if policy == "owner_approve":
        return any(action.type in OWNER_APPROVES for action in actions)
    return policy != "auto"
