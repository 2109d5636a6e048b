"""A session whose agent is a program: its messages reach it, and its calls are those of the session."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.around.audit import audit_log
from rookery.runtimes.command import CommandRuntime
from rookery.runtimes.command_own import OwnCommand
from tests.platform_fixtures import Fleet
from tests.platform_fixtures import prepared_database_url as database_url
from tests.runtimes.command_stage import ASKING
from tests.runtimes.command_stage import Stage as Programs
from tests.sessions.stage import Stage

__all__ = ["database_url"]

SOURCE = Path(__file__).parents[2] / "src"
# Calls the tool that it is told to, at the MCP server of its configuration, and says what came of it.
CALLER = (
    ASKING
    + """print(ask(2, "tools/call", name=sys.stdin.read(), arguments={})["content"][0]["text"])
"""
)


@pytest.fixture
def stage(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Stage:
    fleet = make_fleet(database_url, extra={})
    home = Path(fleet.platform.settings.home)
    # Our server is started beside this process, and has to find the same database.
    (home / "rookery.toml").write_text(f'database = "{database_url}"\nplugins = false\n')
    (tmp_path / "programs").mkdir()
    programs = Programs(tmp_path / "programs")
    caller = programs.program("caller", CALLER)
    environ = {**programs.environ, "PYTHONPATH": str(SOURCE)}
    return Stage(fleet, CommandRuntime(OwnCommand(f"{caller} {{mcp_config}}"), str(home), environ))


def called_by(stage: Stage, tool: str) -> list[str]:
    """The sessions in which the tool was called."""
    found = sa.select(audit_log.c.session).where(audit_log.c.tool == tool).distinct()
    return [row.session for row in stage.database.direct(lambda tx: tx.all(found))]


async def test_a_program_calls_tools_as_the_agent_of_its_session_and_of_no_other(stage: Stage) -> None:
    one, other = stage.open(), stage.open()
    async with stage.at_work():
        refused = await stage.turn(other.id, "create_agent")
        done = await stage.turn(one.id, "ping")
    assert "PERMISSION_DENIED" in refused["output"]
    assert (done["reason"], '"pong"' in done["output"]) == ("completed", True)
    assert (called_by(stage, "create_agent"), called_by(stage, "ping")) == ([other.id], [one.id])
    own = Path(stage.platform.settings.home) / "sessions"
    assert {name: os.listdir(own / name) for name in os.listdir(own)} == {one.id: [], other.id: []}
