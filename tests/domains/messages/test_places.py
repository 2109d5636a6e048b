"""Chains of messages on a worker with few places, and receivers that never answer."""

import asyncio
import json
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from rookery.core.errors import ServiceUnavailable
from rookery.domains.messages.tables import breakers
from rookery.jobs.tables import jobs
from tests.domains.messages.post_office import NAMES, PostOffice
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet

SOON_S = 30.0


@pytest.mark.parametrize("places", [1, 2])
async def test_chains_that_fill_the_worker_are_answered_all_the_same(office: PostOffice, places: int) -> None:
    """From a person to the third of a chain: as many chains at once as there are places, and more."""
    await office.fleet.call(office.fleet.owner, "create_agent", name="dora")
    senders = [office.fleet.owner, office.agent("ada"), office.agent("dora")]
    end = json.dumps({"to_agent": "carol", "message": "!say done"})

    async def chain(number: int) -> str:
        # The beginning differs, or the messages of all chains would be the same.
        text = f"!say {number}\n!call send_message {end.replace('done', f'done {number}')}"
        return (await office.post("bob", text, senders[number])).reply

    async with running_worker(office.platform, concurrency=places):
        replies = await asyncio.wait_for(asyncio.gather(*(chain(number) for number in range(3))), SOON_S)
    assert [f"done {number}" in reply for number, reply in enumerate(replies)] == [True] * 3


async def test_each_step_of_a_chain_is_a_kind_of_its_own(office: PostOffice) -> None:
    inner = json.dumps({"to_agent": "carol", "message": "!say hi"})
    outer = json.dumps({"to_agent": "bob", "message": f"!call send_message {inner}"})
    await office.send("ada", f"!call send_message {outer}", sender=office.fleet.owner)
    mine = sa.select(jobs.c.kind).where(jobs.c.kind.like("messages.%")).order_by(jobs.c.id)
    kinds = [row.kind for row in office.select(mine)]
    assert kinds == ["messages.deliver", "messages.deliver_second", "messages.deliver_third"]
    assert [asked[0].agent_name for asked in office.runtime.asked] == list(NAMES)


async def test_a_session_that_never_ends_fails_its_message_and_counts_for_the_breaker(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    office = PostOffice(make_fleet(database_url, extra={}, agent_timeout_ms=200))
    await office.open()
    with pytest.raises(ServiceUnavailable, match=r"DELIVERY_FAILED: .*took too long"):
        await asyncio.wait_for(office.send("bob", "!wait 3000"), SOON_S)
    await settled(office.platform)
    assert [(row.target, row.failures) for row in office.select(sa.select(breakers))] == [(office.id_of("bob"), 1)]
    assert office.rows[0].status == "failed"
