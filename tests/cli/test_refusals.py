"""What the command line refuses, and how it says so."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rookery.cli.connect import CLIENTS
from rookery.core.tool import PROFILES
from rookery.identity.tables import MIGRATIONS
from tests.cli.terminal import Terminal


def names(terminal: Terminal, *options: str) -> set[str]:
    return {tool["name"] for tool in terminal.json("tools", "--json", *options)}


def make_newer(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("INSERT INTO schema_migrations VALUES ('identity', 99, 'from the future', 0)")


def test_an_agent_without_the_right_is_refused_with_the_layer_and_a_hint(terminal: Terminal) -> None:
    told = terminal.refusal("create_agent", '{"name": "ada"}')
    assert (told["code"], told["layer"]) == ("PERMISSION_DENIED", "principal")
    assert told["hint"]
    assert [agent["name"] for agent in terminal.json("agents", "--json")] == ["default"]


def test_a_refusal_reaches_the_shell_as_json_on_stderr_and_exit_code_1(terminal: Terminal) -> None:
    done = terminal.process("call", "create_agent", '{"name": "ada"}')
    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads(done.stderr)["error"]["code"] == "PERMISSION_DENIED"


def test_an_unknown_tool_is_refused_with_names_that_come_near(terminal: Terminal) -> None:
    told = terminal.refusal("get_server", "--as-owner")
    assert told["code"] == "NOT_FOUND"
    assert "get_server_info" in told["hint"]


@pytest.mark.parametrize("text", ["{", "[]", '"ada"', "null", ""])
def test_arguments_that_are_no_json_object_are_refused(terminal: Terminal, text: str) -> None:
    assert terminal.refusal("ping", text)["code"] == "INVALID_PARAMS"


def test_arguments_that_are_no_json_are_refused_from_standard_input_too(terminal: Terminal) -> None:
    assert terminal.refusal("ping", "-", typed="not json")["code"] == "INVALID_PARAMS"


def test_a_pair_without_a_value_is_refused(terminal: Terminal) -> None:
    assert "name=value" in terminal.refusal("ping", "--set", "name")["hint"]


def test_an_argument_that_the_tool_does_not_have_is_refused(terminal: Terminal) -> None:
    told = terminal.refusal("get_server_info", "--set", "verbose=true")
    assert told["code"] == "INVALID_PARAMS"
    assert "include_uptime" in told["hint"]


@pytest.mark.parametrize("command", [["tools"], ["explain", "ping"]])
def test_an_unknown_agent_type_is_refused_with_the_known_ones(terminal: Terminal, command: list[str]) -> None:
    told = terminal.fails(*command, "--agent-type", "wizard")
    assert "wizard" in told
    assert all(profile in told for profile in PROFILES.values())


def test_an_unknown_agent_is_refused_with_the_known_ones(terminal: Terminal) -> None:
    assert "known: default" in terminal.fails("tools", "--agent", "nobody")


@pytest.mark.parametrize("flag", ["--agent", "--agent-type", "--tool-scope-file", "--home", "--db"])
def test_an_empty_value_is_refused_rather_than_taken_for_absent(terminal: Terminal, flag: str) -> None:
    assert f"{flag} needs a value" in terminal.fails("tools", flag, "", code=2)


def test_a_session_without_flags_does_not_see_what_only_people_may(terminal: Terminal) -> None:
    mine, all_tools = names(terminal), names(terminal, "--as-owner")
    assert mine < all_tools
    assert "create_agent" in all_tools - mine


def test_claiming_to_be_the_web_without_a_person_gives_nothing_more(terminal: Terminal) -> None:
    assert names(terminal, "--source", "web") == names(terminal)
    assert names(terminal, "--source", "web", "--as-owner") == names(terminal, "--as-owner")
    assert terminal.refusal("create_agent", '{"name": "ada"}', "--source", "web")["code"] == "PERMISSION_DENIED"


def test_the_owner_of_another_home_is_not_the_owner_of_this_one(terminal: Terminal) -> None:
    terminal.ok("tools")
    # Root can give the folder away; anybody else looks at a folder that root has.
    home = str(terminal.home) if os.geteuid() == 0 else "/"
    if home != "/":
        os.chown(home, 12345, -1)
    assert "another user" in terminal.fails("tools", "--as-owner", "--home", home)
    assert "another user" in terminal.fails("agents", "--home", home)
    assert terminal.refusal("ping", "--as-owner", "--home", home)["code"] == "PERMISSION_DENIED"


@pytest.mark.parametrize("client", CLIENTS)
def test_no_generated_configuration_acts_as_the_owner(terminal: Terminal, tmp_path: Path, client: str) -> None:
    program = tmp_path / "rookery"
    program.touch(0o755)
    shown = terminal.run("connect", client, "--print", "--command", str(program))
    assert shown.exit_code == 0
    assert "stdio" in shown.stdout
    assert "--as-owner" not in shown.output
    assert "No such option" in terminal.fails("connect", client, "--as-owner", code=2)


@pytest.mark.parametrize("command", [["tools"], ["agents"], ["migrate"], ["migrate", "--check"], ["audit", "verify"]])
def test_a_newer_schema_is_refused_in_one_sentence(terminal: Terminal, command: list[str]) -> None:
    terminal.ok("tools")
    make_newer(terminal.database)
    sentence, hint = terminal.fails(*command).splitlines()
    assert sentence == f"rookery: the database's identity schema is at 99, this program knows {MIGRATIONS[-1].number}"
    assert "newer version" in hint


def test_a_file_that_is_no_database_is_one_sentence(terminal: Terminal) -> None:
    terminal.home.mkdir()
    terminal.database.write_text("this is no database, though it is long enough to look like one" * 20)
    assert terminal.fails("tools").splitlines()[0] == "rookery: the database failed: file is not a database"


def test_a_wrong_setting_is_one_sentence(terminal: Terminal) -> None:
    terminal.home.mkdir()
    (terminal.home / "rookery.toml").write_text("prot = 4242\n")
    sentence, hint = terminal.fails("tools").splitlines()
    assert "there is no setting prot" in sentence
    assert "port" in hint


def test_a_home_that_cannot_be_made_is_one_sentence(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = terminal.fails("tools", "--home", str(tmp_path / "file" / "home"))
    assert told.startswith(f"rookery: {tmp_path / 'file'}")
    assert len(told.splitlines()) == 2


def test_a_database_of_no_known_kind_is_one_sentence(terminal: Terminal) -> None:
    terminal.environ["ROOKERY_DATABASE"] = "mysql://localhost/rookery"
    assert "of no kind we know" in terminal.process_fails("up", "--port", "0")


def test_a_scope_file_with_unknown_tools_is_refused(terminal: Terminal, tmp_path: Path) -> None:
    scope = tmp_path / "scope.json"
    scope.write_text('["ping", "conjure"]')
    assert "conjure" in terminal.fails("tools", "--tool-scope-file", str(scope))


def test_an_unknown_command_is_refused(terminal: Terminal) -> None:
    assert "No such command" in terminal.fails("conjure", code=2)
