"""`rookery call`: a caller of tools like any other."""

import json
import subprocess
import sys

from rookery import __version__
from tests.cli.terminal import LIMIT_S, Terminal


def test_the_result_is_json_on_stdout(terminal: Terminal) -> None:
    assert terminal.json("call", "ping")["status"] == "pong"


def test_the_seeds_spelling_of_a_name_is_accepted(terminal: Terminal) -> None:
    assert terminal.json("call", "corvid_ping")["status"] == "pong"


def test_arguments_come_from_the_line_from_standard_input_or_one_by_one(terminal: Terminal) -> None:
    given = '{"include_uptime": true}'
    answers = [
        terminal.json("call", "get_server_info", given),
        terminal.json("call", "get_server_info", "-", typed=given),
        terminal.json("call", "get_server_info", "--set", "include_uptime=true"),
        terminal.json("call", "get_server_info", '{"include_uptime": false}', "--set", "include_uptime=true"),
    ]
    assert [answer["uptime_seconds"] is not None for answer in answers] == [True] * 4
    assert answers[0]["version"] == __version__


def test_a_value_that_is_no_json_is_text(terminal: Terminal) -> None:
    made = terminal.json("call", "create_agent", "--as-owner", "--set", "name=ada", "--set", 'permissions=["ping"]')
    assert (made["name"], made["permissions"]) == ("ada", ["ping"])


def test_text_is_what_clients_show(terminal: Terminal) -> None:
    assert json.loads(terminal.ok("call", "ping", "--text"))["status"] == "pong"


def test_the_call_is_that_of_the_agent_it_names_and_is_recorded(terminal: Terminal) -> None:
    ada = terminal.json("agents", "create", "ada", "--json")
    terminal.ok("call", "ping", "--agent", "ada", "--session-id", "s-1")
    (record,) = terminal.json("audit", "list", "--agent", "ada", "--json")
    assert (record["tool"], record["agent"], record["session"]) == ("ping", ada["id"], "s-1")


def test_a_refused_call_is_recorded_too(terminal: Terminal) -> None:
    terminal.refusal("list_tokens")
    (record,) = terminal.json("audit", "list", "--outcome", "refused", "--json")
    assert (record["tool"], record["code"]) == ("list_tokens", "PERMISSION_DENIED")


def test_stdio_works_through_the_command_line_as_well(terminal: Terminal) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    done = subprocess.run(
        [sys.executable, "-m", "rookery.cli.main", "stdio", "--direct", "--agent-type", "judge"],
        env=terminal.full_environ(),
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["serverInfo"]["version"] == __version__


def test_what_is_wrong_with_the_flags_of_stdio_is_said_by_the_relay(terminal: Terminal) -> None:
    told = terminal.run("stdio", "--agent", "")
    assert told.exit_code == 2
    assert "--agent needs a value" in told.stderr
