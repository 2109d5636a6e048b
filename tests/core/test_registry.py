"""The registry: one tool of a name, both spellings, the same order everywhere."""

from dataclasses import replace
from types import ModuleType

import pytest

from rookery.core.errors import ConfigurationError, NotFound
from rookery.core.registry import Registry
from rookery.domains.system import tools as system_tools
from rookery.domains.system.tools import get_server_info, ping
from tests import stand_ins


@pytest.fixture
def registry() -> Registry:
    filled = Registry()
    filled.add(ping, "system")
    filled.add(get_server_info, "system")
    filled.add_module(stand_ins, "stand_ins")
    return filled


def test_two_tools_of_one_name_stop_the_start_and_both_places_are_named(registry: Registry) -> None:
    with pytest.raises(ConfigurationError) as caught:
        registry.add(replace(ping, module="acme_weather"), "acme")
    for part in ("ping", "acme_weather", ping.module):
        assert part in caught.value.message


def test_a_tool_cannot_take_the_alias_of_another_or_hide_behind_the_prefix(registry: Registry) -> None:
    with pytest.raises(ConfigurationError, match="corvid_delete_everything"):
        registry.add(replace(ping, name="corvid_delete_everything"), "acme")
    with pytest.raises(ConfigurationError, match="corvid_"):
        registry.add(replace(ping, name="corvid_brand_new"), "acme")


def test_a_name_is_known_with_and_without_the_prefix(registry: Registry) -> None:
    assert registry.require("corvid_ping") == registry.require("ping")
    assert "corvid_ping" in registry
    assert registry.get("corvid_corvid_ping") is None
    assert registry.unknown(["corvid_ping", "ping", "corvid_pong", "pong"]) == ["corvid_pong", "pong"]


def test_tools_come_in_the_order_of_their_names_whatever_the_order_of_loading(registry: Registry) -> None:
    names = [tool.name for tool in registry]
    assert names == sorted(names)
    assert len(registry) == len(names)


def test_a_tool_knows_the_domain_that_brought_it(registry: Registry) -> None:
    assert registry.require("ping").domain == "system"
    assert registry.require("delete_everything").domain == "stand_ins"


def test_a_module_brings_only_the_tools_that_it_declares_itself() -> None:
    borrowing = ModuleType("borrowing")
    borrowing.ping = system_tools.ping  # pyright: ignore[reportAttributeAccessIssue]
    registry = Registry()
    registry.add_module(borrowing, "borrowing")
    assert len(registry) == 0


def test_a_name_that_no_tool_has_is_answered_with_those_that_come_near(registry: Registry) -> None:
    with pytest.raises(NotFound) as caught:
        registry.require("corvid_delete_everthing")
    assert "delete_everything" in (caught.value.hint or "")
    with pytest.raises(NotFound) as caught:
        registry.require("zzz")
    assert caught.value.hint
