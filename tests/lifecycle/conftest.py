"""The place where sessions are tried."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.lifecycle import session_trials
from tests.lifecycle.session_trials import Trials
from tests.platform_fixtures import Fleet


@pytest.fixture
def make_trials(database_url: str, make_fleet: Callable[..., Fleet]) -> Callable[..., Trials]:
    """Builds such places with settings of their own, on SQLite and on PostgreSQL."""

    def make(**settings: Any) -> Trials:
        return Trials(make_fleet(database_url, extra={"trial": session_trials}, **settings))

    return make


@pytest.fixture
def trials(make_trials: Callable[..., Trials]) -> Trials:
    return make_trials()
