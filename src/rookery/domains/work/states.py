"""The life of a work task, as a table."""

from typing import Literal

from rookery.lifecycle.states import Machine, Who

Status = Literal["pending", "branching", "running", "validating", "completed", "failed"]

_RUNNER: frozenset[Who] = frozenset({"orchestrator"})
# Whoever may see a task may give it up; everything else is done by the job that works on it.
_ANYBODY: frozenset[Who] = frozenset({"orchestrator", "agent", "human"})

TASK = Machine(
    "work task",
    {
        "pending": {"branching": _RUNNER, "failed": _ANYBODY},
        "branching": {"running": _RUNNER, "failed": _ANYBODY},
        "running": {"validating": _RUNNER, "failed": _ANYBODY},
        "validating": {"running": _RUNNER, "completed": _RUNNER, "failed": _ANYBODY},
        "completed": {},
        "failed": {},
    },
)
OPEN: tuple[str, ...] = tuple(state for state in TASK.states if not TASK.terminal(state))
