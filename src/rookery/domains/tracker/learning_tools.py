"""Tools with which agents pass on what they have learnt."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from rookery.core.context import Context
from rookery.core.errors import ValidationFailed
from rookery.core.tool import EVERY_PROFILE, ToolInput, ToolOutput, tool
from rookery.domains.tracker.coverage_tools import FilePath, plain_path
from rookery.domains.tracker.inputs import OnIssue
from rookery.domains.tracker.learning_store import Learnings, NewLearning
from rookery.domains.tracker.notices import issue_changed
from rookery.domains.tracker.store import Issues
from rookery.fulltext.words import words

MIN_PATTERN = 50
MIN_CONTEXT = 100
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=5_000)]


class AddLearning(OnIssue):
    pattern: Text = Field(description="What holds, at least 50 characters; start with the subject.")
    context: Text | None = Field(None, description="When and where, at least 100 characters.")
    applies_to: list[FilePath] = Field([], max_length=20, description="Path prefixes.")
    learning_type: Literal["convention", "gotcha", "pattern"] | None = Field(None, description="Its kind.")


class Learned(ToolOutput):
    id: str
    quality_score: int


class SearchLearnings(ToolInput):
    query: str = Field(max_length=10_000, description="Words or their beginnings.")
    limit: int = Field(50, ge=1, le=100, description="At most.")
    cross_project: bool = Field(False, description="Search the other projects instead.")
    min_quality_score: int | None = Field(None, ge=0, le=100, description="Least quality; verified ones pass.")


class FoundLearnings(ToolOutput):
    learnings: list[dict[str, Any]]


@tool(
    title="Add learning", effect="write", action="tracker:write", tier="act", group="Write", profiles="WRJAP",
    default=False, binds="issue", outline=False,
)  # fmt: skip
def add_learning(ctx: Context, args: AddLearning) -> Learned:
    """Record a reusable pattern or gotcha on the bound issue. Use it for what agents of other issues should know.
    Returns its id. Vague or repeated learnings are refused."""
    _refuse_short("pattern", args.pattern, MIN_PATTERN)
    if args.context is not None:
        _refuse_short("context", args.context, MIN_CONTEXT)
    new = NewLearning(
        pattern=args.pattern,
        context=args.context,
        applies_to=list(dict.fromkeys(_prefix(path) for path in args.applies_to)),
        learning_type=args.learning_type,
    )
    store = Issues(ctx.tx, ctx.actor)
    issue = store.held(args.fence)
    row = Learnings(ctx.tx, ctx.actor).add(issue, new)
    store.touch(issue)
    issue_changed(ctx, issue)
    return Learned(id=row.id, quality_score=row.quality_score)


def _refuse_short(name: str, text: str, least: int) -> None:
    if len(text) < least:
        raise ValidationFailed(
            f"{name} has {len(text)} characters, at least {least} are needed",
            hint="name the subject, what holds for it, and when",
        )
    if not words(text):
        raise ValidationFailed(f"{name} has no words", hint="say what holds, in words")


def _prefix(text: str) -> str:
    """The path in its one spelling. A folder keeps its slash, since `app` is a prefix of `apple.py` too."""
    return plain_path(text) + ("/" if text.rstrip().endswith("/") else "")


@tool(
    title="Search learnings", effect="read", action="tracker:read", tier="observe", group="Read",
    profiles=EVERY_PROFILE, default=False, binds="project", outline=False,
)  # fmt: skip
def search_learnings(ctx: Context, args: SearchLearnings) -> FoundLearnings:
    """Search what agents have learnt in this project, by words, stems and prefixes. Use it before you start.
    Returns the best first, with a score from 0 to 1; at most 100."""
    store = Learnings(ctx.tx, ctx.actor)
    return FoundLearnings(
        learnings=store.search(
            args.query, limit=args.limit, cross_project=args.cross_project, min_quality=args.min_quality_score
        )
    )
