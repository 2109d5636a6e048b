"""The improvement loop: look at the health of a codebase, and give out work on what is worst."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from rookery.core.actor import Actor
from rookery.core.errors import NotFound, PermissionDenied
from rookery.domains.schedules.action import Action

Call = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
HEALTH = "collect_health"
TASKS_BY_TRUST = {0: 0, 1: 1, 2: 2, 3: 5, 4: 5}
"""How many tasks at once an agent is trusted with."""
LEVELS = ("untrusted", "low", "medium", "high", "verified")
UNKNOWN_TRUST = 2
"""Whoever cannot be scored is as trusted as a new agent is: medium."""
REPUTATION = "check_reputation"
SOURCE = "improvement:"
"""How the keys of such tasks begin, by which their end is known as that of an improvement."""
WEAKNESSES = {
    "test_failure_count": "Make the {count} failing tests pass",
    "tsc_error_count": "Mend the {count} errors of the type checker",
    "outdated_dep_count": "Bring the {count} outdated dependencies up to date",
    "large_file_count": "Split the {count} files that have grown too large",
    "fixme_count": "Resolve the {count} FIXME notes",
    "hack_count": "Replace the {count} HACK notes by something lasting",
    "todo_count": "Settle the {count} TODO notes",
}
"""By the field of a health snapshot, the most urgent first."""
GENERAL = "Find the weakest spot of the codebase and improve it"


async def improve(call: Call, actor: Actor, action: Action, key: str, *, health: bool) -> dict[str, Any]:
    """Create as many work tasks as the agent is trusted with and the codebase gives reason for.

    `health` says whether the codebase can be looked at; without a look there is one task, in general terms.
    """
    most = min(action.max_improvement_tasks, TASKS_BY_TRUST[await _trust(call, actor)])
    if most == 0:
        raise PermissionDenied("an untrusted agent gets no improvement tasks", hint="raise its trust", layer="trust")
    place: dict[str, Any] = {} if action.project_id is None else {"project_id": action.project_id}
    found = (weaknesses(await call(HEALTH, place)) if health else []) or [GENERAL]
    created: list[str] = []
    for number, weakness in enumerate(found[:most]):
        arguments = {"description": described(weakness, action), "source_id": f"{SOURCE}{key}:{number}", **place}
        answer = await call("create_work_task", arguments)
        created.append(str(answer.get("id")))
    return {"result": f"{len(created)} work tasks: {', '.join(created)}", "work_task_id": created[0]}


async def _trust(call: Call, actor: Actor) -> int:
    """What the owner has set, or else what the agent's reputation says now."""
    if actor.trust is not None:
        return actor.trust
    try:
        level = (await call(REPUTATION, {})).get("trust_level")
    except (NotFound, PermissionDenied):
        # It may not look, or nobody can. Whatever else fails says nothing of its trust: with its rate used up, an
        # untrusted agent would be a new one.
        return UNKNOWN_TRUST
    return LEVELS.index(level) if level in LEVELS else UNKNOWN_TRUST


def weaknesses(health: dict[str, Any]) -> list[str]:
    """What a snapshot gives reason to do, the most urgent first."""
    counts = dict(health)
    for inner in health.values():
        if isinstance(inner, dict):
            counts |= cast("dict[str, Any]", inner)
    sizes = {name: counts[name] for name in WEAKNESSES if isinstance(counts.get(name), int) and counts[name] > 0}
    return [WEAKNESSES[name].format(count=count) for name, count in sizes.items()]


def described(weakness: str, action: Action) -> str:
    """A task that says where to look, if that was said."""
    parts = [weakness]
    if action.focus_area:
        parts.append(f"Focus on {action.focus_area}")
    if action.description:
        parts.append(action.description.rstrip("."))
    return ". ".join(parts) + "."
