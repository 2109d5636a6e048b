"""The steps that events make up."""

from rookery.domains.runs.trace import first_words, steps_of, tools_used
from tests.domains.runs.told import START_MS, called, happened, told
from tests.lifecycle.run_rows import said, used


def test_pieces_of_one_text_are_one_step() -> None:
    events = happened(told("text_delta", 0, text="I look "), told("text_delta", 40, text="at it."))
    (step,) = steps_of(events)
    assert (step.kind, step.title, step.number, step.last) == ("text", "I look at it.", 1, 2)
    assert (step.at_ms, step.end_ms) == (START_MS, START_MS + 40)


def test_a_tool_goes_from_its_call_to_its_result() -> None:
    (step,) = steps_of(happened(*called("c1", "mcp__rookery__get_issue", 100, 900)))
    assert (step.kind, step.tool, step.outcome, step.result) == ("tool", "get_issue", "ok", 3)
    assert (step.at_ms, step.end_ms) == (START_MS + 100, START_MS + 900)


def test_a_tool_without_a_result_goes_on_until_the_run_has_ended() -> None:
    events = happened(told("tool_call_start", 0, call_id="c1", tool="Bash"))
    assert steps_of(events)[0].end_ms is None
    assert steps_of(events, ended_ms=START_MS + 5000)[0].end_ms == START_MS + 5000


def test_the_end_of_a_turn_ends_everything_in_it() -> None:
    events = happened(told("tool_call_start", 0, call_id="c1", tool="Bash"), told("done", 70, reason="interrupted"))
    tool, end = steps_of(events)
    assert tool.end_ms == START_MS + 70
    assert (end.kind, end.outcome) == ("result", "failed")


def test_what_a_tool_says_of_itself_stands_with_the_tool() -> None:
    start, end, result = called("c1", "Bash", 0, 900)
    said = [told("tool_status", at, call_id="c1", tool="Bash", text=f"{at} of 300") for at in (100, 200)]
    (step,) = steps_of(happened(start, end, *said, result))
    assert (step.status, step.statuses) == ("200 of 300", 2)


def test_a_line_that_names_no_call_is_of_the_one_of_that_tool_under_way() -> None:
    start, end, _ = called("c1", "mcp__rookery__find_definition", 0, 900)
    line = told("tool_status", 10, tool="mcp__rookery__find_definition", text="reading the code")
    assert steps_of(happened(start, end, line))[0].status == "reading the code"


def test_a_line_of_no_tool_is_a_step_of_its_own() -> None:
    (step,) = steps_of(happened(told("tool_status", 0, tool="Bash", text="late")))
    assert (step.kind, step.title) == ("status", "late")


def test_calls_of_an_agent_below_and_asks_stand_below_their_call() -> None:
    outer = called("c1", "Task", 0, 9000)
    inner = called("c2", "Grep", 100, 200, parent_call_id="c1")
    asked = [
        told("approval_required", 300, ask_id="a1", call_id="c2", tool="Grep", title="May it?"),
        told("interaction_resolved", 4000, ask_id="a1", call_id="c2", how="approved"),
    ]
    steps = steps_of(happened(*outer[:2], *inner, *asked, outer[2]))
    assert [(step.title, step.depth) for step in steps] == [("Task", 0), ("Grep", 1), ("May it?", 2)]
    assert (steps[2].kind, steps[2].outcome, steps[2].end_ms) == ("ask", "approved", START_MS + 4000)


def test_a_question_is_called_by_its_words() -> None:
    asked = told("question_prompt", 0, ask_id="a1", questions=[{"question": "Which one?"}])
    (step,) = steps_of(happened(asked))
    assert (step.title, step.end_ms) == ("Which one?", None)


def test_events_that_others_wrote_are_steps_too() -> None:
    steps = steps_of(happened(said("hello"), used("grep"), used("grep")))
    assert [(step.kind, step.title) for step in steps] == [("text", "hello"), ("tool", "grep"), ("tool", "grep")]


def test_tasks_and_the_state_of_a_session_are_told_in_words() -> None:
    tasks = [{"text": "read", "status": "completed"}, {"text": "write", "status": "in_progress"}, "odd"]
    events = happened(
        told("task_update", 0, tasks=tasks), told("session_status", 1, model="sonnet", mode="act", cost_usd=0.5)
    )
    assert [step.title for step in steps_of(events)] == ["1 of 2 tasks done: write", "sonnet, mode act, $0.5"]


def test_tools_are_counted_with_their_failures_and_their_time() -> None:
    events = [*called("1", "Bash", 0, 100), *called("2", "Bash", 200, 500, failed=True), *called("3", "Read", 600, 601)]
    bash, read = tools_used(steps_of(happened(*events)))
    assert (bash.tool, bash.calls, bash.failed, bash.took_ms) == ("Bash", 2, 1, 400)
    assert (read.tool, read.calls, read.failed, read.took_ms) == ("Read", 1, 0, 1)


def test_the_beginning_of_a_long_text_is_one_line() -> None:
    assert first_words("a\n b\t c") == "a b c"
    assert len(first_words("word " * 100_000)) == 201
