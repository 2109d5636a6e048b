"""What the owner was told is forgotten when it is old, and nothing that is still needed."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.domains.owner import notify_forgetting
from rookery.domains.owner.notify_tables import notification_deliveries, owner_notifications
from rookery.domains.owner.outside_tables import ask_links, notification_senders
from rookery.jobs.store import Jobs
from rookery.jobs.tables import jobs
from tests.domains.owner.outside import Outside
from tests.domains.owner.telling import HERE
from tests.outgoing.loopback import web_server
from tests.platform_fixtures import Fleet

DAY_MS = 86_400_000
AGES = (
    owner_notifications.c.created_ms,
    notification_deliveries.c.created_ms,
    ask_links.c.created_ms,
    notification_senders.c.told_ms,
)


@pytest.fixture
def outside(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> Outside:
    return Outside(make_fleet(prepared_database_url, extra={}, outgoing_allow=HERE, notification_keep_days=5))


def grow_older(outside: Outside, days: int) -> None:
    for age in AGES:
        outside.change(sa.update(age.table).values({age: age - days * DAY_MS}))


def counts(outside: Outside) -> list[int]:
    def counted(tx: Any) -> list[int]:
        return [tx.scalar(sa.select(sa.func.count()).select_from(age.table)) for age in AGES]

    return outside.platform.database.direct(counted)


def tomorrow(outside: Outside) -> int:
    """How many jobs will look again."""
    waiting = sa.select(sa.func.count()).where(jobs.c.kind == notify_forgetting.FORGET, jobs.c.state == "waiting")
    return outside.platform.database.direct(lambda tx: tx.scalar(waiting))


async def forget(outside: Outside) -> None:
    """Let the day pass on which a worker looks, and leave no job behind that looks at the next."""
    outside.change(sa.delete(jobs).where(jobs.c.kind == notify_forgetting.FORGET))
    outside.platform.database.direct(lambda tx: Jobs(tx, "default").defer(notify_forgetting.FORGET, {}), write=True)
    await outside.work()


async def test_what_is_old_is_forgotten_and_what_is_awaited_is_not(
    outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify_forgetting, "BATCH", 2)
    async with web_server() as web:
        ask_id, token = await outside.linked(web)
        for number in range(5):
            await outside.tell(outside.agent, f"{number}")
        assert counts(outside) == [5, 6, 1, 1]
        grow_older(outside, 4)
        await outside.try_again()
        assert counts(outside) == [5, 6, 1, 1]
        grow_older(outside, 2)
        await forget(outside)
        assert counts(outside) == [0, 1, 1, 0]
        assert tomorrow(outside) == 1
        assert (await outside.get(ask_id, token)).status == 200
        await outside.post(ask_id, token, choice="1")
        await forget(outside)
        assert counts(outside) == [0, 0, 0, 0]
        assert (await outside.get(ask_id, token)).status == 404
        assert tomorrow(outside) == 0


async def test_the_limit_of_another_tenant_is_not_touched(outside: Outside) -> None:
    await outside.fleet.call(outside.agent, "notify_owner", message="x")
    await outside.fleet.call(outside.stranger, "notify_owner", message="x")
    grow_older(outside, 6)
    outside.platform.database.direct(lambda tx: notify_forgetting.forget_some(tx, "default", 5 * DAY_MS), write=True)
    assert [row.tenant for row in outside.rows("told")] == ["other"]
    assert counts(outside)[3] == 1
