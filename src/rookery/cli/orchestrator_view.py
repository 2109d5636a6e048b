"""What the orchestrator says of itself, on a terminal."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from rookery.cli.show import cell, fields, table

Told = Mapping[str, Any]
SHOWN_WAITS = 20
TABLES = ("role_caps", "agents", "models", "hooks", "prompt")
_ATTEMPT = ("issue", "project", "role", "agent", "attempt")


def tell_status(told: Told) -> None:
    """Print how it stands, part by part; parts that are empty are left out."""
    now = told["now_ms"]
    leader = told["leader"]
    head = {"leader": "none" if leader is None else _leader(leader, now)}
    head |= {
        "at work": f"{told['at_work']} of at most {told['max_agents']} agents",
        "spent today": _spent(told["spent_usd"], told["daily_budget_usd"]),
        "runs agents": told["runtime"],
    }
    fields(head, as_json=False)
    for failure in _failures(leader):
        click.echo(f"the last tick failed in part: {cell(failure)}")
    click.echo("")
    projects = [[each["project"], each["enabled"], *_caps(each)] for each in told["projects"]]
    headers = ["project", "enabled", "at work", "caps", "spent today"]
    table(headers, projects, empty="no project is worked on; begin with: rookery orchestrator enable --project SLUG")
    live = [[*(each[name] for name in _ATTEMPT), _ago(each["started_ms"], now)] for each in told["running"]]
    _part("running", [*_ATTEMPT, "since"], live)
    queued = [[*(each[name] for name in _ATTEMPT), _ago(each["created_ms"], now)] for each in told["queued"]]
    _part("queued", [*_ATTEMPT, "since"], queued)
    _part("next", _ATTEMPT, [[each[name] for name in _ATTEMPT] for each in told["next"]])
    again = [
        [each["issue"], each["project"], _ahead(each["until_ms"], now), each["reason"]] for each in told["retries"]
    ]
    _part("retries", ["issue", "project", "at", "reason"], again)
    stuck = [[each["issue"], _ago(each["since_ms"], now), each["reason"]] for each in told["blocked"]]
    _part("blocked, and waiting for a person", ["issue", "since", "reason"], stuck[:SHOWN_WAITS])
    if len(stuck) > SHOWN_WAITS:
        click.echo(f"  and {len(stuck) - SHOWN_WAITS} more; --json shows them")
    failed = [
        [each["project"], each["role"], each["outcome"], _ago(each["ended_ms"], now), each["error"]]
        for each in told["background"]
    ]
    _part("came to nothing", ["project", "role", "ended as", "when", "error"], failed)
    _part("waits", ["for", "how many"], list(told["waits"].items()))
    known = [each for each in told["waiting"] if each["code"] not in ("retry", "running")]
    waiting = [[each["issue"], each["code"], each["reason"]] for each in known[:SHOWN_WAITS]]
    _part("waiting", ["issue", "for", "reason"], waiting)
    if len(known) > SHOWN_WAITS:
        click.echo(f"  and {len(known) - SHOWN_WAITS} more; --json shows them")


def tell_settings(told: Told) -> None:
    """Print what is set for a project, and what keeps it from being worked on."""
    fields({"project": told["project"], "enabled": told["enabled"], **_flat(told["settings"])}, as_json=False)
    for warning in told["warnings"]:
        click.echo(f"nothing begins yet: {cell(warning)}", err=True)


def tell_why(told: Told, last: Told | None) -> None:
    """Print why an issue waits, and how the last attempt at it ended if that came to nothing."""
    click.echo(f"{told['identifier']} ({told['code']}): {cell(told['reason'])}")
    if last is not None and last["error"]:
        click.echo(f"the last attempt, by the {last['role']}, ended as {last['outcome']}: {cell(last['error'])}")


def tell_dispatches(found: Sequence[Told]) -> None:
    """Print attempts, one a line."""
    rows = [[each["id"], *(each[name] for name in _ATTEMPT), each["work"], *_end(each)] for each in found]
    headers = ["id", *_ATTEMPT, "work", "state", "begun", "error"]
    table(headers, rows, empty="nothing was dispatched yet")


def _part(title: str, headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    if rows:
        click.echo(f"\n{title}")
        table(headers, rows, empty="")


def _leader(leader: Told, now: int) -> str:
    ticked = leader["ticked_ms"]
    last = "no tick yet" if ticked is None else f"last tick {_ago(ticked, now)}"
    return f"{leader['host']}, {last}" if leader["alive"] else f"none now; {leader['host']} was the last, {last}"


def _failures(leader: Told | None) -> Sequence[str]:
    tick: Told = leader["tick"] if leader is not None and leader["tick"] is not None else {}
    return tick.get("failures", ())


def _caps(project: Told) -> list[str]:
    caps = ", ".join(f"{role} {most}" for role, most in sorted(project["role_caps"].items())) or "-"
    spent = _spent(project["spent_usd"], project["daily_budget_usd"])
    return [f"{project['at_work']} of {project['max_agents']}", caps, spent]


def _spent(spent: float, budget: float | None) -> str:
    return f"{spent:.2f} dollars" if budget is None else f"{spent:.2f} of {budget:.2f} dollars"


def _end(each: Told) -> list[Any]:
    begun = datetime.fromtimestamp(each["created_ms"] // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [each["outcome"] or each["state"], begun, each["error"] or each["stop"]]


def _flat(settings: Told) -> dict[str, Any]:
    """Tables of settings as one line each."""
    return {name: _line(settings[name]) if name in TABLES else settings[name] for name in settings}


def _line(value: Told) -> str:
    return ", ".join(f"{name}={cell(each)}" for name, each in value.items() if each not in ("", None)) or "-"


def _ago(ms: int | None, now: int) -> str:
    return "-" if ms is None else f"{_span(now - ms)} ago"


def _ahead(ms: int | None, now: int) -> str:
    return "-" if ms is None else f"in {_span(ms - now)}"


def _span(ms: int) -> str:
    seconds = max(ms, 0) // 1000
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7_200 else f"{seconds // 3_600} h"
