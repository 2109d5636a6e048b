"""The tool-scope editor as its templates want it: tools in groups, what a form has chosen, and what a change did."""

import hashlib
from collections.abc import Collection, Iterable
from typing import Any, Literal

from rookery.web.visit import Visit

Row = dict[str, Any]
By = Literal["group", "domain"]
GROUPS = ("Read", "Write", "Phase", "Review", "System")
MEANINGS = {
    "Read": "look and change nothing",
    "Write": "change something in the project or outside",
    "Phase": "move an issue from phase to phase",
    "Review": "decide about the work of others",
    "System": "the platform itself",
}
RISKY = ("privileged", "destructive")


def grouping(visit: Visit) -> By:
    """How the page is asked to group the tools."""
    return "domain" if visit.query.get("by") == "domain" else "group"


def grouped(tools: Iterable[Row], by: By) -> list[Row]:
    """The tools under the headings of their kind or of their domain; those that stand `aside` come last."""
    found: dict[str, list[Row]] = {name: [] for name in GROUPS} if by == "group" else {}
    for each in sorted(tools, key=lambda tool: (tool[by], tool.get("aside", False), tool["name"])):
        found.setdefault(each[by], []).append(each)
    return [
        {
            "id": f"{by}-{name.lower()}",
            "name": name,
            "meaning": MEANINGS.get(name, "") if by == "group" else "",
            "tools": each,
            "ticked": sum(1 for tool in each if tool["ticked"]),
        }
        for name, each in found.items()
        if each
    ]


def for_agents(tools: Iterable[Row], chosen: Collection[str]) -> list[Row]:
    """The tools that an agent can have, and whichever others were chosen: nothing is dropped unseen."""
    return [
        {**each, "ticked": each["name"] in chosen} for each in tools if not each["for_people"] or each["name"] in chosen
    ]


def fingerprint(names: Iterable[str] | None) -> str:
    """Stands for a list in a form, so that nobody saves over a change that they have not seen."""
    told = "default" if names is None else "\n".join(sorted(names))
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def effect(before: Row, after: Row) -> Row:
    """What live sessions have lost and gained between two answers of `list_live_sessions`, and how many there are."""
    had = {each["id"]: set(each["tools"]) for each in before["sessions"]}
    found: list[Row] = []
    for each in after["sessions"]:
        has = set(each["tools"])
        lost, gained = sorted(had.get(each["id"], has) - has), sorted(has - had.get(each["id"], has))
        if lost or gained:
            found.append({**each, "lost": lost, "gained": gained})
    return {"sessions": found, "connected": len(after["sessions"]), "elsewhere": sum(after["elsewhere"].values())}


def risks(view: Row) -> list[Row]:
    """Of the tools that a change would add those that can do harm."""
    return [each for each in view["tools"] if each["name"] in view["added"] and each["tier"] in RISKY]
