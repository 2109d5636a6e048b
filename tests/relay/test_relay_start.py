"""How a relay begins: its flags, its imports, its greeting, and when it serves by itself."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rookery import __version__
from rookery.relay import FLAGS, UsageError, home_path, parse_flags, socket_path
from tests.relay.peers import ENTRY, INITIALIZE, INITIALIZED, PATIENCE_S, Client, Server, answer, call

Start = Callable[..., Client]


def went_direct(client: Client) -> dict[str, object]:
    """The flags that serving in the process was given."""
    code, output, _ = client.end()
    assert code == 7
    return json.loads(output)["direct"]


def imported(stderr: str) -> set[str]:
    return {line.split("|")[-1].strip() for line in stderr.splitlines() if line.startswith("import time:")}


def test_a_session_imports_only_the_standard_library_and_hardly_any_of_it(
    start: Start, server: Server, serve: Callable[[], Server]
) -> None:
    client = start("--agent", "ada", code=ENTRY, options=("-X", "importtime"))
    connection = server.accept()
    client.send(INITIALIZE, INITIALIZED, call(1))
    for _ in range(3):
        connection.next()
    connection.send(answer(0), answer(1))
    assert [client.next()["id"], client.next()["id"]] == [0, 1]
    server.die()
    second = serve()
    client.send(call(2))
    connection = second.accept()
    connection.next()
    connection.send(answer(0))
    assert [connection.next(), connection.next()] == [INITIALIZED, call(2)]
    connection.send(answer(2))
    second.die()
    code, output, stderr = client.end()
    assert (code, json.loads(output)["id"]) == (0, 2)

    plain = start(code="pass", options=("-X", "importtime"))
    modules = imported(stderr) - imported(plain.end()[2])
    own = {name for name in modules if name.partition(".")[0] == "rookery"}
    assert own == {"rookery", "rookery.entry", "rookery.relay", "rookery.relay_pump", "rookery.relay_wire"}
    assert modules - own <= {"_json", "_socket", "select", "time"} <= sys.stdlib_module_names


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_idle_relay_is_small(client: Client, server: Server) -> None:
    connection = server.accept()
    client.send(call(1))
    connection.next()
    connection.send(answer(1))
    client.next()
    assert client.memory_mb("VmRSS") < 12


def test_the_greeting_tells_version_place_and_flags(start: Start, server: Server, home: Path) -> None:
    start("--issue-id", "7", "--db=a=b", "--scheduler", "--agent", 'a"dä\\')
    server.accept()
    flags = {"issue_id": "7", "db": "a=b", "scheduler": True, "agent": 'a"dä\\'}
    assert server.hello == {
        "rookery": 1,
        "version": __version__,
        "cwd": os.path.realpath(home),
        "flags": flags,
    }


def test_every_flag_is_understood() -> None:
    arguments = [part for name, (takes_value, _) in FLAGS.items() for part in ([name, "v"] if takes_value else [name])]
    flags = parse_flags(arguments)
    assert len(flags) == len(FLAGS)
    assert flags["tool_scope_file"] == "v"
    assert flags["as_owner"] is True


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--agnet", "ada"], "--agnet"),
        (["--agent"], "--agent needs a value"),
        (["--agent", "--scheduler"], "--agent needs a value"),
        (["--agent="], "--agent needs a value"),
        (["--agent", ""], "--agent needs a value"),
        (["--scheduler=yes"], "--scheduler takes no value"),
        (["ada"], "argument 'ada'"),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_sentence(start: Start, arguments: list[str], names: str) -> None:
    with pytest.raises(UsageError):
        parse_flags(arguments)
    code, output, stderr = start(*arguments).end()
    assert (code, output) == (2, b"")
    assert names in stderr
    assert stderr.count("\n") == 1


def test_help_belongs_to_the_command_line(start: Start) -> None:
    stand_in = (
        "import sys, types; line = types.ModuleType('rookery.cli.main'); "
        "line.main = lambda: print('help'); sys.modules['rookery.cli.main'] = line; "
    )
    assert start("--agent", "ada", "--help", code=stand_in + ENTRY).end() == (0, b"help\n", "")


def test_home_is_the_flag_before_the_environment_before_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", "/people/ada")
    monkeypatch.delenv("ROOKERY_HOME", raising=False)
    assert home_path({}) == "/people/ada/.rookery"
    monkeypatch.setenv("ROOKERY_HOME", "/elsewhere/")
    assert home_path({}) == "/elsewhere"
    monkeypatch.chdir(tmp_path)
    assert home_path({"home": "here"}) == str(tmp_path / "here")


def test_a_deep_home_gets_a_short_socket_of_its_own() -> None:
    assert socket_path("/h/.rookery") == "/h/.rookery/rookery.sock"
    deep = ["/" + "d" * 100, "/" + "e" * 100, "/" + "ü" * 45]
    paths = {socket_path(home) for home in deep}
    assert len(paths) == 3
    assert all(path.startswith(f"/tmp/rookery-{os.geteuid()}/") and len(path) < 60 for path in paths)


def test_without_a_server_the_process_serves_itself(start: Start) -> None:
    client = start("--agent", "ada")
    assert went_direct(client) == {"agent": "ada"}


def test_a_socket_that_a_dead_server_left_is_not_used(start: Start, server: Server) -> None:
    server.die()
    assert went_direct(start()) == {}


def test_direct_asks_no_server(start: Start, server: Server) -> None:
    assert went_direct(start("--direct")) == {"direct": True}
    server.listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        server.listener.accept()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a socket away")
def test_a_socket_of_another_user_is_not_used(start: Start, server: Server) -> None:
    os.chown(server.path, 4242, -1)
    client = start()
    code, output, stderr = client.end()
    assert (code, json.loads(output)) == (7, {"direct": {}})
    assert "belongs to another user" in stderr
    server.listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        server.listener.accept()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_server_of_another_user_is_not_used_behind_a_socket_of_ones_own(start: Start, home: Path) -> None:
    home.chmod(0o777)
    path = socket_path(str(home))
    listen = (
        "import os, socket, sys; os.setuid(4242); s = socket.socket(socket.AF_UNIX); "
        "s.bind(sys.argv[1]); s.listen(); print('up', flush=True); sys.stdin.read()"
    )
    foreign = [sys.executable, "-c", listen, path]
    with subprocess.Popen(foreign, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        os.chown(path, 0, 0)
        code, output, stderr = start().end()
    assert (code, json.loads(output)) == (7, {"direct": {}})
    assert "the server belongs to another user" in stderr


@pytest.mark.parametrize("greeted", [{"ok": False, "reason": "another database", "fallback": True}, b"HTTP/1.1 400\n"])
def test_a_server_that_is_not_the_right_one_is_left_alone(start: Start, server: Server, greeted: object) -> None:
    client = start()
    client.send(call(1))
    connection = server.accept(greeted)
    assert connection.lines.raw() == b"", "nothing of the session was sent"
    assert went_direct(client) == {}


def test_a_server_that_does_not_answer_is_not_waited_for(start: Start, server: Server) -> None:
    # The queue of the listener takes the connection; nobody ever reads it.
    code, output, stderr = start().end()
    assert (code, json.loads(output)) == (7, {"direct": {}})
    assert "does not answer" in stderr


def test_a_server_that_closes_instead_of_greeting_is_not_used(start: Start, server: Server) -> None:
    client = start()
    server.accept(b"")
    server.die()
    assert went_direct(client) == {}


def test_a_refused_session_ends_with_the_reason(start: Start, server: Server) -> None:
    client = start("--agent", "nobody")
    server.accept({"ok": False, "reason": "there is no agent nobody", "fallback": False})
    assert client.end() == (2, b"", "rookery stdio: there is no agent nobody\n")


def test_a_complaint_that_nobody_reads_changes_nothing(start: Start, server: Server) -> None:
    client = start()
    client.stderr.close()
    server.accept({"ok": False, "reason": "another database", "fallback": True})
    client.stdin.close()
    assert json.loads(client.lines.raw()) == {"direct": {}}
    assert client.process.wait(PATIENCE_S) == 7


def test_closed_input_or_output_is_refused(start: Start, server: Server) -> None:
    for number in (0, 1):
        reopened = f"import os, sys; os.close({number}); os.execv(sys.executable, [sys.executable, '-c', "
        client = start(code=f"{reopened}{ENTRY!r}, 'stdio'])")
        code, _, stderr = client.end()
        assert code == 2
        assert "must be open" in stderr
