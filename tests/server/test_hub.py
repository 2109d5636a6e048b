"""The hub by itself: whose changes it passes on, and how long it looks after a session that many requests share."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
import pytest

from rookery.core.events import Event
from rookery.identity.resolve import Binding
from rookery.identity.store import IdentityStore
from rookery.server.hub import Hub
from rookery.server.session import Session, open_session
from tests.platform_fixtures import Fleet
from tests.server import feature_trials

SOON_S = 10
EVERYTHING = types.SubscriptionFilter(
    tools_list_changed=True,
    prompts_list_changed=True,
    resources_list_changed=True,
    resource_subscriptions=["echo://a"],
)


@dataclass
class Channel:
    """Stands in for the SDK's session of one request or connection, and keeps what is sent through it."""

    sent: list[str] = field(default_factory=list[str])
    blocked: asyncio.Event | None = None

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        if self.blocked is not None:
            await self.blocked.wait()
        params = notification.params
        self.sent.append(f"{notification.method} {getattr(params, 'uri', '')}".strip())

    async def send_tool_list_changed(self) -> None:
        await self.send_notification(types.ToolListChangedNotification())

    async def send_prompt_list_changed(self) -> None:
        await self.send_notification(types.PromptListChangedNotification())

    async def send_resource_list_changed(self) -> None:
        await self.send_notification(types.ResourceListChangedNotification())

    async def send_resource_updated(self, uri: str) -> None:
        params = types.ResourceUpdatedNotificationParams(uri=uri)
        await self.send_notification(types.ResourceUpdatedNotification(params=params))


@dataclass
class Request:
    session: Channel
    request_id: int = 1


@pytest.fixture
def features(database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    fleet = make_fleet(database_url, extra={"features": feature_trials})
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    return fleet


@pytest.fixture
async def hub(features: Fleet) -> AsyncIterator[Hub]:
    made = Hub(features.platform)
    yield made
    await made.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while not holds():
            await asyncio.sleep(0.01)


async def settle(hub: Hub) -> None:
    """Until the hub has looked at everything that was published before."""
    mark = Channel()
    session = await connected(hub, mark, subscribed="echo://mark")
    publish(hub, "ResourceUpdated", "echo://mark")
    await until(lambda: bool(mark.sent))
    hub.leave(session)


def publish(hub: Hub, name: str, subject: str | None = None, tenant: str = "default") -> None:
    platform = hub._platform  # pyright: ignore[reportPrivateUsage]
    platform.events.publish(Event(name=name, tenant=tenant, subject=subject))


async def connected(hub: Hub, channel: Channel, subscribed: str | None = None, **binding: Any) -> Session:
    """A session with a lasting connection that has listed everything."""
    platform = hub._platform  # pyright: ignore[reportPrivateUsage]
    session = await open_session(platform, Binding(**binding))
    session.client = channel  # pyright: ignore[reportAttributeAccessIssue]
    session.told = {listing: await session.names(listing) for listing in ("tools", "resources", "prompts")}
    session.subscribed |= {subscribed} if subscribed else set()
    hub.join(session)
    return session


@contextlib.asynccontextmanager
async def listening(session: Session, wanted: types.SubscriptionFilter = EVERYTHING) -> AsyncIterator[Channel]:
    """One open stream of the session, acknowledged."""
    channel = Channel()
    params = types.SubscriptionsListenRequestParams(notifications=wanted)
    task = asyncio.create_task(session.listen(Request(channel), params))  # pyright: ignore[reportArgumentType]
    await until(lambda: bool(channel.sent) or task.done())
    assert channel.sent.pop() == "notifications/subscriptions/acknowledged"
    yield channel
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("name", ["ToolsListChanged", "PromptsListChanged", "ResourcesListChanged", "ResourceUpdated"])
async def test_a_change_stays_in_its_tenant(hub: Hub, features: Fleet, name: str) -> None:
    ours, theirs = Channel(), Channel()
    mine = await connected(hub, ours, "echo://a")
    foreign = await connected(hub, theirs, "echo://a", tenant="other")
    async with listening(mine) as our_stream, listening(foreign) as their_stream:
        publish(hub, name, "echo://a", tenant="other")
        await until(lambda: bool(theirs.sent) and bool(their_stream.sent))
        await settle(hub)
        assert (ours.sent, our_stream.sent) == ([], [])
        assert len(theirs.sent) == len(their_stream.sent) == 1


async def test_an_event_of_another_kind_is_told_to_nobody(hub: Hub) -> None:
    channel = Channel()
    await connected(hub, channel, "echo://a")
    publish(hub, "ThingMade", "echo://a")
    publish(hub, "ResourceUpdated")
    publish(hub, "ResourceUpdated", "nowhere://a")
    await settle(hub)
    assert channel.sent == []


async def test_a_shared_session_is_looked_after_while_a_stream_is_open(hub: Hub, features: Fleet) -> None:
    session = await open_session(features.platform, Binding(), hub)
    assert session not in hub.sessions
    async with listening(session) as first:
        assert session in hub.sessions
        async with listening(session) as second:
            publish(hub, "ToolsListChanged")
            await until(lambda: bool(first.sent) and bool(second.sent))
        assert session in hub.sessions
        publish(hub, "PromptsListChanged")
        await until(lambda: len(first.sent) == 2)
        assert len(second.sent) == 1
    assert session not in hub.sessions
    assert session.streams == 0


async def test_another_request_that_lists_first_takes_the_news_from_no_stream(hub: Hub, features: Fleet) -> None:
    await features.call(features.owner, "create_agent", name="ada", permissions=["ping"])
    session = await open_session(features.platform, Binding(agent="ada"), hub)
    async with listening(session) as stream:
        await features.call(features.owner, "grant_tool", agent="ada", tool="echo_message")
        session.told["tools"] = await session.names("tools")
        await until(lambda: len(stream.sent) == 3)
    assert set(stream.sent) == {f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")}


async def test_a_client_that_does_not_read_is_told_each_change_once_when_it_does(hub: Hub) -> None:
    slow, quick = Channel(blocked=asyncio.Event()), Channel()
    assert slow.blocked is not None
    await connected(hub, slow, "echo://a")
    await connected(hub, quick, "echo://a")
    for number in range(20):
        publish(hub, "ResourceUpdated", "echo://a")
        publish(hub, "ToolsListChanged")
        await until(lambda number=number: len(quick.sent) == 2 * number + 2)
    slow.blocked.set()
    await until(lambda: len(slow.sent) >= 2)
    await settle(hub)
    assert len(slow.sent) <= 3


async def test_streams_end_with_the_identity_that_opened_them(hub: Hub, features: Fleet) -> None:
    made = await features.call(features.owner, "create_token", name="t", agent="default", scopes=["*"])
    session = await open_session(features.platform, Binding(token=made.secret), hub)
    async with listening(session) as stream:
        await features.call(features.owner, "revoke_token", id=made.id)
        await until(lambda: session.streams == 0)
        assert stream.sent == []
    assert session not in hub.sessions


async def test_a_session_keeps_its_principal(hub: Hub, features: Fleet) -> None:
    first, again = [await open_session(features.platform, Binding()) for _ in range(2)]
    assert first.principal == again.principal
    others = [Binding(tenant="other"), Binding(as_owner=True)]
    made = await features.call(features.owner, "create_token", name="t", agent="default", scopes=["*"])
    others.append(Binding(token=made.secret))
    principals = {(await open_session(features.platform, binding)).principal for binding in others}
    assert len(principals | {first.principal}) == 4
