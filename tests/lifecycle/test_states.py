"""The state machines, compared with the table that they were made from."""

import itertools
from typing import get_args

import pytest

from rookery.core.errors import Conflict
from rookery.lifecycle.states import FINISHED, ISSUE, OPEN, PHASE, PHASE_PROFILES, PHASES, PR, RUN, Machine, Who

EVERYONE: tuple[Who, ...] = get_args(Who)
ISSUE_MOVES = {
    ("backlog", "todo"): {"human", "planner", "orchestrator"},
    ("todo", "in_progress"): {"orchestrator", "agent", "human"},
    ("in_progress", "review"): {"agent", "orchestrator", "human"},
    ("in_progress", "todo"): {"agent", "orchestrator", "human"},
    ("in_progress", "blocked"): {"agent", "orchestrator", "human"},
    ("review", "todo"): {"judge", "orchestrator", "human"},
    ("review", "done"): {"human", "orchestrator"},
    ("review", "blocked"): {"orchestrator"},
    ("blocked", "todo"): {"human", "orchestrator"},
    **{(old, "cancelled"): {"human"} for old in ("backlog", "todo", "in_progress", "review", "blocked")},
}


MOVES = list(itertools.product(ISSUE.states, ISSUE.states, EVERYONE))


@pytest.mark.parametrize(("old", "new", "who"), MOVES)
def test_an_issue_moves_as_the_table_says_and_not_otherwise(old: str, new: str, who: Who) -> None:
    if who in ISSUE_MOVES.get((old, new), set()):
        ISSUE.check(old, new, who)
    else:
        with pytest.raises(Conflict) as caught:
            ISSUE.check(old, new, who)
        assert caught.value.hint


def test_a_refusal_names_the_legal_moves() -> None:
    with pytest.raises(Conflict, match="is todo and cannot become done") as caught:
        ISSUE.check("todo", "done", "human")
    assert caught.value.hint == "from todo it can become in_progress or cancelled"
    with pytest.raises(Conflict, match="only human or orchestrator may move the issue from review to done") as caught:
        ISSUE.check("review", "done", "judge")
    assert caught.value.hint == "from review it can become todo"
    with pytest.raises(Conflict) as caught:
        ISSUE.check("done", "todo", "human")
    assert caught.value.hint == "nothing follows done"
    with pytest.raises(Conflict, match="is review already") as caught:
        ISSUE.check("review", "review", "agent")
    assert caught.value.hint is not None
    assert "done (by human or orchestrator)" in caught.value.hint


def test_open_and_finished_are_all_there_is() -> None:
    assert set(OPEN) | set(FINISHED) == set(ISSUE.states)
    assert [state for state in ISSUE.states if ISSUE.terminal(state)] == list(FINISHED)


def test_the_orchestrator_moves_phases_forward_only() -> None:
    for old, new in itertools.product(PHASES, PHASES):
        forward = PHASES.index(new) > PHASES.index(old)
        assert (new in PHASE.legal(old, "orchestrator")) == forward
        assert PHASE.legal(old, "agent") == ()


def test_every_phase_has_profiles_that_may_complete_it() -> None:
    assert set(PHASE_PROFILES) == set(PHASES)


def test_a_run_ends_once() -> None:
    ended = {"succeeded", "failed", "timed_out", "stalled", "cancelled"}
    assert {state for state in RUN.states if RUN.terminal(state)} == ended
    assert set(RUN.legal("running", "orchestrator")) == ended
    assert set(RUN.legal("queued")) == {"running", "cancelled"}


def test_a_pull_request_is_judged_before_it_is_merged() -> None:
    assert set(PR.legal("draft")) == {"open", "closed"}
    assert set(PR.legal("open", "judge")) == {"approved", "rejected"}
    assert "merged" not in PR.legal("open")
    assert set(PR.legal("approved", "judge")) == set()
    assert set(PR.legal("approved", "human")) == {"merged", "rejected", "closed"}
    assert set(PR.legal("rejected")) == {"closed"}


@pytest.mark.parametrize("machine", [ISSUE, PHASE, RUN, PR])
def test_every_move_leads_to_a_state_of_the_machine(machine: Machine) -> None:
    for old in machine.states:
        assert set(machine.legal(old)) <= set(machine.states)
