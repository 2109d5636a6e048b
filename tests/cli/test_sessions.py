"""The commands with which the owner opens sessions, talks to them, watches them and ends them."""

import json
import os
import pty
import re
import select
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from tests.cli.terminal import Terminal
from tests.cli.yard import LIMIT_S, Yard
from tests.warm import start

ASKS = '!use Bash {"command": "make all"}'


@pytest.fixture
def home(terminal: Terminal) -> Terminal:
    """A terminal of a server that could start agents."""
    terminal.environ["ROOKERY_RUNTIME"] = "scripted"
    return terminal


@pytest.mark.parametrize("command", ["show", "watch", "interrupt", "end"])
def test_an_unknown_session_is_one_sentence(home: Terminal, command: str) -> None:
    assert "there is no session ses-0" in home.fails("sessions", command, "ses-0")


def test_what_is_wrong_ends_in_one_sentence(home: Terminal) -> None:
    assert "there is no session ses-0" in home.fails("sessions", "send", "ses-0", "hello")
    assert "there is no session ses-0" in home.fails("sessions", "mode", "ses-0", "ask")
    assert "outside the folders" in home.fails("sessions", "start", "--cwd", "/")
    assert "agent" in home.fails("sessions", "start", "--agent", "nobody")
    assert "give a message" in home.fails("sessions", "start", "--follow", code=2)
    assert "Invalid value" in home.fails("sessions", "mode", "ses-0", "free", code=2)
    made = home.json("sessions", "start", "--json")["session"]["id"]
    home.ok("sessions", "end", made)
    assert "has ended" in home.fails("sessions", "send", made, "hello")
    assert "1 to 1000000 characters" in home.fails("sessions", "start", "-", typed="x" * 1_000_001)


def test_a_server_without_a_runtime_says_what_to_set(terminal: Terminal) -> None:
    assert "ROOKERY_RUNTIME" in terminal.fails("sessions", "start", "hello")
    assert "no sessions" in terminal.ok("sessions")


def test_a_session_is_opened_listed_shown_steered_and_ended(home: Terminal) -> None:
    home.ok("agents", "create", "ada")
    made = home.json("sessions", "start", "mend", "the login", "--agent", "ada", "--mode", "act", "--json")
    session_id = made["session"]["id"]
    listed = home.ok("sessions", "list", "--agent", "ada", "--state", "idle")
    for shown in (session_id, "ada", "act", "scripted", "$0.0000", "mend the login"):
        assert shown in listed
    assert "no sessions" in home.ok("sessions", "list", "--state", "ended")
    queued = home.json("sessions", "send", session_id[:12], "-", "--json", typed="and\ntest it\n")
    assert queued["queue_position"] == 1
    shown = home.ok("sessions", "show", session_id)
    assert f"queued {queued['message_id']}" in shown
    assert [each["text"] for each in home.json("sessions", "show", session_id, "--json")["queue"]] == [
        "mend the login",
        "and\ntest it\n",
    ]
    assert "ask" in home.ok("sessions", "mode", session_id, "ask")
    assert "idle" in home.ok("sessions", "interrupt", session_id)
    assert home.json("sessions", "end", session_id, "--json")["state"] == "ended"
    counted = home.json("sessions", "stats", "--json")
    assert counted["states"] == {"idle": 0, "running": 0, "waiting": 0, "ended": 1}
    assert re.search(r"^ended +1$", home.ok("sessions", "stats"), re.MULTILINE)
    assert "the session has ended" in home.ok("sessions", "watch", session_id)


@pytest.fixture
def working(yard: Yard) -> Yard:
    """A terminal beside a worker that runs agents."""
    return with_worker(yard)


@pytest.fixture
def lone_working(lone_yard: Yard) -> Yard:
    return with_worker(lone_yard)


def with_worker(yard: Yard) -> Yard:
    yard.environ["ROOKERY_RUNTIME"] = "scripted"
    yard.start("worker").line("Rookery works")
    return yard


