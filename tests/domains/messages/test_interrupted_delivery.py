"""A worker that is killed or stopped in the middle of a delivery: the message is answered once, by another."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
import sqlalchemy as sa

from rookery.db.file_lock import FileLock
from rookery.jobs.tables import jobs
from rookery.lifecycle.sessions import Runtime
from tests.domains.messages.post_office import LIMIT_S, PostOffice, until
from tests.warm import Started, start

ROOT = Path(__file__).parents[3]
BUSY = sa.text(
    "SELECT count(*) AS busy FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'"
)


@asynccontextmanager
async def worker(office: PostOffice, folder: Path) -> AsyncGenerator[Started]:
    """A worker process that has begun; killed at the end of the block."""
    settings = office.platform.settings
    module = "tests.domains.messages.worker_process"
    command = [sys.executable, "-m", module, settings.database_url, settings.home, str(folder)]
    process = start(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert await asyncio.to_thread(process.stdout.readline) == "up\n"
        yield process
    finally:
        process.kill()
        process.wait(LIMIT_S)
        process.stdout.close()


def begun(folder: Path) -> list[str]:
    """The processes that have started a session, one entry for each."""
    witness = folder / "witness"
    return [line.split()[0] for line in witness.read_text("utf-8").splitlines()] if witness.exists() else []


async def pause(office: PostOffice, process: Started) -> None:
    """Stop a process, but not while it writes: nobody else could until it goes on."""

    def paused() -> bool:
        process.send_signal(signal.SIGSTOP)
        if not writing(office):
            return True
        process.send_signal(signal.SIGCONT)
        return False

    await until(paused, "the process is stopped while it does not write")


def writing(office: PostOffice) -> bool:
    url = office.platform.settings.database_url
    if not url.startswith("sqlite"):
        return bool(office.select(BUSY)[0].busy)
    lock = FileLock(sa.make_url(url).database or "")
    try:
        return not lock.try_acquire()
    finally:
        lock.close()


def jobs_of(office: PostOffice) -> list[tuple[str, int]]:
    return [(row.state, row.losses) for row in office.select(sa.select(jobs).where(jobs.c.kind.like("messages.%")))]


@pytest.fixture
def remote(office: PostOffice) -> PostOffice:
    """Sessions are somebody else's business: nobody in this process works."""
    office.use(cast(Runtime, object()))
    return office


async def test_a_message_whose_worker_is_killed_is_answered_once_by_another(remote: PostOffice, tmp_path: Path) -> None:
    asking = asyncio.create_task(remote.post("bob", "tea?"))
    async with worker(remote, tmp_path) as first:
        await until(lambda: begun(tmp_path), "the session began")
        first.kill()
    (tmp_path / "gate").touch()
    async with worker(remote, tmp_path) as second:
        sent = await asyncio.wait_for(asking, LIMIT_S)
        assert sent.reply == f"said by {second.pid}"
        await until(lambda: jobs_of(remote) == [("done", 1)], "the job is done")
    (row,) = remote.rows
    assert (row.status, row.response) == ("completed", sent.reply)
    assert begun(tmp_path) == [str(first.pid), str(second.pid)]
    assert [(each["reply"], each["told"]) for each in await remote.inbox("ada")] == [(sent.reply, True)]
    assert await remote.inbox("bob") == []


async def test_a_worker_that_wakes_up_too_late_changes_nothing(remote: PostOffice, tmp_path: Path) -> None:
    asking = asyncio.create_task(remote.post("bob", "tea?"))
    async with worker(remote, tmp_path) as first:
        await until(lambda: begun(tmp_path), "the session began")
        await pause(remote, first)
        (tmp_path / "gate").touch()
        async with worker(remote, tmp_path) as second:
            sent = await asyncio.wait_for(asking, LIMIT_S)
            assert sent.reply == f"said by {second.pid}"
            first.send_signal(signal.SIGCONT)
            again = await asyncio.wait_for(remote.post("carol", "milk?"), LIMIT_S)
            assert again.status == "completed"
    assert remote.rows[0].response == f"said by {second.pid}"
    assert [state for state, _ in jobs_of(remote)] == ["done"] * 2
    assert all(each["told"] for each in await remote.inbox("ada"))


@pytest.mark.slow
async def test_many_messages_survive_workers_that_are_killed_again_and_again(
    remote: PostOffice, tmp_path: Path
) -> None:
    senders = ("ada", "bob", "carol")
    pairs = [(sender, receiver) for sender in senders for receiver in senders if sender != receiver]
    asking = [
        asyncio.create_task(remote.post(receiver, f"question {number}", sender=remote.agent(sender)))
        for number in range(5)
        for sender, receiver in pairs
    ]
    for kill in range(1, 5):
        async with worker(remote, tmp_path):
            await until(lambda kill=kill: len(begun(tmp_path)) >= 4 * kill, "sessions began")
    (tmp_path / "gate").touch()
    async with worker(remote, tmp_path):
        sent = await asyncio.wait_for(asyncio.gather(*asking), LIMIT_S)
    assert {each.status for each in sent} == {"completed"}
    assert len({each.message_id for each in sent}) == len(remote.rows) == 30
    assert [state for state, _ in jobs_of(remote)] == ["done"] * 30
    for name in senders:
        assert all(each["told"] for each in await remote.inbox(name, limit=50))
