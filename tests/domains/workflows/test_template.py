"""Templates: what they are filled with, and what is said of those that cannot be."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.domains.workflows.template import (
    MAX_FILLED,
    MISSING,
    MissingPath,
    TemplateError,
    TooLong,
    look_up,
    paths_of,
    render,
)

VALUES: dict[str, Any] = {
    "topic": "tea",
    "n": 3,
    "ok": True,
    "none": None,
    "deep": {"list": [{"name": "first"}, 2], "da-sh": "x"},
}


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{}}", "not a path"),
        ("{{ }}", "not a path"),
        ("{{a b}}", "not a path"),
        ("{{a..b}}", "not a path"),
        ("{{.a}}", "not a path"),
        ("{{__import__('os')}}", "__import__"),
        ("{{a|upper}}", "not a path"),
        ("{{{{a}}}}", "not a path"),
        ("text {{a", "without closing"),
        ("{{a}} and {{b", "{{b"),
        ("x" * 50_001, "longer than 50000"),
    ],
)
def test_what_is_no_template_is_named(template: str, said: str) -> None:
    with pytest.raises(TemplateError, match=said.replace("(", r"\(").replace("|", r"\|")):
        paths_of(template)


@pytest.mark.parametrize("path", ["nowhere", "topic.x", "deep.list.2", "deep.list.-1", "deep.list.x", "n.0", "deep.0"])
def test_a_path_that_leads_nowhere_is_an_error_that_names_it(path: str) -> None:
    with pytest.raises(MissingPath, match=f"asks for {path}, which") as caught:
        render(f"{{{{topic}}}} {{{{{path}}}}}", VALUES)
    assert caught.value.path == path


@pytest.mark.parametrize("path", ["topic.__class__", "deep.keys", "deep.list.append", "n.real"])
def test_attributes_are_not_followed(path: str) -> None:
    assert look_up(VALUES, path) is MISSING


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("", ""),
        ("no slots, { braces } and }} are text", "no slots, { braces } and }} are text"),
        ("about {{topic}}, {{ topic }}!", "about tea, tea!"),
        ("{{n}}/{{ok}}/{{none}}", "3/true/"),
        ("{{deep.list.0.name}} {{deep.da-sh}}", "first x"),
        ("{{deep.list}}", '[{"name":"first"},2]'),
    ],
)
def test_paths_are_filled_in(template: str, text: str) -> None:
    assert render(template, VALUES) == text


def test_what_is_filled_in_is_not_read_again() -> None:
    assert render("{{a}}", {"a": "{{b}}", "b": "secret"}) == "{{b}}"


def test_paths_are_told_in_order() -> None:
    assert paths_of("{{b.c}} {{ a }} {{b.c}}") == ["b.c", "a", "b.c"]


def test_a_number_of_ten_thousand_digits_is_no_position() -> None:
    assert look_up([1], "9" * 10_000) is MISSING


@given(st.text())
def test_any_text_is_either_named_or_filled(text: str) -> None:
    try:
        paths = paths_of(text)
    except TemplateError:
        return
    values: dict[str, Any] = {}
    for path in paths:
        # A path below another may ask for a value of two kinds, so every path has an input of its own here.
        values = {"x": 1}
        for step in reversed(path.split(".")):
            values = {step: values}
        assert render(f"{{{{{path}}}}}", values) == '{"x":1}'
    if not paths:
        assert render(text, values) == text


@given(st.booleans() | st.integers() | st.lists(st.text() | st.none()) | st.dictionaries(st.text(), st.integers()))
def test_what_is_not_text_is_json(value: Any) -> None:
    assert json.loads(render("{{v}}", {"v": value})) == value


def test_a_template_that_would_fill_the_memory_is_refused_before_it_does() -> None:
    with pytest.raises(TooLong, match=str(MAX_FILLED)):
        render("{{x}}" * 10_000, {"x": "y" * 60_000})
    assert len(render("{{x}}" * 5, {"x": "y" * (MAX_FILLED // 5)})) == MAX_FILLED
