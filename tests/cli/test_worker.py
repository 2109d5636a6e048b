"""`rookery worker`, and the worker inside `rookery up`, in processes of their own."""

import signal
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.cli.yard import Running, Yard

BROKEN = """
import sys
from rookery.jobs.worker import Worker

async def fail(self):
    raise RuntimeError("a worker that is broken")

Worker._turn = fail
from rookery.entry import main
sys.argv[:] = ["rookery", *sys.argv[1:]]
main()
"""


def begin(yard: Yard, *words: str) -> Running:
    """A worker that has said that it works."""
    running = yard.start("worker", *words)
    running.line("Rookery works")
    return running


def test_no_queue_and_no_room_are_refused(terminal: Terminal) -> None:
    assert "never do anything" in terminal.fails("worker", "--queues", "none", code=2)
    assert "a name is empty" in terminal.fails("worker", "--queues", "slow,", code=2)
    assert "--concurrency" in terminal.fails("worker", "--concurrency", "0", code=2)
    assert not terminal.home.exists()


def test_a_worker_says_what_it_does_and_where_but_no_address(yard: Yard) -> None:
    running = yard.start("worker", "--queues", "slow,default", "--concurrency", "3")
    said = running.line()
    kind = "SQLite" if yard.database_url.startswith("sqlite") else "PostgreSQL"
    assert said.startswith(f"Rookery works for {kind}; queues: slow, default; 3 jobs at a time; kinds: ")
    assert ", chores.fail, " in said
    assert yard.database_url.partition("//")[2] not in said
    assert running.end(signal.SIGINT) == 0
    assert running.line() == "Stopped."
    assert (yard.home / "logs" / "worker.log").exists()


def test_a_worker_lets_what_runs_finish_and_takes_nothing_more(yard: Yard, tmp_path: Path) -> None:
    told, gate = tmp_path / "told", tmp_path / "gate"
    first = yard.defer("wait", told=str(told), gate=str(gate))
    running = begin(yard, "--concurrency", "1")
    assert yard.pid_in(told) == running.process.pid
    later = yard.defer("wait", told=str(told), gate=str(gate))
    running.process.terminate()
    gate.touch()
    assert running.end() == 0
    assert yard.state(first).state == "done"
    assert (yard.state(later).state, yard.state(later).attempt) == ("waiting", 0)


def test_a_worker_that_is_told_twice_gives_its_job_back_at_once(yard: Yard, tmp_path: Path) -> None:
    told, gate = tmp_path / "told", tmp_path / "gate"
    job_id = yard.defer("wait", told=str(told), gate=str(gate))
    running = begin(yard)
    yard.pid_in(told)
    assert running.end(signal.SIGTERM, signal.SIGINT) == 0
    row = yard.state(job_id)
    assert (row.state, row.worker, row.failures, row.losses) == ("waiting", None, 0, 0)
    gate.touch()
    heir = begin(yard)
    assert yard.until_state(job_id, "done").attempt == 2
    assert yard.pid_in(told) == heir.process.pid


def test_a_worker_of_an_unknown_queue_just_waits(yard: Yard, tmp_path: Path) -> None:
    told = tmp_path / "told"
    job_id = yard.defer("say", told=str(told))
    idle = begin(yard, "--queues", "nobody_uses_this")
    busy = begin(yard, "--queues", "default")
    yard.until_state(job_id, "done")
    assert yard.pid_in(told) == busy.process.pid
    assert idle.end(signal.SIGTERM) == 0
    assert yard.logged(idle) == []


def test_a_server_leaves_the_work_to_a_worker_of_the_same_home(yard: Yard, tmp_path: Path) -> None:
    told = tmp_path / "told"
    server = yard.start("up", "--role", "server")
    server.line("Rookery listens")
    job_id = yard.defer("say", told=str(told))
    worker = yard.start("worker")
    yard.until_state(job_id, "done")
    assert yard.pid_in(told) == worker.process.pid
    assert server.end(signal.SIGTERM) == 0


def test_a_server_does_the_work_itself_unless_it_is_told_otherwise(yard: Yard, tmp_path: Path) -> None:
    told, waiting, gate = tmp_path / "told", tmp_path / "waiting", tmp_path / "gate"
    server = yard.start("up")
    server.line("Rookery listens")
    yard.until_state(yard.defer("say", told=str(told)), "done")
    assert yard.pid_in(told) == server.process.pid
    unfinished = yard.defer("wait", told=str(waiting), gate=str(gate))
    yard.pid_in(waiting)
    assert server.end(signal.SIGTERM) == 0
    assert yard.state(unfinished).state == "waiting"


@pytest.mark.parametrize("words", [("up",), ("worker",)])
def test_a_worker_that_fails_ends_its_process_with_an_error(lone_yard: Yard, words: tuple[str, ...]) -> None:
    running = lone_yard.start_python("-c", BROKEN, *words)
    assert running.end() == 1
    running.close()
    assert "the worker ended with an error" in lone_yard.logged(running)
    assert "rookery: the worker ended with an error, and the process with it\n" in running.errors
