"""The board: issues by status, moved and made by people, live."""

from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from rookery.core.errors import InvalidParams
from rookery.domains.tracker.show_board import show_board
from rookery.web.board_view import COLUMNS, PRIORITIES, SORTS, filters_of
from rookery.web.routing import Nav, action, page
from rookery.web.visit import Visit

CHOOSES = ("text", "label", "phase", "priority", "agent", "sort")


@page("/board", nav=Nav("Board", "", 30, "board", count="reviews"))
async def board(visit: Visit) -> Response:
    """The first cards of every column; or, by `?column=` and `?after=`, more of one."""
    filters = filters_of(visit.query)
    column = visit.query.get("column", "")
    asked: dict[str, Any] = dict(filters)
    if column in COLUMNS:
        asked |= {"status": column, "cursor": visit.query.get("after") or None}
    found = await visit.call(show_board, asked)
    return await visit.render(
        "board.html",
        board=found,
        filters={**dict.fromkeys(CHOOSES), **filters},
        column=column if column in COLUMNS else "",
        names=COLUMNS,
        priorities=PRIORITIES,
        sorts=SORTS,
        total=sum(each["count"] for each in found["columns"]),
        chosen=bool(filters.keys() - {"sort"}),
        stream=urlencode({"feed": "board", "since": found["mark"], **_project(visit), **filters}),
        address=partial(_address, visit, filters),
        may_move=await visit.may("set_issue_status"),
        may_create=await visit.may("create_issue"),
    )


def _address(visit: Visit, filters: dict[str, Any], path: str, **more: str | int | None) -> str:
    """An address with the same filters as the page."""
    return visit.url(path, **{**filters, **more})


@action("/board/move")
async def move(visit: Visit) -> Response:
    """Move one issue: `move` is its id and where it goes, as one of the buttons of a card says it."""
    issue, _, status = visit.word("move").partition(" ")
    if not issue or status not in COLUMNS:
        raise InvalidParams("no issue and no column were named", hint="load the board again")
    reason = visit.word("reason") or None
    moved = await visit.call("set_issue_status", {"issue_id": issue, "status": status, "reason": reason})
    told = f"{moved['identifier']} is now in {COLUMNS[status]}."
    return await visit.done(told, to=_board(visit), refresh="issues")


@action("/board/issues")
async def create(visit: Visit) -> Response:
    """Make an issue."""
    made = await visit.call(
        "create_issue",
        {
            "title": visit.word("title"),
            "description": visit.word("description"),
            "priority": int(visit.word("priority")) if visit.word("priority").isdecimal() else 3,
            "labels": _several(visit.word("labels")),
            "depends_on": _several(visit.word("depends_on")),
        },
    )
    return await visit.done(f"{made['identifier']} is made.", to=_board(visit), refresh="issues issue-made")


def _several(words: str) -> list[str]:
    """What a field with commas in it names, each once."""
    return list(dict.fromkeys(part for each in words.split(",") if (part := each.strip())))


def _project(visit: Visit) -> dict[str, str]:
    return {} if visit.project is None else {"project": visit.project}


def _board(visit: Visit) -> str:
    """The board with the same filters."""
    return visit.url("/board", **filters_of(visit.query))
