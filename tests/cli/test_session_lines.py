"""Events of a session as a terminal shows them."""

from typing import Any

import pytest

from rookery.cli.session_lines import Lines, decision
from rookery.sessions.events import EventName
from rookery.sessions.writing import Kept


def shown(*events: tuple[EventName, dict[str, Any]], styled: bool = False) -> str:
    written: list[str] = []
    lines = Lines(written.append, styled=styled)
    for number, (name, data) in enumerate(events, 1):
        lines.tell(Kept(number, name, data, 0, "run-1"))
    lines.end_text()
    return "".join(written)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("y", "approve"),
        ("A", "approve for 30 days"),
        ("always", "approve for 30 days"),
        ("n", "deny"),
        ("n: too dear", "deny: too dear"),
        ("l", "later"),
        ("approve for 2 hours", "approve for 2 hours"),
        ("deny: why", "deny: why"),
        ("now: then", "now: then"),
    ],
)
def test_short_words_stand_for_decisions_and_others_for_themselves(typed: str, meant: str) -> None:
    assert decision(typed) == meant


def test_nothing_that_comes_from_an_agent_steers_the_terminal() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\r"
    told = shown(
        ("turn_input", {"text": evil}),
        ("text_delta", {"text": evil}),
        ("tool_call_end", {"tool": evil, "input": {evil: evil}}),
        ("tool_result", {"text": evil}),
        ("tool_status", {"text": evil}),
        ("approval_required", {"ask_id": evil, "tool": evil, "title": evil, "reason": evil, "input": {"a": evil}}),
        ("question_prompt", {"questions": [{"question": evil, "header": evil, "options": [{"label": evil}]}]}),
        ("interaction_resolved", {"how": evil, "reason": evil}),
        ("session_status", {"model": evil, "servers": [{"name": evil, "status": "failed", "error": evil}]}),
        ("task_update", {"tasks": [{"text": evil, "status": evil}]}),
        ("system", {"line": evil}),
        ("error", {"message": evil}),
        ("done", {"reason": evil, "error": evil}),
    )
    assert not {"\x1b", "\x07", "\r"} & set(told)


def test_text_flows_and_everything_else_has_a_line_of_its_own() -> None:
    told = shown(
        ("thinking_delta", {"text": "hm "}),
        ("thinking_delta", {"text": "hm"}),
        ("text_delta", {"text": "I lo"}),
        ("text_delta", {"text": "ok\ntwice"}),
        ("tool_call_start", {"call_id": "c1", "tool": "Read"}),
        ("tool_call_end", {"call_id": "c1", "tool": "Read", "input": {"file_path": "a"}}),
        ("tool_status", {"tool": "Read", "text": "reading"}),
        ("tool_result", {"call_id": "c1", "text": "\n".join(str(number) for number in range(9))}),
        ("done", {"reason": "completed", "cost_usd": 0.5, "input_tokens": 90, "output_tokens": 10}),
    )
    assert told == (
        'hm hm\nI look\ntwice\n* Read {"file_path": "a"}\n  … reading\n  0\n  1\n  2\n  3\n  4\n  5\n  … 3 more lines\n'
        "(completed, $0.5000, 100 tokens)\n"
    )


def test_an_approval_shows_its_whole_input_and_a_question_its_options() -> None:
    told = shown(
        (
            "approval_required",
            {"ask_id": "1a2b3c4d5e", "tool": "Bash", "title": "Run it", "input": {"command": "x" * 999}},
        ),
        (
            "question_prompt",
            {
                "ask_id": "2b3c4d5e6f",
                "questions": [
                    {
                        "question": "Which?",
                        "header": "Colour",
                        "options": [{"label": "red", "description": "warm"}, {"label": "blue"}],
                        "multi_select": True,
                    }
                ],
            },
        ),
    )
    assert f'"command": "{"x" * 999}"' in told
    for part in (
        "? Run it",
        "ask 1a2b3c4d:",
        "? Colour: Which?",
        "1. red - warm",
        "2. blue\n",
        "ask 2b3c4d5e:",
        "several",
    ):
        assert part in told


def test_a_status_is_told_when_it_is_new_and_a_server_when_it_failed() -> None:
    servers = [
        {"name": "rookery", "status": "connected"},
        {"name": "other", "status": "failed", "error": "no such file"},
    ]
    told = shown(
        ("session_status", {"model": "opus", "mode": "ask", "servers": servers}),
        ("session_status", {"model": "opus", "mode": "ask", "cost_usd": 0.1}),
        ("session_status", {"mode": "act"}),
    )
    assert told == "  [model opus, mode ask, server other: no such file]\n  [mode act]\n"


def test_colours_are_for_terminals_only() -> None:
    assert "\x1b[31m" in shown(("error", {"message": "no"}), styled=True)
    assert shown(("error", {"message": "no"})) == "! no\n"
