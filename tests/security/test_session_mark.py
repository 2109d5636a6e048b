"""What the platform starts for an agent passes for no person: neither it, nor anything that it starts."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rookery.lifecycle import session_mark
from rookery.lifecycle.programs import environment as command_environment
from rookery.lifecycle.programs import run_command
from rookery.lifecycle.session_mark import in_session, marked
from rookery.relay import SESSION_MARK
from tests.cli.terminal import Terminal
from tests.server.processes import Client, Server, environment

LIMIT_S = 60
REFUSED = "runs in an agent's session"
# As a shell of the session would: the mark is taken off, but not off the shell.
UNMARKED = 'env -u ROOKERY_SESSION "$@"; exit $?'
HELLO = """
import json, socket, sys
from rookery import __version__
door = socket.socket(socket.AF_UNIX)
door.connect(sys.argv[1])
flags = json.loads(sys.argv[2])
door.sendall(json.dumps({"rookery": 1, "version": __version__, "flags": flags, "cwd": "/"}).encode() + b"\\n")
print(door.makefile().readline())
"""
OWNERS = [
    ("asks",),
    ("answer", "00000000", "yes"),
    ("agents",),
    ("token", "create", "mine", "--agent", "default"),
    ("grants", "list"),
    ("bundles", "list"),
    ("profiles", "list"),
    ("projects", "list"),
    ("schedules", "list"),
    ("schedules", "approve", "00000000"),
    ("schedules", "deny", "00000000"),
    ("workflows", "list"),
    ("issues", "list"),
    ("jobs", "list"),
    ("audit", "list"),
    ("call", "list_asks", "--as-owner"),
    ("explain", "ping", "--as-owner"),
]


@pytest.fixture
def home() -> Iterator[Path]:
    # The folders of tmp_path can be too deep for a socket.
    folder = Path(tempfile.mkdtemp(prefix="rookery-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def server(home: Path) -> Iterator[Server]:
    server = Server(home, environment(home, None))
    yield server
    server.close()


def ran(words: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


def rookery(*words: str) -> list[str]:
    return [sys.executable, "-m", "rookery.entry", *words]


@pytest.mark.parametrize("words", OWNERS, ids=" ".join)
def test_no_command_acts_as_the_owner_in_a_session(tmp_path: Path, words: tuple[str, ...]) -> None:
    terminal = Terminal(tmp_path, **{SESSION_MARK: "ses-1"})
    assert REFUSED in terminal.fails(*words)
    assert not terminal.database.exists()


def test_no_process_of_a_session_does_nor_can_it_take_the_mark_off_those_it_comes_from(home: Path) -> None:
    env = marked(environment(home, None), "ses-1")
    unmarked = ["sh", "-c", UNMARKED, "sh"]
    for command in (
        rookery("stdio", "--as-owner"),
        [*unmarked, *rookery("answer", "00000000", "yes")],
        [*unmarked, *rookery("stdio", "--as-owner", "--direct")],
    ):
        done = ran(command, env)
        assert (done.returncode != 0, done.stdout) == (True, "")
        assert REFUSED in done.stderr
    assert not (home / "rookery.db").exists()


def test_without_the_mark_the_same_commands_work_and_an_empty_one_is_a_mark(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.ok("asks")
    assert "there is no ask 00000000" in terminal.fails("answer", "00000000", "yes")
    assert REFUSED in Terminal(tmp_path, **{SESSION_MARK: ""}).fails("asks")


def test_the_socket_takes_no_session_for_its_owner(home: Path, server: Server) -> None:
    plain = environment(home, None)
    greet = [sys.executable, "-c", HELLO, str(home / "rookery.sock")]
    owner, agent = '{"as_owner": true}', "{}"

    def greeted(words: list[str], env: dict[str, str]) -> dict[str, object]:
        done = ran(words, env)
        return json.loads(done.stdout or "null") or {"errors": done.stderr}

    assert greeted([*greet, owner], plain) == {"ok": True}
    for flags in (owner, '{"as_owner": true, "agent": "default"}', '{"as_owner": "yes"}'):
        for words in ([*greet, flags], ["sh", "-c", UNMARKED, "sh", *greet, flags]):
            answer = greeted(words, marked(plain, "ses-1"))
            assert (answer["ok"], answer["fallback"]) == (False, False)
            assert REFUSED in str(answer["reason"])
    # As itself an agent's process comes in, marked or not.
    assert greeted([*greet, agent], marked(plain, "ses-1")) == {"ok": True}


def test_an_agent_is_served_in_a_session_as_ever(home: Path, server: Server) -> None:
    for number, mode in enumerate(([], ["--direct"])):
        client = Client(home, marked(environment(home, None), "ses-1"), *mode, number=number)
        try:
            client.initialize()
            assert "error" not in client.call("ping")
            assert client.call("answer_ask", ask_id="00000000", answer="yes")["error"]["code"] == "PERMISSION_DENIED"
        finally:
            client.close()


async def test_the_commands_of_a_work_task_have_the_mark(tmp_path: Path) -> None:
    assert SESSION_MARK in command_environment()
    done = await run_command(f"printf '%s' \"${SESSION_MARK}\"", str(tmp_path), 20.0)
    assert done.output == "work"
    command = f'env -u {SESSION_MARK} "{sys.executable}" -m rookery.entry asks --home "{tmp_path / "home"}"; exit $?'
    source = Path(session_mark.__file__).parents[2]
    done = await run_command(f'PYTHONPATH="{source}"; export PYTHONPATH; {command}', str(tmp_path), 60.0)
    assert not done.ok
    assert REFUSED in done.output


def test_who_is_looked_for_too_deep_counts_as_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_session(os.getpid()) is False
    assert in_session(0) is False
    monkeypatch.setattr(session_mark, "MOST_ANCESTORS", 1)
    assert in_session(os.getpid()) is True
