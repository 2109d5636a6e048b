"""The state machines of the work, as tables. Pure: who may move what from where to where, and how a refusal reads."""

from collections.abc import Mapping
from typing import Literal

from rookery.core.errors import Conflict

Who = Literal["agent", "judge", "planner", "orchestrator", "human"]
Moves = Mapping[str, Mapping[str, frozenset[Who]]]


def _by(*who: Who) -> frozenset[Who]:
    return frozenset(who)


class Machine:
    """One kind of thing and the moves it can make."""

    def __init__(self, noun: str, moves: Moves) -> None:
        self.noun = noun
        self.moves = moves

    @property
    def states(self) -> tuple[str, ...]:
        return tuple(self.moves)

    def legal(self, old: str, who: Who | None = None) -> tuple[str, ...]:
        """Where it can go from `old`: by anyone, or by `who`."""
        return tuple(new for new, movers in self.moves[old].items() if who is None or who in movers)

    def terminal(self, state: str) -> bool:
        """Whether nothing follows `state`."""
        return not self.moves[state]

    def check(self, old: str, new: str, who: Who) -> None:
        """Refuse a move that the table lacks, and name those that it has."""
        movers = self.moves[old].get(new)
        if movers is not None and who in movers:
            return
        if movers is not None:
            message = f"only {_either(sorted(movers))} may move the {self.noun} from {old} to {new}"
        elif old == new:
            message = f"the {self.noun} is {old} already"
        else:
            message = f"the {self.noun} is {old} and cannot become {new}"
        raise Conflict(message, hint=self._way_out(old, who))

    def _way_out(self, old: str, who: Who) -> str:
        mine = self.legal(old, who)
        if mine:
            return f"from {old} it can become {_either(mine)}"
        if self.terminal(old):
            return f"nothing follows {old}"
        others = (f"{new} (by {_either(sorted(movers))})" for new, movers in self.moves[old].items())
        return f"from {old} it can become {_either(tuple(others))}"


def _either(words: tuple[str, ...] | list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


# An agent that claims an issue dispatches itself, so it may do what the orchestrator does there. What judges have
# rejected too often goes from review to blocked, where a person looks at it.
ISSUE = Machine(
    "issue",
    {
        "backlog": {"todo": _by("human", "planner", "orchestrator"), "cancelled": _by("human")},
        "todo": {"in_progress": _by("orchestrator", "agent", "human"), "cancelled": _by("human")},
        "in_progress": {
            "review": _by("agent", "orchestrator", "human"),
            "todo": _by("agent", "orchestrator", "human"),
            "blocked": _by("agent", "orchestrator", "human"),
            "cancelled": _by("human"),
        },
        "review": {
            "todo": _by("judge", "orchestrator", "human"),
            "done": _by("human", "orchestrator"),
            "blocked": _by("orchestrator"),
            "cancelled": _by("human"),
        },
        "blocked": {"todo": _by("human", "orchestrator"), "cancelled": _by("human")},
        "done": {},
        "cancelled": {},
    },
)
OPEN = ("backlog", "todo", "in_progress", "review", "blocked")
FINISHED = ("done", "cancelled")

PHASES = ("research", "architecture", "grooming", "ready")
PHASE_PROFILES: Mapping[str, frozenset[str]] = {
    "research": frozenset({"researcher"}),
    "architecture": frozenset({"researcher", "architect"}),
    "grooming": frozenset({"planner"}),
    "ready": frozenset({"worker"}),
}
"""Which profiles may claim that a phase is complete."""

# A phase that a project leaves out or that a skip label names is jumped over, so every later one can follow.
PHASE = Machine(
    "phase",
    {
        phase: {
            **{later: _by("orchestrator", "human") for later in PHASES[at + 1 :]},
            **{earlier: _by("human") for earlier in PHASES[:at]},
        }
        for at, phase in enumerate(PHASES)
    },
)

RUN = Machine(
    "run",
    {
        "queued": {"running": _by("orchestrator"), "cancelled": _by("orchestrator", "human")},
        "running": {
            "succeeded": _by("orchestrator"),
            "failed": _by("orchestrator"),
            "timed_out": _by("orchestrator"),
            "stalled": _by("orchestrator"),
            "cancelled": _by("orchestrator", "human"),
        },
        "succeeded": {},
        "failed": {},
        "timed_out": {},
        "stalled": {},
        "cancelled": {},
    },
)

# A person reads what judges have approved before it is merged, and may find what they did not.
PR = Machine(
    "pull request",
    {
        "draft": {"open": _by("agent", "orchestrator", "human"), "closed": _by("orchestrator", "human")},
        "open": {
            "approved": _by("judge", "human"),
            "rejected": _by("judge", "human"),
            "closed": _by("orchestrator", "human"),
        },
        "approved": {
            "merged": _by("human", "orchestrator"),
            "rejected": _by("human"),
            "closed": _by("orchestrator", "human"),
        },
        "rejected": {"closed": _by("orchestrator", "human")},
        "merged": {},
        "closed": {},
    },
)
