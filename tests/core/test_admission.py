"""Text that a database could not keep is refused before any model or handler sees it."""

from typing import Any

import pytest
from pydantic import Field

from rookery.core.admission import storable, validate
from rookery.core.context import Context
from rookery.core.errors import InvalidParams
from rookery.core.tool import Tool, ToolInput, ToolOutput, tool
from tests.platform_fixtures import Fleet

UNSTORABLE = ["\0", "a\0b", "\ud800", "ok \udfff", "ü\ud83d!", "\ude00\ud83d"]
STORABLE = [
    "",
    "plain",
    "ü",
    "\U0001f600",
    "\ud7ff\ue000",
    "\x01\x1f\x7f",
    "\u2028\ufeff\uffff",
    "\\u0000",
    "a" * 50_000,
]


class TakeAnything(ToolInput):
    title: str = ""
    labels: list[str] = Field(default=[])
    extra: dict[str, Any] = Field(default={})


class Taken(ToolOutput):
    title: str


@tool(title="Take", effect="read", action="x:y", tier="observe", group="Read", profiles="", default=True, inline=True)
def take_anything(ctx: Context, args: TakeAnything) -> Taken:
    """Take whatever comes."""
    return Taken(title=args.title)


def fault(declared: Tool, arguments: dict[str, Any]) -> str:
    with pytest.raises(InvalidParams) as caught:
        validate(declared, arguments)
    assert caught.value.hint
    caught.value.message.encode()  # whoever reads the error must be able to
    return caught.value.message


@pytest.mark.parametrize("text", UNSTORABLE)
def test_text_that_postgres_cannot_store_is_refused_by_the_name_of_its_field(text: str) -> None:
    said = "contains a NUL character or half of a surrogate pair"
    assert fault(take_anything, {"title": text}) == f"take_anything: title: {said}"
    assert fault(take_anything, {"title": "ok", "labels": ["a", text]}) == f"take_anything: labels.1: {said}"
    assert fault(take_anything, {"extra": {"a": [{"b": (1, text)}]}}) == f"take_anything: extra.a.0.b.1: {said}"


@pytest.mark.parametrize("text", UNSTORABLE)
def test_a_key_that_cannot_be_stored_is_refused_by_the_name_of_what_has_it(text: str) -> None:
    assert ": extra.a: contains" in fault(take_anything, {"extra": {"a": {text: 1}}})
    assert ": arguments: contains" in fault(take_anything, {text: 1})


@pytest.mark.parametrize("text", STORABLE)
def test_all_other_text_passes_unchanged(text: str) -> None:
    args = validate(take_anything, {"title": text, "labels": [text], "extra": {text: {"deep": [text]}}})
    assert args == TakeAnything(title=text, labels=[text], extra={text: {"deep": [text]}})


def test_what_is_no_text_passes_whatever_it_is() -> None:
    extra = {"a": None, "b": 1.5, "c": True, "d": b"\0", "e": [], "f": {}, "g": 2**100}
    assert validate(take_anything, {"extra": extra}) == TakeAnything(extra=extra)


def test_the_deepest_nesting_costs_no_recursion() -> None:
    deep: Any = "\0"
    for _ in range(5000):
        deep = [deep]
    assert fault(take_anything, {"extra": {"a": deep}}).startswith("take_anything: extra.a.0.0.0")


def test_storable_means_that_both_databases_keep_it() -> None:
    assert [text for text in UNSTORABLE if storable(text)] == []
    assert [text for text in STORABLE if not storable(text)] == []


async def test_a_call_with_such_text_writes_nothing_on_either_database(fleet: Fleet) -> None:
    for text in UNSTORABLE:
        with pytest.raises(InvalidParams, match="reason: contains"):
            await fleet.call(fleet.owner, "grant_tool", agent="default", tool="ping", reason=text)
    assert (await fleet.call(fleet.owner, "list_grants")).grants == []
    for text in STORABLE[:-1]:
        made = await fleet.call(fleet.owner, "grant_tool", agent="default", tool="ping", reason=text)
        assert made.reason == text
