"""The commands with which the owner sees what agents ask, and answers."""

from typing import Any

from rookery.app import make_platform
from rookery.asks.store import Asks, NewAsk
from rookery.settings import Settings
from tests.cli.terminal import Terminal


def ask(terminal: Terminal, question: str, **more: Any) -> str:
    """The id of a question that an agent has asked."""
    platform = make_platform(Settings(home=str(terminal.home), plugins=False))
    new = NewAsk(**{"kind": "question", "agent_id": "agt-1", "question": question, **more})
    try:
        return platform.database.direct(lambda tx: Asks(tx, "default").open(new), write=True)[0].id
    finally:
        platform.close()


def test_without_asks_the_list_says_so(terminal: Terminal) -> None:
    assert "no agent asks anything" in terminal.ok("asks")
    assert terminal.json("asks", "--json") == []
    assert terminal.ok("asks", "--status", "answered") == "none\n"


def test_what_is_wrong_ends_in_one_sentence(terminal: Terminal) -> None:
    made = ask(terminal, "Which colour?")
    assert "there is no ask nothing" in terminal.fails("answer", "nothing", "yes")
    assert "there is no ask 00000000" in terminal.fails("asks", "00000000")
    assert "answer: Value error, must have 1 to" in terminal.fails("answer", made, " ")
    for words in ((made,), (made, "yes", "--dismiss")):
        assert "give an answer, or --dismiss" in terminal.fails("answer", *words, code=2)
    assert "limit" in terminal.fails("asks", "--limit", "0")
    terminal.ok("answer", made, "green")
    assert "was already answered by" in terminal.fails("answer", made, "blue")


def test_an_ask_is_listed_with_its_options_and_answered_by_number(terminal: Terminal) -> None:
    made = ask(terminal, "Which colour?", options=["red", "green"], context="for the door")
    listed = terminal.ok("asks")
    for shown in (made[:8], "Which colour?", "1. red, 2. green", "rookery answer"):
        assert shown in listed
    whole = terminal.ok("asks", made[:8])
    assert "for the door" in whole
    (answered,) = terminal.json("answer", made[:8], "2", "--json")
    assert (answered["answer"], answered["option"], answered["via"]) == ("green", 2, "cli")
    assert "no agent asks anything" in terminal.ok("asks")
    assert "green" in terminal.ok("asks", "--status", "all")


def test_what_is_asked_alike_is_answered_with_one_command(terminal: Terminal) -> None:
    ids = [ask(terminal, "Go on?", session=f"ses-{number}") for number in range(3)]
    other = ask(terminal, "Stop?")
    answered = terminal.json("answer", ids[1], "yes", "--similar", "--json")
    assert {each["id"] for each in answered} == set(ids)
    assert [each["id"] for each in terminal.json("asks", "--json")] == [other]


def test_what_needs_no_answer_is_dismissed(terminal: Terminal) -> None:
    made = ask(terminal, "Which colour?")
    assert "withdrawn" in terminal.ok("answer", made[:8], "--dismiss")
    assert "no agent asks anything" in terminal.ok("asks")
    (gone,) = terminal.json("asks", "--status", "withdrawn", "--json")
    assert (gone["id"], gone["answered_by"]) == (made, "owner")


def test_a_decision_is_asked_for_with_what_it_is_about(terminal: Terminal) -> None:
    card = "Delete issue: deletes it.\nproject: garden\n" + "\n".join(f"line {number}" for number in range(20))
    made = ask(terminal, "May ada run delete_issue (destructive)?", kind="approval", context=card)
    listed = terminal.ok("asks")
    for shown in ("approval", "1. Approve, 2. Deny, 3. Later", "  project: garden", f"rookery asks {made[:8]}"):
        assert shown in listed
    assert "line 19" not in listed
    assert "  line 19" in terminal.ok("asks", made[:8])


def test_a_decision_can_wait_and_comes_with_its_reason(terminal: Terminal) -> None:
    made = ask(terminal, "May ada run delete_issue?", kind="approval")
    assert "is no decision" in terminal.fails("answer", made, "perhaps")
    assert "it stays open" in terminal.ok("answer", made[:8], "later")
    assert [each["id"] for each in terminal.json("asks", "--json")] == [made]
    (done,) = terminal.json("answer", made[:8], "deny:", "too", "early", "--json")
    assert (done["status"], done["answer"]) == ("answered", "deny: too early")


def test_decisions_that_are_alike_are_made_with_one_command(terminal: Terminal) -> None:
    ids = [ask(terminal, f"May ada delete {n}?", kind="approval", batch_key="delete") for n in range(3)]
    answered = terminal.json("answer", ids[0], "approve", "--similar", "--json")
    assert {each["id"] for each in answered} == set(ids)
