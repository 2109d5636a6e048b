"""Servers whose agents remember: with and without a key, on both databases."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.domains.memory.minds import WORDS, Minds
from tests.platform_fixtures import Fleet


@pytest.fixture
def make_minds(database_url: str, make_fleet: Callable[..., Fleet]) -> Callable[..., Minds]:
    """Starts servers on one database, with the product's own tools alone."""

    def make(**settings: Any) -> Minds:
        return Minds(make_fleet(database_url, extra={}, **settings))

    return make


@pytest.fixture(params=["plain", "sealed"])
def minds(request: pytest.FixtureRequest, make_minds: Callable[..., Minds]) -> Minds:
    """A server that keeps memories plain, and one that seals them and hides their keys."""
    return make_minds(mnemonic=WORDS, memory_hide_keys=True) if request.param == "sealed" else make_minds()


@pytest.fixture
def plain_minds(make_minds: Callable[..., Minds]) -> Minds:
    return make_minds()


@pytest.fixture
def sealed_minds(make_minds: Callable[..., Minds]) -> Minds:
    """With a key; keys of memories are not hidden."""
    return make_minds(mnemonic=WORDS)
