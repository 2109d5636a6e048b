"""Runs for pages to show, written as whoever runs agents writes them."""

from typing import Any

from rookery.lifecycle.run_events import RunEvent
from rookery.lifecycle.run_store import NewRun, Runs, RunStatus, Usage
from tests.domains.runs.told import called, told
from tests.platform_fixtures import Fleet

SAID = told("text_delta", 1000, text="I will look at the login first.")


class Runners:
    """Puts runs of the default agent into a fleet's database."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def start(self, *events: RunEvent, **known: Any) -> str:
        """The id of a run that goes on, with these events."""
        actor = self._fleet.actor(agent="default")
        assert actor.project is not None
        new = NewRun(**{"project_id": actor.project, "agent": actor.agent, "kind": "work", **known})
        run = self._change(lambda runs: runs.start(new)).id
        self.add(run, *events)
        return run

    def add(self, run: str, *events: RunEvent) -> None:
        self._change(lambda runs: runs.append(run, events))

    def end(self, run: str, status: RunStatus = "succeeded", error: str | None = None, **used: int) -> None:
        self._change(lambda runs: runs.spend(run, Usage(**used)))
        self._change(lambda runs: runs.move(run, status, error=error))

    def done(self, *events: RunEvent, status: RunStatus = "succeeded", error: str | None = None, **known: Any) -> str:
        """The id of a run that has ended."""
        run = self.start(*events, **known)
        self.end(run, status, error, cost_micros=420_000, input_tokens=12_000, output_tokens=900, turns=4)
        return run

    def _change(self, work: Any) -> Any:
        return self._fleet.platform.database.direct(lambda tx: work(Runs(tx, "default")), write=True)


def usual_events() -> list[RunEvent]:
    """A short run: something is asked for, thought, said and done."""
    return [
        told("turn_input", 0, message_id="m1", text="Mend the login"),
        SAID,
        *called("c1", "mcp__rookery__get_issue", 2000, 2500),
        told("approval_required", 2600, ask_id="a1", call_id="c9", tool="Bash", title="Run the tests"),
        told("interaction_resolved", 3_602_600, ask_id="a1", call_id="c9", how="approved"),
        *called("c2", "Bash", 3_603_000, 3_609_000, failed=True),
        told("done", 3_610_000, reason="completed", output="It works", error="", cost_usd=0.42),
    ]
