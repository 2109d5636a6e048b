"""What the owner reads of an execution before it may run. Whatever an agent wrote stands in it as JSON, on one line."""

import json
from collections.abc import Sequence
from typing import Any

from rookery.asks.cards import printable
from rookery.domains.schedules.action import Action, ActionType, stored_actions
from rookery.domains.schedules.tables import MICROS

MAX_SHOWN = 60_000
"""Beyond this the middles of long texts are left out, so that all parts of all actions are there."""
LONG = 1_000
OPTIONS: dict[ActionType, tuple[str, ...]] = {
    "review_prs": ("max_prs",),
    "github_suggest": ("auto_create_pr",),
    "improvement_loop": ("max_improvement_tasks",),
}
"""What counts for an action although nobody may have said it."""
Stored = Sequence[dict[str, Any]]


def one_line(value: Any) -> str:
    """The value as JSON, with everything spelled out that would not be seen or would begin a line."""
    return printable(json.dumps(value, ensure_ascii=False))


def shortened(text: str, most: int) -> str:
    """The text without its middle, if it is longer than this."""
    if len(text) <= most:
        return text
    left_out = f" … {len(text) - most} characters left out … "
    return f"{text[: most - most // 2]}{left_out}{text[len(text) - most // 2 :]}"


def parts_of(action: Action) -> dict[str, Any]:
    """All that an action will go by."""
    more = {name: getattr(action, name) for name in OPTIONS.get(action.type, ())}
    return {"type": action.type} | action.stored() | more


def action_lines(actions: Stored) -> list[str]:
    """A line for each action: whole if all of them together are not too long."""
    whole = _whole(actions)
    return whole if _fits(whole) else short_lines(actions, LONG)


def short_lines(actions: Stored, most: int) -> list[str]:
    """A line for each action, without the middles of texts that are longer than this."""
    return [
        one_line({name: shortened(part, most) if isinstance(part, str) else part for name, part in given.items()})
        for given in map(parts_of, stored_actions(actions))
    ]


def shown_whole(actions: Stored) -> list[int]:
    """The places of those actions of which nothing is left out in `action_lines`."""
    shown = zip(_whole(actions), action_lines(actions), strict=True)
    return [place for place, (whole, line) in enumerate(shown) if whole == line]


def limits_of(snapshot: dict[str, Any]) -> str:
    """What the execution may cost, which of how many it is, and who is told; null is: no limit, nobody."""
    budget = snapshot["max_budget_micros"]
    return one_line(
        {
            "max_budget_per_run": None if budget is None else budget / MICROS,
            "max_executions": snapshot["max_executions"],
            "execution": snapshot["number"],
            "notify_address": snapshot["notify_address"],
        }
    )


def _whole(actions: Stored) -> list[str]:
    return [one_line(parts_of(action)) for action in stored_actions(actions)]


def _fits(lines: list[str]) -> bool:
    return sum(map(len, lines)) <= MAX_SHOWN
