"""The linter of declarations: every rule broken once, and the product without a fault."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.lint import lint, tokens
from rookery.core.registry import Registry
from rookery.core.tool import Tool
from rookery.core.wire import wire_form
from rookery.domains.system.tools import ping
from rookery.plugins import load_domains


@pytest.fixture(scope="module")
def product() -> Registry:
    return load_domains(plugins=False).registry


def with_fields(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


BARE = {"type": "string"}
DESCRIBED = {"type": "object", "description": "Something.", "properties": {"inner": BARE}}
BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "a name in capitals": ({"name": "Ping"}, "verb_noun"),
    "a name with a dash": ({"name": "send-message"}, "verb_noun"),
    "a name that is too long": ({"name": "a" * 65}, "64 characters"),
    "an action without a verb": ({"action": "system"}, "domain:verb"),
    "no title": ({"title": ""}, "title"),
    "a title that is too long": ({"title": "x" * 61}, "title"),
    "no description": ({"description": ""}, "what it does"),
    "no word on when to use it": ({"description": "Answers. Returns pong. Does nothing else."}, "when to use it"),
    "no word on what it returns": ({"description": "Answers. Use it to test. Does nothing else."}, "returns"),
    "no word on its limits": ({"description": "Answers. Use it to test. Returns pong."}, "limits"),
    "a description that is too long": ({"description": f"{ping.description} {'x' * 600}"}, "more than 600"),
    "a field without a description": ({"input_schema": with_fields({"who": BARE})}, "field who"),
    "a nested field without a description": ({"input_schema": with_fields({"who": DESCRIBED})}, "field inner"),
    "an item without a description": (
        {"input_schema": with_fields({"all": {"type": "array", "description": "All.", "items": DESCRIBED}})},
        "field inner",
    ),
    "a listing that is too big": (
        {"input_schema": with_fields({f"f{n}": {"type": "string", "description": "x" * 90} for n in range(30)})},
        "tokens",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_lint_finds(fault: str) -> None:
    change, expected = BROKEN[fault]
    faults = lint(replace(ping, **change))
    assert any(expected in found for found in faults), faults
    assert all(change.get("name", "ping") in found for found in faults)


def test_of_a_tool_for_people_lint_wants_to_know_what_it_does_and_no_more() -> None:
    theirs = replace(ping, principals="people", description="Answers.")
    assert lint(theirs) == []
    assert any("what it does" in fault for fault in lint(replace(theirs, description="")))
    assert any("field who" in fault for fault in lint(replace(theirs, input_schema=with_fields({"who": BARE}))))
    assert len(lint(replace(theirs, principals="any"))) == 3


def test_the_product_has_no_fault(product: Registry) -> None:
    assert [fault for tool in product for fault in lint(tool)] == []


def test_all_tools_together_fit_into_15000_tokens_and_a_workers_into_5000(product: Registry) -> None:
    services = frozenset(tool.requires for tool in product if tool.requires)
    worker = Actor(
        kind="agent", tenant="default", subject="w", profile="worker", project="p", issue="i", services=services
    )
    assert 0 < listing_tokens(list(product)) <= 15_000
    assert 0 < listing_tokens(product.listed(worker)) <= 5_000


def listing_tokens(tools: list[Tool]) -> int:
    """The bytes of `tools/list`, divided by four."""
    listing = {"tools": [wire_form(tool) for tool in tools]}
    return len(json.dumps(listing, separators=(",", ":"), ensure_ascii=False).encode()) // 4


def test_the_tokens_of_the_tools_add_up_to_those_of_the_listing(product: Registry) -> None:
    together = listing_tokens(list(product))
    assert together - 10 <= sum(tokens(tool) for tool in product) <= together + len(product)
