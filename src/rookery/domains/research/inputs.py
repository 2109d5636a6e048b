"""The arguments of the research tools."""

import math
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field

from rookery.core.tool import ToolInput
from rookery.domains.research.port import FRESHNESS, MAX_COUNT

MAX_QUERY = 400
MAX_TOPIC = 380
"""So that what is asked about a topic is no longer than a query."""
MAX_QUERIES = 20


def _asked(most: int) -> AfterValidator:
    def check(text: str) -> str:
        line = " ".join(text.split())
        if not line or len(line) > most:
            raise ValueError(f"must have 1 to {most} characters")
        return line

    return AfterValidator(check)


def _number(value: Any) -> Any:
    # True would be read as 1.
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _clamped(number: float) -> float:
    if math.isnan(number):
        raise ValueError("must be a number")
    return min(max(number, 1), MAX_COUNT)


def _fresh(text: str) -> str:
    if text not in FRESHNESS:
        raise ValueError(f"must be one of {', '.join(FRESHNESS)}")
    return text


def _few(queries: list[str]) -> list[str]:
    lines = [line for line in (" ".join(query.split()) for query in queries) if line]
    if len(queries) > MAX_QUERIES or any(len(line) > MAX_QUERY for line in lines):
        raise ValueError(f"must be at most {MAX_QUERIES} of up to {MAX_QUERY} characters")
    return lines


# Validators rather than limits that every agent would read in the schema.
class WebSearch(ToolInput):
    query: Annotated[str, _asked(MAX_QUERY)] = Field(description="Text")
    count: Annotated[float, BeforeValidator(_number), AfterValidator(_clamped)] | None = Field(None, description="1-20")
    freshness: Annotated[str, AfterValidator(_fresh)] | None = Field(
        None, description="pd (past day), pw, pm, py (year)"
    )


class DeepResearch(ToolInput):
    query: Annotated[str, _asked(MAX_TOPIC)] = Field(
        validation_alias=AliasChoices("query", "topic"), description="Topic"
    )
    queries: Annotated[list[str], AfterValidator(_few)] | None = Field(
        None, validation_alias=AliasChoices("queries", "sub_questions"), description="Up to 4"
    )
