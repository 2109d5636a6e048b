"""The keep that every test of this folder tries to get into."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.platform_fixtures import Fleet
from tests.security.keep import EXTRA, Keep


@pytest.fixture
async def keep(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> Keep:
    """With agents that do what their prompts say, on SQLite and on PostgreSQL."""
    fleet = make_fleet(prepared_database_url, extra=EXTRA, runtime="scripted", approval_hold_s=0)
    return await Keep(fleet).fill()


@pytest.fixture
async def lone_keep(sqlite_template: Path, tmp_path: Path, make_fleet: Callable[..., Fleet]) -> Keep:
    """On SQLite only, for what is the same on both."""
    shutil.copyfile(sqlite_template, tmp_path / "rookery.db")
    fleet = make_fleet(f"sqlite:///{tmp_path / 'rookery.db'}", extra=EXTRA, runtime="scripted", approval_hold_s=0)
    return await Keep(fleet).fill()
