"""The life of a work task, as a table."""

import pytest

from rookery.core.errors import Conflict
from rookery.domains.work.states import OPEN, TASK


@pytest.mark.parametrize("state", ["completed", "failed"])
def test_nothing_follows_an_end(state: str) -> None:
    assert TASK.terminal(state)
    with pytest.raises(Conflict, match="cannot become running"):
        TASK.check(state, "running", "orchestrator")


def test_only_the_worker_completes_a_task_and_only_after_checking_it() -> None:
    with pytest.raises(Conflict, match="only orchestrator"):
        TASK.check("validating", "completed", "agent")
    for state in ("pending", "branching", "running"):
        assert "completed" not in TASK.legal(state)


def test_the_moves_are_those_of_the_life_cycle() -> None:
    assert {state: set(TASK.legal(state)) for state in TASK.states} == {
        "pending": {"branching", "failed"},
        "branching": {"running", "failed"},
        "running": {"validating", "failed"},
        "validating": {"running", "completed", "failed"},
        "completed": set(),
        "failed": set(),
    }


def test_whoever_sees_a_task_may_give_it_up_while_it_is_open() -> None:
    assert OPEN == ("pending", "branching", "running", "validating")
    assert all("failed" in TASK.legal(state, "agent") and "failed" in TASK.legal(state, "human") for state in OPEN)