def test_an_answer_of_another_process_is_followed_to_its_end(working: Yard) -> None:
    done = working.process("sessions", "start", "good morning", "--follow")
    assert (done.returncode, done.stderr) == (0, "")
    assert "> good morning" in done.stdout
    assert done.stdout.endswith("good morning\n(completed)\n")
    (session,) = working.json("sessions", "list", "--json")
    failing = working.process("sessions", "send", session["id"], "!call ping\n!fail no\x1b[2J luck", "--follow")
    assert failing.returncode == 1
    for shown in ("* mcp__rookery__ping", '"status":"pong"', "! no?[2J luck", "(failed): no?[2J luck"):
        assert shown in failing.stdout
    assert "good morning" not in failing.stdout
    as_json = working.process("sessions", "send", session["id"], "thanks", "--follow", "--json")
    events = [json.loads(line) for line in as_json.stdout.splitlines()]
    assert [event["event"] for event in events] == ["turn_input", "session_status", "text_delta", "done"]
    assert events[0]["data"]["text"] == "thanks"
    said = working.ok("sessions", "show", session["id"])
    assert said.index("> good morning") < said.index("* mcp__rookery__ping") < said.index("< thanks")


def test_what_a_session_asks_is_listed_with_the_session_and_its_exact_input(lone_working: Yard) -> None:
    yard = lone_working
    made = yard.json("sessions", "start", ASKS, "--mode", "ask", "--json")["session"]["id"]
    yard.until(lambda: yard.json("asks", "--json"), "the agent asks")
    listed = yard.ok("asks")
    for shown in (made, "approval", "May default use Bash?", '"command": "make all"'):
        assert shown in listed
    (asked,) = yard.json("asks", "--json")
    assert asked["session"] == made
    yard.ok("answer", asked["short"], "deny:", "not today")
    yard.until(lambda: yard.json("sessions", "show", made, "--json")["state"] == "idle", "the turn is over")
    said = yard.ok("sessions", "show", made)
    assert "denied" in said


class Screen:
    """A command at a terminal of its own, where one can type."""

    def __init__(self, yard: Yard, *words: str) -> None:
        self._keys, end = pty.openpty()
        command = [sys.executable, "-m", "rookery.entry", *words]
        self._process = start(command, env=yard.full_environ(), stdin=end, stdout=end, stderr=end)
        os.close(end)
        self.shown = ""

    def until(self, text: str) -> None:
        """Wait until this stands on the screen, behind what was looked for before."""
        deadline = time.monotonic() + LIMIT_S
        while text not in self.shown:
            ready, _, _ = select.select([self._keys], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} is not shown: {self.shown}"
            self.shown += os.read(self._keys, 65_536).decode(errors="replace")
        self.shown = self.shown.partition(text)[2]

    def type(self, line: str) -> None:
        os.write(self._keys, f"{line}\n".encode())

    def interrupt(self) -> int:
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(LIMIT_S)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._keys)


@pytest.fixture
def screen(lone_working: Yard) -> Iterator[Screen]:
    """Somebody who watches a session that asks for three things, one after the other."""
    script = f'{ASKS}\n!ask Which colour? | red | green\n!use Bash {{"command": "rm -r /"}}\n!say done then'
    made = lone_working.json("sessions", "start", script, "--mode", "ask", "--json")["session"]["id"]
    screen = Screen(lone_working, "sessions", "watch", made)
    yield screen
    screen.close()


def test_what_is_asked_is_answered_from_the_keyboard_while_it_is_watched(screen: Screen) -> None:
    screen.until('"command": "make all"')
    screen.until("y approve, a always (30 days), n deny")
    screen.type("perhaps")
    screen.until("is no decision")
    screen.type("y")
    screen.until("approved")
    screen.until("? Which colour?")
    screen.until("2. green")
    screen.type("2")
    screen.until("answered: green")
    screen.until('   "command": "rm -r /"')
    screen.until("n deny")
    screen.type("n: never that")
    screen.until("denied: never that")
    screen.until("done then")
    screen.until("(completed)")
    screen.type("hello")
    screen.until("nothing is asked")
    assert screen.interrupt() == 0


def test_what_waits_is_answered_elsewhere_and_the_watcher_sees_it(lone_working: Yard) -> None:
    made = lone_working.json("sessions", "start", ASKS, "--mode", "ask", "--json")["session"]["id"]
    (asked,) = lone_working.until(lambda: lone_working.json("asks", "--json"), "the agent asks")
    screen = Screen(lone_working, "sessions", "watch", made)
    try:
        screen.until(f"ask {asked['short']}")
        screen.type("l")
        screen.until("it stays open")
        lone_working.ok("answer", asked["short"], "approve")
        screen.until("approved")
        screen.until("(completed)")
        lone_working.ok("sessions", "end", made)
        screen.until("the session has ended")
    finally:
        screen.close()
