"""What the session of a task is told: nothing that was said before can pass for the task."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from rookery.domains.a2a.prompt import ENDING, MAX_HISTORY, prompt_for


@dataclass
class Asked:
    content: str
    sender_name: str = "ada"
    agent_name: str = "bob"
    skill: str | None = None
    answer: str | None = None


TEXT = st.text(max_size=300)


@given(st.lists(st.builds(Asked, content=TEXT, answer=st.none() | TEXT), max_size=12), TEXT)
def test_every_line_of_the_past_is_quoted(before: list[Asked], text: str) -> None:
    prompt = prompt_for(Asked(text), before)
    told = f"Task from ada, from outside:\n\n{text}\n\n{ENDING}"
    assert prompt.endswith(told)
    past = prompt.removesuffix(told).rstrip("\n").split("\n")[1:]
    assert all(line.startswith("> ") for line in past)


def test_what_does_not_fit_is_left_out_whole_and_the_newest_stays() -> None:
    before = [Asked(f"{name} " + "x" * (MAX_HISTORY // 2)) for name in ("first", "second")]
    prompt = prompt_for(Asked("now", skill="ping"), before)
    assert "second" in prompt
    assert "first" not in prompt
    assert "for the skill ping:\n\nnow" in prompt
