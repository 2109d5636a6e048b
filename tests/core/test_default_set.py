"""Which names the seeds fix, and what we add: pinned, so that no declaration changes them unnoticed."""

import pytest

from rookery.core.registry import Registry
from rookery.core.tool import PROFILES
from rookery.identity.presets import PRESETS
from rookery.plugins import load_domains
from tests.core.seed_names import (
    ADDITIONS,
    ALSO_PRIVILEGED,
    CONDITIONAL,
    CRITICAL,
    DEFAULT_SET,
    MATRIX,
    PRIVILEGED,
    SCHEDULER_BLOCKED,
)


@pytest.fixture(scope="module")
def product() -> Registry:
    """The tools of the product alone: no stand-ins, no plugins."""
    return load_domains(plugins=False).registry


def test_the_seeds_name_34_default_tools_8_blocked_ones_and_27_of_the_matrix() -> None:
    assert (len(DEFAULT_SET), len(SCHEDULER_BLOCKED), len(MATRIX)) == (34, 8, 27)
    assert DEFAULT_SET.isdisjoint(PRIVILEGED)
    assert DEFAULT_SET | PRIVILEGED >= SCHEDULER_BLOCKED


def test_every_seed_tool_that_is_built_is_in_the_default_set(product: Registry) -> None:
    built = [tool for tool in product if tool.name in DEFAULT_SET]
    assert [tool.name for tool in built if not tool.default] == []


def test_the_privileged_tools_are_privileged_and_never_default(product: Registry) -> None:
    for tool in product:
        assert (tool.tier == "privileged") == (tool.name in PRIVILEGED | ALSO_PRIVILEGED), tool.name
        assert not (tool.default and tool.tier == "privileged"), tool.name


def test_the_default_set_beyond_the_seeds_is_exactly_what_is_pinned(product: Registry) -> None:
    assert {tool.name for tool in product if tool.default} - DEFAULT_SET == ADDITIONS


def test_exactly_the_eight_are_scheduler_blocked_as_far_as_they_are_built(product: Registry) -> None:
    blocked = {tool.name for tool in product if tool.scheduler_blocked}
    assert blocked == {name for name in SCHEDULER_BLOCKED if name in product}


def test_only_the_three_conditional_tools_are_hidden_without_a_service(product: Registry) -> None:
    assert {tool.name for tool in product if tool.requires} == {name for name in CONDITIONAL if name in product}


def test_the_profiles_of_the_seed_tools_are_those_of_the_matrix(product: Registry) -> None:
    for name, letters in MATRIX.items():
        tool = product.get(name)
        assert tool is None or tool.profiles == {PROFILES[letter] for letter in letters}, name


def test_the_critical_tools_of_a_profile_are_those_of_the_seed(product: Registry) -> None:
    for profile, names in CRITICAL.items():
        assert product.critical(profile) == {name for name in names if name in product}


def test_a_bundle_that_a_tool_names_exists(product: Registry) -> None:
    assert {bundle for tool in product for bundle in tool.bundles} <= set(PRESETS)


def test_a_tool_for_people_is_in_no_set_of_agents(product: Registry) -> None:
    given = [tool for tool in product if tool.default or tool.profiles or tool.bundles]
    assert [tool.name for tool in given if tool.principals != "any"] == []
