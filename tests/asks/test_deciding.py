"""What a person's words mean where a yes or no is asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.asks.answering import DECISIONS, Decision, read_decision
from rookery.core.errors import ValidationFailed


@pytest.mark.parametrize(
    "said",
    ["", "ok", "approved?", "maybe", "approve everything", "approve for ever", "approve for 0 hours", "nope",
     "approve for 99 days", "approve for 2 months", "approve for 3 dozen", "yes please", "0", "5", "-1", "1.",
     "approve\u200b", "no way", "laterr", "approve for 1 hour and delete"],
)  # fmt: skip
def test_what_is_not_clearly_a_decision_is_none(said: str) -> None:
    with pytest.raises(ValidationFailed) as error:
        read_decision(said)
    assert "approve" in (error.value.hint or "")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("approve", Decision("yes")),
        (" YES ", Decision("yes")),
        ("1", Decision("yes")),
        ("deny", Decision("no")),
        ("2", Decision("no")),
        ("No: wrong branch", Decision("no", "wrong branch")),
        ("deny, not on a Friday", Decision("no", "not on a Friday")),
        ("later", Decision("later")),
        ("3", Decision("later")),
        ("4", Decision("yes", for_s=3600)),
        ("approve for 2 hours", Decision("yes", for_s=7200)),
        ("approve for 30m", Decision("yes", for_s=1800)),
        ("Yes, for 3 days", Decision("yes", for_s=3 * 86_400)),
    ],
)
def test_words_and_numbers_are_decisions(said: str, meant: Decision) -> None:
    assert read_decision(said) == meant


def test_every_choice_that_is_offered_is_understood() -> None:
    assert [read_decision(choice) for choice in DECISIONS] == [
        read_decision(str(n)) for n in range(1, len(DECISIONS) + 1)
    ]


@given(st.text(max_size=60))
def test_no_other_words_are_ever_a_yes(said: str) -> None:
    try:
        decision = read_decision(said)
    except ValidationFailed:
        return
    word = " ".join(said.split()).casefold()
    assert decision.verdict != "yes" or word.lstrip("0") in ("1", "4") or word.startswith(("approve", "yes"))
