"""A session that is held to a list of tools: whoever attaches itself has no other, and its program can read it."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rookery.db.tx import Tx
from rookery.identity.binding import Binding
from rookery.runtimes.command import CommandRuntime
from rookery.runtimes.command_client import SCOPE_FILE
from rookery.runtimes.command_own import OwnCommand
from rookery.server.launch import binding_from
from rookery.sessions.store import NewSession, Row, SessionRows
from tests.platform_fixtures import Fleet
from tests.platform_fixtures import prepared_database_url as database_url
from tests.runtimes.command_stage import ACTOR, ASKING, said, turn
from tests.runtimes.command_stage import Stage as Programs
from tests.sessions.stage import Stage

__all__ = ["database_url"]

SOURCE = Path(__file__).parents[2] / "src"
HELD = frozenset({"ping", "list_issues"})
# Says which tools our MCP server lists, what comes of calling the one that it is told to, and where its list is.
CLIENT = (
    ASKING
    + """listed = [tool["name"] for tool in ask(2, "tools/list")["tools"]]
called = ask(3, "tools/call", name=sys.stdin.read(), arguments={})["content"][0]["text"]
print(json.dumps({"listed": listed, "called": called, "held": json.load(open(sys.argv[2])), "file": sys.argv[2]}))
"""
)
LOOKS = f"""
import os, sys
path = os.environ.get({SCOPE_FILE!r})
print(sys.argv[1:] == [path], oct(os.stat(path).st_mode), open(path).read()) if path else print(sys.argv[1:])
"""


@pytest.fixture
def stage(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Stage:
    fleet = make_fleet(database_url, extra={})
    home = Path(fleet.platform.settings.home)
    # Our server is started beside this process, and has to find the same database.
    (home / "rookery.toml").write_text(f'database = "{database_url}"\nplugins = false\n')
    (tmp_path / "programs").mkdir()
    programs = Programs(tmp_path / "programs")
    client = programs.program("client", CLIENT)
    environ = {**programs.environ, "PYTHONPATH": str(SOURCE)}
    return Stage(fleet, CommandRuntime(OwnCommand(f"{client} {{mcp_config}} {{scope_file}}"), str(home), environ))


def held_session(stage: Stage) -> Row:
    """A session that is held to a list of tools, as those of the orchestrator are."""

    def work(tx: Tx) -> Row:
        actor = stage.platform.resolver.resolve(tx, Binding(scope_file=HELD)).actor
        new = NewSession(actor=actor, runtime="command", mode=actor.mode, opened_by="owner", origin="orchestrator")
        return SessionRows(tx, "default").create(new)

    return stage.write(work)


async def test_a_tool_that_the_list_leaves_out_is_neither_listed_nor_called_by_the_runs_client(stage: Stage) -> None:
    one, other = held_session(stage), held_session(stage)
    async with stage.at_work():
        refused = json.loads((await stage.turn(one.id, "list_agents"))["output"])
        done = json.loads((await stage.turn(other.id, "ping"))["output"])
    assert set(refused["listed"]) == set(refused["held"]) == HELD
    assert "PERMISSION_DENIED" in refused["called"]
    assert '"pong"' in done["called"]
    assert not os.path.exists(os.path.dirname(refused["file"]))


async def test_a_program_finds_the_list_by_its_words_and_by_a_variable_until_its_turn_is_over(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    held = replace(ACTOR, scope_file=HELD)
    agent = await programs.own(LOOKS, "{scope_file}", actor=held)
    assert said(await turn(agent)) == 'True 0o100600 ["list_issues", "ping"]\n'
    assert programs.left == []


async def test_a_session_that_is_held_to_nothing_has_no_list(tmp_path: Path) -> None:
    agent = await Programs(tmp_path).own(LOOKS, "{scope_file}")
    assert said(await turn(agent)) == "['']\n"


async def test_the_list_is_one_that_a_session_over_stdio_can_be_started_with(stage: Stage, tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    copy = f"import shutil, sys\nshutil.copy(sys.argv[1], {str(tmp_path / 'copy')!r})"
    await turn(await programs.own(copy, "{scope_file}", actor=replace(ACTOR, scope_file=HELD)))
    bound = binding_from({"tool_scope_file": str(tmp_path / "copy")}, stage.platform.registry, None)
    assert bound.scope_file == HELD
