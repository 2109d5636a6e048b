"""What the tests of commands may ask for."""

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A terminal whose home does not exist yet."""
    return Terminal(tmp_path)


@pytest.fixture
def terminal_on(tmp_path: Path, database_url: str) -> Terminal:
    """A terminal whose home keeps its data on SQLite, and the test again on PostgreSQL."""
    return Terminal(tmp_path, ROOKERY_DATABASE=database_url)
