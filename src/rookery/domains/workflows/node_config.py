"""What each type of node may be told in its `config`, with limits and defaults."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from rookery.domains.workflows.condition import DEFAULT_EXPRESSION, parse
from rookery.domains.workflows.template import DEFAULT_TEMPLATE, cut, paths_of

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

NodeType = Literal[
    "start",
    "agent_session",
    "work_task",
    "condition",
    "delay",
    "webhook_wait",
    "transform",
    "parallel",
    "join",
    "end",
]


def _readable_template(text: str) -> str:
    paths_of(text)
    return text


def _readable_condition(text: str) -> str:
    parse(text)
    return text


Template = Annotated[str, Field(min_length=1), AfterValidator(_readable_template)]
Expression = Annotated[str, AfterValidator(_readable_condition)]
Ref = Annotated[str, Field(min_length=1, max_length=100)]


class NodeConfig(BaseModel):
    """Base of every config: settings are spelled in camel case, and one that the type does not know is refused."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, frozen=True)


class WorkConfig(NodeConfig):
    """Of nodes that start work of an agent: it may fail and be tried again."""

    agent_id: Ref | None = None
    project_id: Ref | None = None
    retries: int = Field(0, ge=0, le=10)
    retry_delay_ms: int = Field(5_000, ge=0, le=HOUR_MS)


class AgentSessionConfig(WorkConfig):
    prompt: Template
    max_turns: int = Field(50, ge=1, le=1_000)


class WorkTaskConfig(WorkConfig):
    description: Template
    wait_for_completion: bool = False


class ConditionConfig(NodeConfig):
    expression: Expression = DEFAULT_EXPRESSION


class DelayConfig(NodeConfig):
    delay_ms: int = Field(1_000, ge=0, le=HOUR_MS)


class WebhookWaitConfig(NodeConfig):
    webhook_event: str | None = Field(None, max_length=200)
    timeout_ms: int = Field(HOUR_MS, ge=1, le=30 * DAY_MS)


class TransformConfig(NodeConfig):
    template: Template = DEFAULT_TEMPLATE


class ParallelConfig(NodeConfig):
    branch_count: int | None = Field(None, ge=2, le=100)


CONFIGS: dict[str, type[NodeConfig]] = {
    "start": NodeConfig,
    "agent_session": AgentSessionConfig,
    "work_task": WorkTaskConfig,
    "condition": ConditionConfig,
    "delay": DelayConfig,
    "webhook_wait": WebhookWaitConfig,
    "transform": TransformConfig,
    "parallel": ParallelConfig,
    "join": NodeConfig,
    "end": NodeConfig,
}


def config_faults(node_type: str, config: dict[str, Any]) -> list[str]:
    """What is wrong with the config of a node of a known type, a phrase each."""
    model = CONFIGS[node_type]
    try:
        model.model_validate(config)
    except ValidationError as error:
        return [_fault(model, dict(each)) for each in error.errors(include_url=False)]
    return []


def _fault(model: type[NodeConfig], error: dict[str, Any]) -> str:
    name = cut(".".join(str(step) for step in error["loc"]))
    if error["type"] == "extra_forbidden":
        known = ", ".join(str(field.alias) for field in model.model_fields.values())
        return f"has no setting {name}; it takes {known or 'none'}"
    if error["type"] == "missing":
        return f"needs {name}"
    reason = error["ctx"]["error"] if error["type"] == "value_error" else error["msg"]
    return f"has a bad {name}: {reason}"
