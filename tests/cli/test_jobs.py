"""The command about deferred work."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.cli.yard import LIMIT_S, Yard

NOTED = sa.text("SELECT count(*) FROM epochs WHERE name = :name")


def noted(yard: Yard, name: str) -> int:
    return yard.on_database(lambda tx: tx.scalar(NOTED, {"name": name}))


def ids(found: list[dict[str, Any]]) -> list[int]:
    return [each["id"] for each in found]


def recorded(yard: Yard, what: str) -> list[tuple[str, str | None]]:
    """The outcome and code of each such change in the record, newest first."""
    found = yard.json("audit", "list", "--tool", f"cli:jobs.{what}", "--json")
    assert all(each["subject"].startswith("per-") and each["agent"] is None for each in found)
    return [(each["outcome"], each["code"]) for each in found]


def test_jobs_of_nobody_and_of_others_do_not_exist(yard: Yard) -> None:
    foreign = yard.defer("say", tenant="others")
    for words in (("show",), ("cancel",), ("retry",)):
        assert f"there is no job {foreign}" in yard.fails("jobs", *words, str(foreign))
        assert "there is no job 999" in yard.fails("jobs", *words, "999")
    assert yard.json("jobs", "--json") == []
    assert yard.json("jobs", "counts", "--json")["waiting"] == 0


def test_wrong_options_are_named(lone_yard: Yard) -> None:
    assert "'asleep' is not one of" in lone_yard.fails("jobs", "--state", "asleep", code=2)
    assert "--limit" in lone_yard.fails("jobs", "--limit", "0", code=2)
    assert "leave --json out" in lone_yard.fails("jobs", "--watch", "--json", code=2)
    assert "is not a valid integer" in lone_yard.fails("jobs", "show", "first", code=2)


def test_jobs_are_listed_by_state_kind_and_queue(yard: Yard) -> None:
    assert yard.ok("jobs").strip() == "no jobs"
    first, second, third = (yard.defer(kind, word=kind) for kind in ("say", "wait", "fail"))
    yard.ok("jobs", "cancel", str(first))
    assert ids(yard.json("jobs", "--json")) == [third, second, first]
    assert ids(yard.json("jobs", "--limit", "1", "--json")) == [third]
    assert ids(yard.json("jobs", "--queue", "slow", "--json")) == [second]
    assert ids(yard.json("jobs", "--kind", "chores.fail", "--json")) == [third]
    assert ids(yard.json("jobs", "--state", "waiting", "--json")) == [third, second]
    assert ids(yard.json("jobs", "--state", "cancelled", "--state", "failed", "--json")) == [first]
    assert yard.json("jobs", "counts", "--json") == {
        "waiting": 2,
        "running": 0,
        "done": 0,
        "failed": 0,
        "cancelled": 1,
    }
    head, *rows = yard.ok("jobs").splitlines()
    assert head.split() == ["id", "kind", "queue", "state", "when", "attempt", "progress", "error"]
    assert rows[-1].split()[:4] == [str(first), "chores.say", "default", "cancelled"]
    assert "cancelled by hand" in rows[-1]


def test_one_job_is_shown_with_its_arguments(yard: Yard) -> None:
    job_id = yard.defer("say", word="hello", key="greeting", lock="voice")
    found = yard.json("jobs", "show", str(job_id), "--json")
    assert (found["args"], found["key"], found["lock_key"]) == ({"word": "hello"}, "greeting", "voice")
    shown = yard.ok("jobs", "show", str(job_id))
    assert '{"word": "hello"}' in shown
    assert re.search(r"^due +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", shown, re.MULTILINE)


def test_a_waiting_job_is_cancelled_with_what_follows_from_it(yard: Yard) -> None:
    job_id = yard.defer("told_fail", word="dusting")
    assert yard.json("jobs", "cancel", str(job_id), "--json")["state"] == "cancelled"
    assert yard.state(job_id).state == "cancelled"
    assert noted(yard, "cancelled:dusting") == 1
    assert "is cancelled already" in yard.fails("jobs", "cancel", str(job_id))
    assert noted(yard, "cancelled:dusting") == 1
    assert recorded(yard, "cancel") == [("failed", "CONFLICT"), ("done", None)]


def test_a_running_job_is_stopped(yard: Yard, tmp_path: Path) -> None:
    told = tmp_path / "told"
    job_id = yard.defer("wait", told=str(told), gate=str(tmp_path / "gate"))
    yard.start("worker")
    yard.pid_in(told)
    assert yard.json("jobs", "cancel", str(job_id), "--json")["state"] == "stopping"
    assert yard.until_state(job_id, "cancelled").error == "cancelled while it ran"


def test_a_job_of_an_unknown_kind_is_left_to_those_who_know_it(yard: Yard) -> None:
    job_id = yard.defer("polish")
    for what in ("cancel", "retry"):
        assert "jobs of kind chores.polish are not known here" in yard.fails("jobs", what, str(job_id))
    assert yard.state(job_id).state == "waiting"


def test_a_failed_job_is_retried_unless_its_failure_had_consequences(yard: Yard, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    plain = yard.defer("fail", word="sweeping", gate=str(gate))
    told = yard.defer("told_fail", word="dusting")
    assert "it is waiting and will be tried anyway" in yard.fails("jobs", "retry", str(plain))
    yard.start("worker")
    assert yard.until_state(plain, "failed").error == "RuntimeError: sweeping went wrong"
    yard.until_state(told, "failed")
    assert "has been done already" in yard.fails("jobs", "retry", str(told))
    assert yard.state(told).state == "failed"
    gate.touch()
    assert yard.json("jobs", "retry", str(plain), "--json")["state"] == "waiting"
    row = yard.until_state(plain, "done")
    assert (row.attempt, row.failures, row.error) == (2, 0, None)
    assert "it is done" in yard.fails("jobs", "retry", str(plain))
    conflict = ("failed", "CONFLICT")
    assert recorded(yard, "retry") == [conflict, ("done", None), conflict, conflict]


def test_watching_without_a_terminal_tells_every_change_in_a_line(lone_yard: Yard, tmp_path: Path) -> None:
    job_id = lone_yard.defer("say", told=str(tmp_path / "told"))
    watch = lone_yard.start("jobs", "--watch")
    assert watch.line(str(job_id)).split()[1:4] == ["chores.say", "default", "waiting"]
    lone_yard.start("worker")
    lone_yard.until_state(job_id, "done")
    while " done " not in watch.line(str(job_id)):
        pass
    assert watch.end(signal.SIGINT) == 0
    watch.close()
    assert watch.errors == []


def test_watching_at_a_terminal_draws_a_table_and_ends_with_ctrl_c(lone_yard: Yard) -> None:
    job_id = lone_yard.defer("say", at_ms=4_102_444_800_000)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "rookery.entry", "jobs", "--watch"]
    env = {**lone_yard.full_environ(), "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    watch = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        shown = read_until(ours, b"1 waiting")
        assert f"{job_id}".encode() in shown
        assert b"chores.say" in shown
        assert b"2100-01-01 00:00:00" in shown
        lone_yard.ok("jobs", "cancel", str(job_id))
        read_until(ours, b"1 cancelled")
        watch.send_signal(signal.SIGINT)
        assert watch.wait(LIMIT_S) == 0
    finally:
        watch.kill()
        watch.wait(LIMIT_S)
        os.close(ours)


def read_until(terminal: int, wanted: bytes) -> bytes:
    """What appears on the terminal until `wanted` does, within a bound."""
    deadline, shown = time.monotonic() + LIMIT_S, b""
    while wanted not in shown:
        assert select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0], shown
        shown += os.read(terminal, 65536)
    return shown
