"""What the tests of commands may ask for."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.cli.yard import Yard


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A terminal whose home does not exist yet."""
    return Terminal(tmp_path)


@pytest.fixture
def terminal_on(tmp_path: Path, database_url: str) -> Terminal:
    """A terminal whose home keeps its data on SQLite, and the test again on PostgreSQL."""
    return Terminal(tmp_path, ROOKERY_DATABASE=database_url)


@pytest.fixture
def make_yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Yard]]:
    """A terminal with jobs to do, on a database that has its tables; its processes are ended after the test."""
    made: list[Yard] = []

    def make(url: str) -> Yard:
        made.append(Yard(tmp_path, url))
        monkeypatch.syspath_prepend(made[-1].plugin)
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def yard(make_yard: Callable[[str], Yard], prepared_database_url: str) -> Yard:
    """On SQLite, and the test again on PostgreSQL."""
    return make_yard(prepared_database_url)


@pytest.fixture
def lone_yard(make_yard: Callable[[str], Yard], sqlite_template: Path, tmp_path: Path) -> Yard:
    """On SQLite only, for what is the same on both."""
    shutil.copyfile(sqlite_template, tmp_path / "rookery.db")
    return make_yard(f"sqlite:///{tmp_path / 'rookery.db'}")
