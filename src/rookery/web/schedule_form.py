"""The form of a schedule: which fields each type of action has, what the form says, and what that means to the tool."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args
from zoneinfo import available_timezones

from rookery.core.errors import InvalidParams
from rookery.domains.schedules.action import MAX_ACTIONS, ActionType
from rookery.web.editing import editable
from rookery.web.visit import Visit

Json = dict[str, Any]
TYPES: dict[str, tuple[str, tuple[str, ...]]] = {
    "custom": ("A session with a prompt of yours", ("prompt",)),
    "work_task": ("Make a work task", ("description",)),
    "codebase_review": ("Review the codebase", ("description", "repos")),
    "dependency_audit": ("Audit the dependencies", ("description", "repos")),
    "review_prs": ("Review pull requests", ("repos", "max_prs")),
    "github_suggest": ("Suggest improvements on GitHub", ("repos", "auto_create_pr")),
    "improvement_loop": ("Improve what is worst", ("max_improvement_tasks", "focus_area")),
    "send_message": ("Send a message to an agent", ("to_agent_id", "message")),
    "memory_maintenance": ("Tidy up the agent's memories", ()),
    "reputation_attestation": ("Attest the agent's reputation", ()),
    "star_repo": ("Star repositories", ("repos",)),
    "fork_repo": ("Fork repositories", ("repos",)),
}
assert set(TYPES) == set(get_args(ActionType))
FIELDS: dict[str, tuple[str, str, str]] = {
    "prompt": ("Prompt", "long", ""),
    "description": ("Description", "long", ""),
    "message": ("Message", "long", ""),
    "repos": ("Repositories", "text", "owner/name, with commas between"),
    "to_agent_id": ("To the agent", "text", "its name"),
    "focus_area": ("Focus", "text", "such as tests"),
    "max_prs": ("Pull requests at most", "number", ""),
    "max_improvement_tasks": ("Tasks at most", "number", "1 to 5"),
    "auto_create_pr": ("Make a work task of each", "check", ""),
    "project_id": ("Project", "choice", ""),
}
"""Of each field of an action: its label, its shape, and a hint."""
OUTCOMES = {"session_id": "Session", "work_task_id": "Work task", "cost_usd": "Cost", "result": "Result"}
POLICIES = {
    "owner_approve": "The owner agrees before actions that change something",
    "council_approve": "The owner agrees before every execution",
    "auto": "Nobody is asked",
}
MISSED = {"run_once": "Run once for what was missed", "skip": "Skip what was missed"}
COMMON = ("name", "description", "agent", "when", "cron_expression", "interval_minutes", "timezone", "approval_policy",
          "missed", "max_budget_per_run", "max_executions", "notify_address")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choice:
    """One line of a select."""

    value: str
    words: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class ActionField:
    """One field of an action in the form. `choices` are for those that are not written but chosen."""

    name: str
    label: str
    shape: str
    hint: str
    value: Any
    choices: Sequence[Choice] = ()


def action_word(name: str) -> str:
    """What a type of action, a field of one or a part of its outcome is called on pages."""
    if name in TYPES:
        return TYPES[name][0]
    return FIELDS[name][0] if name in FIELDS else OUTCOMES.get(name, name.replace("_", " "))


def empty_form() -> Json:
    """What a new schedule begins with."""
    start = {"name": "", "description": "", "agent": "", "when": "cron", "cron_expression": "0 9 * * MON-FRI"}
    more = {"interval_minutes": "60", "timezone": "UTC", "approval_policy": "owner_approve", "missed": "run_once"}
    limits = {"max_budget_per_run": "", "max_executions": "", "notify_address": ""}
    return {**start, **more, **limits, "actions": [{"type": "custom"}]}


def form_of(schedule: Json) -> Json:
    """A schedule as the form shows it."""
    by_cron = schedule["cron_expression"] is not None
    plain = {name: schedule[name] for name in ("name", "description", "timezone", "approval_policy", "missed")}
    names = ("cron_expression", "interval_minutes", "max_budget_per_run", "max_executions", "notify_address")
    given = {name: "" if schedule[name] is None else str(schedule[name]) for name in names}
    more = {"agent": schedule["agent"], "when": "cron" if by_cron else "interval"}
    return {**plain, **given, **more, "actions": schedule["schedule_actions"]}


def sent_form(visit: Visit) -> Json:
    """What the form says now, also where it is not right yet."""
    given: Json = {name: visit.word(name) for name in COMMON}
    count = int(visit.word("actions")) if re.fullmatch(r"\d{1,2}", visit.word("actions")) else 1
    given["actions"] = [_action(visit, place) for place in range(min(count, MAX_ACTIONS))]
    return given


def _action(visit: Visit, place: int) -> Json:
    kind = visit.word(f"a{place}:type")
    found: Json = {"type": kind if kind in TYPES else "custom"}
    for name in (*TYPES[found["type"]][1], "project_id"):
        value = visit.word(f"a{place}:{name}")
        if FIELDS[name][1] == "check":
            found |= {name: True} if value else {}
        elif value:
            found[name] = _read(name, value)
    return found


def _read(name: str, value: str) -> Any:
    if name == "repos":
        return [word for word in re.split(r"[,\s]+", value) if word]
    return int(value) if FIELDS[name][1] == "number" and value.isdecimal() else value


def fields_of(action: Json, projects: Sequence[Json]) -> list[ActionField]:
    """What the form asks for an action of this type, in one of these projects."""
    names = TYPES.get(action["type"], TYPES["custom"])[1]
    written = [ActionField(name, *FIELDS[name], value=_shown(name, action.get(name))) for name in names]
    project = action.get("project_id") or ""
    choices = project_choices(project, projects)
    return [*written, ActionField("project_id", *FIELDS["project_id"], value=project, choices=choices)]


def project_choices(project: str, projects: Sequence[Json]) -> list[Choice]:
    """The projects to choose from. One that is not among them is kept as it is: whoever saves the form is told."""
    known = [
        Choice(each["slug"], each["name"], project.lower() in (each["slug"].lower(), each["id"])) for each in projects
    ]
    lost = [Choice(project, f"{project} (not there)", chosen=True)]
    others = [] if not project or any(each.chosen for each in known) else lost
    return [Choice("", "The default one", not project), *known, *others]


def _shown(name: str, value: Any) -> Any:
    if name == "repos":
        return ", ".join(value or [])
    return editable(value) if FIELDS[name][1] == "long" else value


def timing_of(form: Json) -> Json:
    """What `preview_schedule` and `manage_schedule` are told of the time."""
    zone = {"timezone": form["timezone"] or "UTC"}
    if form["when"] == "interval":
        return {"interval_minutes": _whole("interval_minutes", form["interval_minutes"]), **zone}
    return {"cron_expression": form["cron_expression"], **zone}


def arguments_of(form: Json) -> Json:
    """What `manage_schedule` is told of all but whose it is. An empty limit is none."""
    budget = form["max_budget_per_run"]
    try:
        budget_usd = float(budget) if budget else None
    except ValueError:
        raise InvalidParams("max_budget_per_run: is not a number", hint="such as 0.50") from None
    return {
        **timing_of(form),
        "name": form["name"],
        "description": form["description"],
        "schedule_actions": form["actions"],
        "approval_policy": form["approval_policy"] if form["approval_policy"] in POLICIES else None,
        "missed": form["missed"] if form["missed"] in MISSED else None,
        "max_budget_per_run": budget_usd,
        "max_executions": _whole("max_executions", form["max_executions"]) if form["max_executions"] else None,
        "notify_address": form["notify_address"] or None,
    }


def _whole(name: str, text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text):
        raise InvalidParams(f"{name}: is not a whole number", hint="such as 60")
    return int(text)


def zones() -> list[str]:
    """The time zones that the form offers."""
    areas = ("Africa/", "America/", "Antarctica/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")
    return ["UTC", *sorted(name for name in available_timezones() if name.startswith(areas))]
