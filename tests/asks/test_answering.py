"""What a person's words mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.asks.answering import Answer, misleading, numbered, put_to_person, read_answer

OPTIONS = ["red", "Green", "deep blue"]
texts = st.text(min_size=1, max_size=20).map(str.strip).filter(bool)
choices = st.lists(texts, max_size=20, unique_by=str.casefold)


@pytest.mark.parametrize(
    ("said", "option"),
    [("1", 1), (" 3 ", 3), ("RED", 1), ("green ", 2), ("Deep Blue", 3), ("01", 1)],
)
def test_a_number_or_its_text_is_an_option(said: str, option: int) -> None:
    assert read_answer(said, OPTIONS) == Answer(OPTIONS[option - 1], option)


@pytest.mark.parametrize("said", ["0", "4", "-1", "1.5", "²", "१", "1 and 2", "blue", "deep  blue", "9" * 5000])
def test_everything_else_stands_for_itself(said: str) -> None:
    assert read_answer(f" {said}\n", OPTIONS) == Answer(said)


def test_without_options_a_number_is_just_a_number() -> None:
    assert read_answer("1", []) == Answer("1")


def test_an_option_that_is_a_number_is_meant_where_no_option_has_that_number() -> None:
    assert read_answer("20", ["10", "20"]) == Answer("20", 2)


@pytest.mark.parametrize(
    ("options", "number"),
    [(["10", "5", "2"], "2"), (["2", "1"], "2"), (["a", "01"], "01"), (["1", "2"], None), (["10", "20"], None)],
)
def test_an_option_that_is_the_number_of_another_is_misleading(options: list[str], number: str | None) -> None:
    assert misleading(options) == number


@given(choices)
def test_where_nothing_is_misleading_each_option_is_chosen_by_its_own_text(options: list[str]) -> None:
    if misleading(options) is None:
        assert [read_answer(option, options).text for option in options] == options


@given(st.text(max_size=40), choices)
def test_an_option_is_always_one_that_there_is(said: str, options: list[str]) -> None:
    answer = read_answer(said, options)
    if answer.option is None:
        assert answer.text == said.strip()
        assert said.strip().casefold() not in [option.casefold() for option in options]
    else:
        assert answer.text == options[answer.option - 1]


@given(choices)
def test_every_option_is_chosen_by_the_number_that_is_shown(options: list[str]) -> None:
    for shown, option in zip(numbered(options), options, strict=True):
        number = shown.partition(".")[0]
        assert read_answer(number, options) == Answer(option, int(number))
        assert shown in put_to_person("Which?", options, "")


def test_a_question_is_put_with_its_reason_and_numbered_options() -> None:
    assert put_to_person("Which?", ["a", "b"], "It matters.") == "Which?\n\nIt matters.\n\n1. a\n2. b"
    assert put_to_person("Which?", [], "") == "Which?"
