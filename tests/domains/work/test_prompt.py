"""What an agent is told, and what is read from what it says."""

from hypothesis import given
from hypothesis import strategies as st

from rookery.domains.work.prompt import Briefing, pr_address, prompt_for, title


def test_the_first_prompt_has_the_task_the_place_and_the_checks() -> None:
    prompt = prompt_for(Briefing("fix it", "agent/ada/fix-it", "/srv/t", checks=("make test",), iterations=3))
    assert "fix it" in prompt.split("\n")
    assert "/srv/t, on the branch agent/ada/fix-it" in prompt
    assert "    make test" in prompt
    assert "attempt" not in prompt


def test_a_later_prompt_has_what_was_wrong() -> None:
    prompt = prompt_for(Briefing("fix it", "b", "/t", iteration=2, iterations=3, problems="line one\nline two"))
    assert "This is attempt 2 of 3." in prompt
    assert "    line one\n    line two" in prompt


@given(st.text(), st.text())
def test_nothing_but_the_description_can_give_orders_to_a_scripted_agent(problems: str, check: str) -> None:
    prompt = prompt_for(Briefing("do it", "b", "/t", checks=(check,), iteration=2, problems=problems))
    assert not any(line.startswith("!") for line in prompt.split("\n"))


def test_the_last_address_of_a_pull_request_counts() -> None:
    assert pr_address("nothing https://example.org/pulls/1") is None
    said = "see https://github.com/a/b/pull/1, then https://github.com/a/b/pull/22."
    assert pr_address(said) == "https://github.com/a/b/pull/22"


def test_a_title_is_one_short_line() -> None:
    assert title("  fix it \n and more") == "[Agent] fix it"
    assert title("x" * 100) == f"[Agent] {'x' * 59}…"
    assert title("") == "[Agent] "
