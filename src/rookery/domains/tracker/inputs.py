"""What the inputs of the tracker's tools have in common."""

from typing import Annotated

from pydantic import Field, StringConstraints

from rookery.core.tool import ToolInput

Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
LongText = Annotated[str, StringConstraints(max_length=50_000)]
Reason = Annotated[str, StringConstraints(max_length=5_000)]
Ref = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
"""An issue by its id or its identifier."""
Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Labels = Annotated[list[Label], Field(max_length=30)]
Priority = Annotated[int, Field(ge=1, le=4)]


class OnIssue(ToolInput):
    """Base of what changes the bound issue: a holder of a lease may prove that it is still theirs."""

    fence: int | None = Field(None, ge=1, description="From claim_issue.")
