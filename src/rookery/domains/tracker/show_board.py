"""With what people look at a board in the console.

Not in a module where tools are looked for: no agent has it, and no session pays for its listing. It is called, decided
and recorded like any other.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from rookery.core.context import Context
from rookery.core.errors import InvalidParams
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.tracker.board_cards import BoardCards, Sort, Wanted, choices
from rookery.domains.tracker.board_changes import mark_of
from rookery.domains.tracker.inputs import Label, Priority, Ref
from rookery.domains.tracker.issue_tools import Status
from rookery.domains.tracker.project_store import Projects
from rookery.lifecycle.states import FINISHED, ISSUE

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class ShowBoard(ToolInput):
    text: Words | None = Field(None, description="Only with this in the title, or with this identifier.")
    label: Label | None = Field(None, description="Only with this label.")
    phase: Literal["research", "architecture", "grooming", "ready"] | None = Field(None, description="Only in it.")
    priority: Priority | None = Field(None, description="1 urgent to 4 low.")
    agent: Words | None = Field(None, description="Only held by this agent, by the name on the card.")
    sort: Sort = Field("urgent", description="Of open columns; finished ones show what was changed last.")
    status: Status | None = Field(None, description="Only this column.")
    cursor: str | None = Field(None, max_length=200, description="Next page of the column, as returned.")
    limit: int = Field(50, ge=1, le=200, description="At most, for each column.")
    finished: int = Field(20, ge=1, le=200, description="The same for finished columns.")
    only: list[Ref] | None = Field(None, max_length=200, description="Only these issues, by their ids.")


class BoardColumn(ToolOutput):
    status: str
    count: int
    targets: list[str]
    """Where a person may move an issue of this column."""
    cards: list[dict[str, Any]]
    next_cursor: str | None


class Board(ToolOutput):
    columns: list[BoardColumn]
    labels: list[str]
    agents: list[str]
    phases: list[str]
    mark: str
    """The moment that is shown, for whoever asks what has changed since."""


@tool(
    title="Show board", effect="read", action="tracker:read", tier="observe", group="Read", profiles="", default=False,
    principals="people", binds="project",
)  # fmt: skip
def show_board(ctx: Context, args: ShowBoard) -> Board:
    """Show the issues of the project as cards, by status: the first of each column, how many there are, and what to
    filter by."""
    settings = Projects(ctx.tx, ctx.actor).settings()
    if args.cursor is not None and args.status is None:
        raise InvalidParams("a cursor belongs to one column", hint="give its status too")
    # First, so that nothing is missed that changes while the rest is read.
    mark = mark_of(ctx.tx, settings.project_id)
    filters = args.model_dump(include={"text", "label", "phase", "priority", "agent", "sort"})
    cards = BoardCards(ctx.tx, Wanted(project_id=settings.project_id, **filters))
    columns = _named(cards, args.only) if args.only is not None else _columns(cards, args)
    labels, agents = ([], []) if args.only is not None or args.status else choices(ctx.tx, settings.project_id)
    return Board(columns=columns, labels=labels, agents=agents, phases=list(settings.pipeline), mark=str(mark))


def _columns(cards: BoardCards, args: ShowBoard) -> list[BoardColumn]:
    """The columns, in the order in which an issue passes them."""
    counts = cards.counts()
    wanted = [args.status] if args.status is not None else ISSUE.states
    found = {
        status: cards.column(status, args.finished if status in FINISHED else args.limit, args.cursor)
        for status in wanted
        if counts[status]
    }
    shown = iter(cards.cards([row for rows, _ in found.values() for row in rows]))
    columns: list[BoardColumn] = []
    for status in wanted:
        rows, next_cursor = found.get(status, ([], None))
        columns.append(_column(status, counts, [next(shown) for _ in rows], next_cursor))
    return columns


def _named(cards: BoardCards, ids: list[str]) -> list[BoardColumn]:
    """Every column with those of the issues that are in it."""
    counts, shown = cards.counts(), cards.cards(cards.named(ids))
    return [
        _column(status, counts, [card for card in shown if card["status"] == status], None) for status in ISSUE.states
    ]


def _column(status: str, counts: dict[str, int], cards: list[dict[str, Any]], cursor: str | None) -> BoardColumn:
    targets = list(ISSUE.legal(status, "human"))
    return BoardColumn(status=status, count=counts[status], targets=targets, cards=cards, next_cursor=cursor)
