"""How a board is shown: what an address chooses of it, and a card as HTML."""

from collections.abc import Mapping
from typing import Any

from rookery.lifecycle.states import PHASES
from rookery.web.rendering import environment

COLUMNS = {
    "backlog": "Backlog",
    "todo": "To do",
    "in_progress": "In progress",
    "review": "In review",
    "blocked": "Blocked",
    "done": "Done",
    "cancelled": "Cancelled",
}
PRIORITIES = {1: "Urgent", 2: "High", 3: "Normal", 4: "Low"}
SORTS = {
    "urgent": "Urgent first",
    "newest": "Newest first",
    "oldest": "Oldest first",
    "updated": "Changed last",
}
LONGEST = {"text": 200, "label": 100, "agent": 200}


def filters_of(query: Mapping[str, str]) -> dict[str, Any]:
    """What an address chooses, as arguments of `show_board`. What makes no sense is as if it were not there."""
    found: dict[str, Any] = {}
    for name, longest in LONGEST.items():
        text = query.get(name, "").strip()[:longest].strip()
        if text:
            found[name] = text
    if query.get("phase") in PHASES:
        found["phase"] = query["phase"]
    priority = query.get("priority", "")
    if priority in map(str, PRIORITIES):
        found["priority"] = int(priority)
    if query.get("sort") in SORTS:
        found["sort"] = query["sort"]
    return found


def draw_cards(column: dict[str, Any], may_move: bool) -> list[str]:
    """The cards of a column by themselves, each as it stands there."""
    module: Any = environment().get_template("board_parts.html").module
    menu = module.move_menu(column["targets"]) if may_move and column["targets"] else ""
    targets = " ".join(column["targets"])
    return [str(module.board_card(card, targets, menu)) for card in column["cards"]]
