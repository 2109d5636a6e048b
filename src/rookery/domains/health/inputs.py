"""What the tools of this domain are given. Validators rather than limits that every agent would read in the schema.

What is hidden is taken all the same: the other spelling of the seeds, and another project than the session's own.
"""

from typing import Annotated, Any, cast

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema as Hidden

from rookery.core.tool import ToolInput
from rookery.domains.health.metrics import COLUMNS, MAX_COUNT, METRICS

DEFAULT_LISTED = 10
MAX_LISTED = 100
MAX_DAYS = 3_650
MAX_REFERENCE = 200


def _whole(value: Any) -> Any:
    # True would be read as 1.
    if isinstance(value, bool):
        raise ValueError("must be a whole number")
    return value


def _named(text: str) -> str:
    if not 1 <= len(text.strip()) <= MAX_REFERENCE:
        raise ValueError(f"must have 1 to {MAX_REFERENCE} characters")
    return text.strip()


def _few(number: int) -> int:
    if not 1 <= number <= MAX_LISTED:
        raise ValueError(f"must be from 1 to {MAX_LISTED}")
    return number


def _days(number: int) -> int:
    if not 1 <= number <= MAX_DAYS:
        raise ValueError(f"must be from 1 to {MAX_DAYS}")
    return number


def _counted(value: Any) -> Any:
    if not isinstance(value, dict) or not value:
        raise ValueError(f"must have at least one of {', '.join(METRICS)}")
    counts: dict[str, int] = {}
    for name, count in cast("dict[Any, Any]", value).items():
        column = METRICS.get(name, name) if isinstance(name, str) else None
        if column not in COLUMNS:
            raise ValueError(f"{str(name)[:50]!r} is none of {', '.join(METRICS)}")
        if column in counts:
            raise ValueError(f"{column} is given twice")
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_COUNT:
            raise ValueError(f"{name} must be a whole number from 0 to {MAX_COUNT}")
        counts[column] = count
    return counts


Reference = Annotated[str, AfterValidator(_named)]
Counts = Annotated[dict[str, int], BeforeValidator(_counted), WithJsonSchema({"type": "object"})]


class CheckHealthTrends(ToolInput):
    project_id: Reference | None = Field(None, description="Id or name")
    days: Annotated[int, BeforeValidator(_whole), AfterValidator(_days)] | None = Field(None, description="Max age")
    limit: Hidden[Annotated[int, BeforeValidator(_whole), AfterValidator(_few)]] = DEFAULT_LISTED
    agent_id: Hidden[Reference | None] = None


class RecordHealthSnapshot(ToolInput):
    counts: Counts = Field(description="{tsc_errors: 3, todos: 12}")
    project_id: Hidden[Reference | None] = None


class CollectHealth(ToolInput):
    project_id: Hidden[Reference | None] = None
