"""What a second reading of the scripted agents found."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rookery.runtimes.scripted import Scripted
from tests.platform_fixtures import Fleet


@pytest.mark.anyio
@pytest.mark.parametrize("script", ["!wait nan", "!wait -1", "!wait inf", "!spend nan", "!spend -5", "!spend inf"])
async def test_what_is_no_time_and_no_money_ends_the_script_and_not_the_server(
    tmp_path: Path, make_fleet: Callable[..., Fleet], script: str
) -> None:
    fleet = make_fleet(f"sqlite:///{tmp_path / 'rookery.db'}", extra={})
    runtime = Scripted(fleet.platform.calls)
    session = await runtime.start_session(fleet.actor(), script, key="k", budget_usd=1.0)
    outcome = await session.wait()
    assert (outcome.status, outcome.cost_usd) == ("failed", 0.0)
    assert "is no number from 0" in outcome.error
