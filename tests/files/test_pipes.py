"""Pipes on the loop that servers run on: what else is open in the process stays open, and no end is forgotten."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from rookery.files.pipes import owned_end, read_pipe

ROUNDS = 300
One = Callable[[], Awaitable[bytes]]


class Opener(threading.Thread):
    """Opens files all the time, as a database does, and notes those that somebody else has closed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.lost, self.over = path, 0, threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            file = os.open(self.path, os.O_RDONLY)
            try:
                os.read(file, 1)
                os.close(file)
            except OSError:
                self.lost += 1


@pytest.fixture
def opener(tmp_path: Path) -> Iterator[Opener]:
    path = tmp_path / "database"
    path.write_text("x")
    opener = Opener(path)
    opener.start()
    yield opener
    opener.over.set()
    opener.join()


async def read_one() -> bytes:
    end, other = os.pipe()
    os.write(other, b"said")
    os.close(other)
    async with read_pipe(end) as stream:
        return await stream.read()


async def write_one() -> bytes:
    end, other = os.pipe()
    way, _ = await asyncio.get_running_loop().connect_write_pipe(asyncio.BaseProtocol, owned_end(other, "wb"))
    way.write(b"said")
    way.close()
    said = await asyncio.to_thread(os.read, end, 10)
    os.close(end)
    return said


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("one", [read_one, write_one])
def test_the_files_of_other_threads_stay_open(opener: Opener, one: One) -> None:
    async def main() -> None:
        for _ in range(ROUNDS):
            assert await one() == b"said"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    opener.over.set()
    opener.join()
    assert opener.lost == 0


@pytest.mark.parametrize("loop", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
@pytest.mark.parametrize("one", [read_one, write_one])
def test_no_end_stays_open(one: One, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> None:
        await one()
        before = open_files()
        for _ in range(20):
            await one()
        # A transport lets go of its file in the turns of the loop that follow.
        for _ in range(3):
            await asyncio.sleep(0)
        assert open_files() <= before

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())
