"""What a history begins with: processes, a project, its issues, and how everything is set."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PIPELINES: Mapping[Sequence[str], int] = {
    ("ready",): 13,
    ("grooming", "ready"): 4,
    ("research", "ready"): 2,
    ("research", "architecture", "grooming", "ready"): 1,
}
"""The phases of a project, and how often it has them: each of them costs time."""
FLEETS: Mapping[Sequence[bool], int] = {(True,): 9, (True, True): 7, (True, False): 3, (True, True, False): 1}
GATE = "make test"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Drawn from a seed."""

    processes: Sequence[bool]
    """For each of them whether it is a server; the others are workers."""
    slugs: Sequence[str]
    settings: Mapping[str, Any]
    orchestration: Mapping[str, Any]
    installed: Mapping[str, Any]
    issues: Sequence[Mapping[str, Any]]
    troubled_s: float

    @classmethod
    def drawn(cls, rng: random.Random, *, large: bool) -> "Scenario":
        """A large one has several issues, that take longer; of the others there can be many more."""
        pipeline = rng.choices(list(PIPELINES), [1] * 4 if large else list(PIPELINES.values()))[0]
        unjudged = [phase for phase in pipeline if phase != "ready" and rng.random() < 0.3]
        gates = [{"command": GATE, "label": "tests", "required": rng.random() < 0.7}] if rng.random() < 0.4 else []
        count = rng.choice((2, 3, 4) if large else (*[1] * 9, 2))
        return cls(
            processes=rng.choices(list(FLEETS), list(FLEETS.values()))[0],
            slugs=("alpha", "beta") if large and rng.random() < 0.5 else ("alpha",),
            settings={"pipeline": list(pipeline), "unjudged": unjudged, "gates": gates},
            orchestration={
                "max_agents": rng.choice((1, 2, 4)),
                "max_retries": rng.choice((0, 1, 3)),
                "run_limit_s": rng.choice((100, 300)),
                "auto_merge": rng.random() < 0.3,
                "gate_limit_s": 60,
            },
            installed={
                "runtime": "scripted",
                "tick_s": rng.choice((5.0, 15.0, 30.0)),
                "session_stall_s": rng.choice((30.0, 90.0)),
                "session_first_event_s": 30.0,
                "worker_concurrency": rng.choice((2, 16)),
                "approval_hold_s": 0.0,
            },
            issues=[_issue(rng, pipeline, number) for number in range(count)],
            troubled_s=rng.choice((60.0, 120.0, 240.0) if large else (10.0, 20.0, 40.0)),
        )


def _issue(rng: random.Random, pipeline: Sequence[str], number: int) -> dict[str, Any]:
    labels = [f"phase:{rng.choice((pipeline[0], pipeline[0], *pipeline))}"]
    labels += [f"skip:{phase}" for phase in pipeline if phase != "ready" and rng.random() < 0.15]
    labels += ["needs-planning"] if rng.random() < 0.05 else []
    return {"title": f"Issue {number}", "labels": labels, "priority": rng.randrange(1, 5)}
