"""What the page of the orchestrator shows, and what its form says. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rookery.core.errors import ValidationFailed
from rookery.engine.project_settings import ROLES

Word = Callable[[str], str]
WHOLE = ("max_agents", "max_retries", "run_limit_s", "gate_limit_s", "scan_batch", "scan_every_s", "intake_batch")
LIMITS = ("max_turns", "run_budget_usd", "issue_budget_usd", "daily_budget_usd")
"""What may have no limit: an empty field."""
HOOKS = ("after_create", "before_run", "after_run", "before_remove")
PROMPT = ("issue", "memories", "conventions", "learnings", "rejections")
SHOWN_WAITS = 100
CODES = {
    "not_enabled": "not worked on",
    "no_runtime": "nothing runs agents",
    "paused": "paused",
    "status": "its status",
    "dependency": "other issues",
    "label": "a label",
    "held": "held by somebody",
    "running": "running",
    "unprocessed": "the next tick",
    "gates": "gates",
    "cap_global": "cap of all agents",
    "cap_project": "cap of the project",
    "cap_role": "cap of the role",
    "budget_issue": "budget of the issue",
    "budget_project": "budget of the project",
    "budget_global": "budget of the day",
    "retry": "another attempt",
    "no_agent": "an agent",
    "no_folder": "a folder",
    "no_leader": "a leader",
    "next": "its turn",
}
"""What an issue waits for, in words."""


def shown_waits(status: Mapping[str, Any], code: str) -> dict[str, Any]:
    """The issues that wait, those for one reason alone if `code` says so, and how many wait for what."""
    told = [each for each in status["waiting"] if each["code"] not in ("running", "retry")]
    wanted = [each for each in told if code in ("", each["code"])]
    counts = {name: many for name, many in status["waits"].items() if name not in ("running", "retry")}
    return {
        "waits": [{**each, "words": CODES.get(each["code"], each["code"])} for each in wanted[:SHOWN_WAITS]],
        "wait_counts": [(name, CODES.get(name, name), many) for name, many in counts.items()],
        "waits_in_all": sum(counts.values()) if not code else counts.get(code, 0),
        "code": code,
    }


def settings_from(word: Word) -> dict[str, Any]:
    """The arguments of configure_orchestrator that a form says. An empty limit is no limit, an empty cap no cap."""
    said: dict[str, Any] = {name: _whole(name, word(name)) for name in WHOLE if word(name)}
    said |= {name: _number(name, word(name)) for name in LIMITS if word(name)}
    said["unlimited"] = [name for name in LIMITS if not word(name)]
    said["role_caps"] = {
        role: _whole(f"cap of {role}", text) if (text := word(f"cap-{role}")) else None for role in ROLES
    }
    said["agents"] = {role: word(f"agent-{role}") or None for role in ROLES}
    said["models"] = {role: word(f"model-{role}") or None for role in ROLES}
    said["prompt"] = {part: _whole(part, text) if (text := word(f"prompt-{part}")) else None for part in PROMPT}
    limit = {"limit_s": _whole("hook limit", text)} if (text := word("hook-limit_s")) else {}
    said["hooks"] = {**{name: word(f"hook-{name}") for name in HOOKS}, **limit}
    said["merge"] = "ff" if word("merge") == "ff" else "merge"
    said["auto_merge"] = bool(word("auto_merge"))
    said["scan_concepts"] = _lines(word("scan_concepts"))
    said["scan_paths"] = _lines(word("scan_paths")) or ["**"]
    said["intake_folder"] = word("intake_folder")
    if "max_turns" in said:
        said["max_turns"] = int(said["max_turns"])
    return said


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValidationFailed(f"{name} is no whole number: {text[:40]}", hint="give digits only") from None


def _number(name: str, text: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise ValidationFailed(f"{name} is no number: {text[:40]}", hint="give a number such as 2.50") from None


def role_rows(settings: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """For each role what is set: its cap, its agent and its model, empty where nothing is."""
    tables = (("cap", "role_caps"), ("agent", "agents"), ("model", "models"))
    return [{"role": role, **{name: settings[table].get(role, "") for name, table in tables}} for role in ROLES]
