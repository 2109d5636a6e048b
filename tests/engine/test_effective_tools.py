"""The tools that a run is started with."""

import pytest

from rookery.engine.effective_tools import effective_tools
from tests.engine.crew import Crew


@pytest.mark.anyio
async def test_a_run_has_the_tools_of_its_role_and_no_others(crew: Crew) -> None:
    issue = await crew.issue()
    tools = effective_tools(crew.actor("judge", issue), crew.platform.registry)
    assert tools.warnings == []
    assert {"approve_pr", "reject_phase"} <= set(tools.names)
    assert "complete_phase" not in tools.names
