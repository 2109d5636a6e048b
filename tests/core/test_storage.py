"""`ctx.storage`: what a plugin keeps, seen from its handlers."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import ConfigurationError, Conflict, InvalidParams, RookeryError, ValidationFailed
from rookery.core.record import Record
from rookery.core.resource import resource
from rookery.core.tool import ToolInput
from rookery.db.storage import TableStorage
from rookery.db.tx import Tx
from rookery.identity.store import IdentityStore
from tests.core import storage_probes
from tests.core.context_probes import probe
from tests.core.storage_probes import Found, Keep, Look
from tests.platform_fixtures import Fleet


class Address(ToolInput):
    key: str


@probe("write")
def keep_there(ctx: Context, args: Keep) -> Found:
    ctx.storage.set(args.key, args.value)
    return Found()


@probe("read")
def look_there(ctx: Context, args: Look) -> Found:
    page = ctx.storage.list(cursor=args.cursor)
    return Found(value=ctx.storage.get(args.key), keys=page.keys)


@resource("kept://{key}", title="Kept", right="ping")
def kept(ctx: Context, args: Address) -> str:
    """What is kept, whatever the domain of the tool whose right it needs."""
    return str(ctx.storage.get(args.key))


@pytest.fixture
def fleet(database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    """Two plugins that keep something."""
    other = ModuleType(__name__)
    vars(other).update(keep_there=keep_there, look_there=look_there, kept=kept)
    return make_fleet(database_url, extra={"here": storage_probes, "there": other})


@pytest.fixture
def ada(fleet: Fleet) -> Actor:
    return fleet.actor()


@pytest.fixture
def stranger(fleet: Fleet) -> Actor:
    """The default agent of another tenant."""
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "zeta").set_up(), write=True)
    return fleet.actor(tenant="zeta")


async def test_another_tenant_sees_nothing(fleet: Fleet, ada: Actor, stranger: Actor) -> None:
    await fleet.call(ada, "keep", value="mine")
    assert (await fleet.call(stranger, "look")).model_dump() == {"value": None, "keys": [], "cursor": None}
    assert (await fleet.call(stranger, "forget")).value is False
    await fleet.call(stranger, "keep", value="theirs")
    assert (await fleet.call(ada, "look")).value == "mine"


async def test_another_plugin_sees_nothing(fleet: Fleet, ada: Actor) -> None:
    await fleet.call(ada, "keep", value="mine")
    found = await fleet.call(ada, "look_there")
    assert (found.value, found.keys) == (None, [])
    await fleet.call(ada, "keep_there", value="theirs")
    assert (await fleet.call(ada, "look")).value == "mine"


async def test_a_tool_called_inside_keeps_in_its_own_storage(fleet: Fleet, ada: Actor) -> None:
    assert (await fleet.call(ada, "keep_here_and_there")).value == "here"
    assert (await fleet.call(ada, "look_there")).value == "there"


async def test_a_resource_reads_the_storage_of_its_own_plugin(fleet: Fleet, ada: Actor) -> None:
    await fleet.call(ada, "keep", value="here")
    await fleet.call(ada, "keep_there", value="there")
    found = fleet.platform.registry.find_resource("kept://k")
    assert found is not None
    result = await fleet.platform.calls.run(ada, found[0].tool, found[1])
    assert [part.text for part in result.value.contents] == ["there"]


async def test_the_cursor_of_another_tenant_or_plugin_is_refused(fleet: Fleet, ada: Actor, stranger: Actor) -> None:
    for actor in (ada, stranger):
        for key in "ab":
            await fleet.call(actor, "keep", key=key)
            await fleet.call(actor, "keep_there", key=key)
    cursor = (await fleet.call(ada, "look", limit=1)).cursor
    assert (await fleet.call(ada, "look", cursor=cursor)).keys == ["b"]
    for actor, tool in ((stranger, "look"), (ada, "look_there")):
        with pytest.raises(InvalidParams, match="another list"):
            await fleet.call(actor, tool, cursor=cursor)


async def test_agents_of_one_tenant_share_what_a_plugin_keeps(fleet: Fleet, ada: Actor) -> None:
    await fleet.call(ada, "keep", value=1)
    await fleet.call(fleet.owner, "create_agent", name="bob")
    assert (await fleet.call(fleet.actor(agent="bob"), "look")).value == 1


async def test_what_a_failed_call_kept_is_gone(fleet: Fleet, ada: Actor) -> None:
    await fleet.call(ada, "keep", value="before")
    with pytest.raises(Conflict):
        await fleet.call(ada, "keep", value="after", fail=True)
    assert (await fleet.call(ada, "look")).value == "before"


async def test_what_a_call_kept_is_gone_if_it_cannot_be_recorded(fleet: Fleet, ada: Actor) -> None:
    def refuse(tx: Tx, records: Sequence[Record]) -> None:
        raise OSError("no space")

    seal = fleet.platform.database.seal
    fleet.platform.database.seal = refuse
    with pytest.raises(RookeryError):
        await fleet.call(ada, "keep", value="unseen")
    fleet.platform.database.seal = seal
    assert (await fleet.call(ada, "look")).value is None


async def test_a_handler_that_only_reads_cannot_keep(fleet: Fleet, ada: Actor) -> None:
    with pytest.raises(ConfigurationError, match="only reads") as caught:
        await fleet.call(ada, "keep_reading", value=1)
    assert "write" in (caught.value.hint or "")
    assert (await fleet.call(ada, "look")).keys == []


@pytest.mark.parametrize("name", ["look_inline", "look_outside_wrongly"])
async def test_a_handler_without_a_transaction_is_told_how_to_get_one(fleet: Fleet, ada: Actor, name: str) -> None:
    with pytest.raises(ConfigurationError, match=name) as caught:
        await fleet.call(ada, name)
    assert "ctx.storage_in(tx)" in (caught.value.hint or "")


async def test_an_external_handler_keeps_in_transactions_of_its_own(fleet: Fleet, ada: Actor, stranger: Actor) -> None:
    assert (await fleet.call(ada, "keep_outside", value=1)).value == 1
    with pytest.raises(Conflict):
        await fleet.call(ada, "keep_outside", value=2, fail=True)
    assert (await fleet.call(ada, "look")).value == 2
    assert (await fleet.call(stranger, "look")).value is None


async def test_of_many_calls_that_count_none_is_lost(fleet: Fleet, ada: Actor) -> None:
    await asyncio.gather(*(fleet.call(ada, "count") for _ in range(30)))
    assert (await fleet.call(ada, "look")).value == 30


async def test_what_is_over_is_not_found(fleet: Fleet, ada: Actor) -> None:
    now = [1_000_000]
    clocked: Any = partial(TableStorage, clock=lambda: now[0])
    fleet.platform.calls.open_storage = clocked
    await fleet.call(ada, "keep", value=1, ttl_s=60)
    await fleet.call(ada, "keep", key="gone", value=1, ttl_s=0)
    assert (await fleet.call(ada, "look")).keys == ["k"]
    now[0] += 60_000
    assert (await fleet.call(ada, "look")).keys == []


@pytest.mark.parametrize(
    "wrong", [{"key": "../other"}, {"key": ""}, {"ttl_s": -1}, {"value": "x" * (1 << 20)}], ids=str
)
async def test_what_breaks_a_limit_is_an_error_that_the_caller_can_read(
    fleet: Fleet, ada: Actor, wrong: dict[str, Any]
) -> None:
    with pytest.raises(ValidationFailed) as caught:
        await fleet.call(ada, "keep", **wrong)
    assert caught.value.hint
