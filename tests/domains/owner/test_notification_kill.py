"""A worker that is killed while it delivers: another delivers, and the two can be told to be one."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from tests.domains.owner.outside import Outside
from tests.domains.owner.services import Telegram
from tests.domains.owner.telling import HERE, Telling
from tests.outgoing.loopback import web_server
from tests.platform_fixtures import Fleet

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
LIMIT_S = 60.0


@pytest.fixture
def telling(database_url: str, make_fleet: Callable[..., Fleet]) -> Telling:
    return Telling(make_fleet(database_url, extra={}, outgoing_allow=HERE))


@contextlib.asynccontextmanager
async def worker(telling: Telling) -> AsyncGenerator[None]:
    """A worker process that has begun; killed at the end of the block."""
    settings = telling.platform.settings
    command = [sys.executable, "-m", "tests.domains.owner.notify_worker", settings.database_url, settings.home]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"up\n"
        yield
    finally:
        process.kill()
        await process.wait()


async def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not reached():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_a_delivery_whose_worker_is_killed_is_made_by_another(telling: Telling) -> None:
    async with web_server() as web:
        web.silent = True
        await telling.configure(telling.agent, "set", "webhook", config={"url": web.url})
        telling.leave(telling.agent)
        async with worker(telling):
            await until(lambda: len(web.seen) == 1)
        (row,) = telling.rows("deliveries")
        assert (row.status, row.attempts) == ("pending", 1)
        web.silent = False
        async with worker(telling):
            await until(lambda: telling.rows("deliveries")[0].status == "sent")
        (row,) = telling.rows("deliveries")
        assert (row.attempts, row.error) == (2, None)
        assert {seen.headers["x-rookery-delivery"] for seen in web.seen} == {row.id}
        assert len(web.seen) == 2


async def test_answers_reach_whoever_listens_after_the_one_who_was_killed(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    outside = Outside(make_fleet(database_url, extra={}, outgoing_allow=HERE))
    async with web_server() as web:
        telegram = Telegram(web)
        await outside.configure(outside.owner, "set", "telegram", config=telegram.config)
        asked = [outside.ask(question=f"{number}?") for number in range(4)]
        async with worker(outside):
            await until(lambda: len(telegram.sent) == 4 and bool(telegram.offsets))
            for ask_id in asked[:2]:
                telegram.hears(text=f"/answer {ask_id} 1")
            await until(lambda: outside.row(asked[0]).status == "answered")
        for ask_id in asked[2:]:
            telegram.hears(text=f"/answer {ask_id} 2")
        async with worker(outside):
            await until(lambda: all(outside.row(ask_id).status == "answered" for ask_id in asked))
            await until(lambda: len({sent["text"] for sent in telegram.sent if "Noted" in sent["text"]}) == 2)
        assert [outside.row(ask_id).answer["option"] for ask_id in asked] == [1, 1, 2, 2]
        assert not [sent for sent in telegram.sent if "not taken" in sent["text"]]
