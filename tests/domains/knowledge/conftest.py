"""The library that every test of documents works in."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.domains.knowledge.library import HashEmbedder, Library
from tests.platform_fixtures import Fleet


@pytest.fixture
def library(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Library:
    """The product's own tools alone and no embedder, on SQLite and on PostgreSQL."""
    return Library(make_fleet(database_url, extra={}), tmp_path, None)


@pytest.fixture
def meaning_library(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Library:
    """The same with an embedder that needs no model."""
    return Library(make_fleet(database_url, extra={}), tmp_path, HashEmbedder())
