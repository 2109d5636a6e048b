"""Changes of resources and lists that handlers publish: who hears of them, in both eras, and who does not."""

from typing import Any

import pytest

from tests.server.conftest import Place
from tests.server.feature_place import Owner, connect, listed
from tests.server.feature_place import feature_plugin as feature_plugin
from tests.server.feature_place import home as home
from tests.server.feature_place import owner as owner
from tests.server.processes import Client

OLD, NEW = "2025-11-25", "2026-07-28"
UPDATED = "notifications/resources/updated"
QUIET_S = 1.6
WANTED = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}


def publish(place: Place, event: str, uri: str | None = None) -> Client:
    """Let a session of its own publish, so that it is not the one that hears."""
    client = connect(place, OLD)
    assert client.call("publish_event", event=event, **({"uri": uri} if uri else {})) == {"said": event}
    return client


def open_stream(client: Client, **wanted: Any) -> tuple[int, dict[str, Any]]:
    request = client.ask("subscriptions/listen", notifications=wanted)
    return request, client.until("notifications/subscriptions/acknowledged")["params"]["notifications"]


def test_a_follower_is_told_of_a_change_and_nobody_else(home: Place) -> None:
    follower, elsewhere, bystander = (connect(home, OLD) for _ in range(3))
    for client, uri in ((follower, "echo://a"), (elsewhere, "echo://b")):
        assert client.request("resources/subscribe", uri=uri)["result"] == {}
    publish(home, "ResourceUpdated", "echo://a")
    told = follower.next()
    assert (told["method"], told["params"]["uri"]) == (UPDATED, "echo://a")
    assert elsewhere.silent(QUIET_S)
    assert bystander.silent(0)
    assert follower.silent(0)


def test_who_no_longer_follows_is_not_told(home: Place) -> None:
    client = connect(home, OLD)
    client.request("resources/subscribe", uri="echo://a")
    client.request("resources/subscribe", uri="echo://b")
    assert client.request("resources/unsubscribe", uri="echo://a")["result"] == {}
    assert client.request("resources/unsubscribe", uri="echo://never")["result"] == {}
    publish(home, "ResourceUpdated", "echo://a")
    publish(home, "ResourceUpdated", "echo://b")
    assert client.next()["params"]["uri"] == "echo://b"


def test_a_stream_is_told_of_the_resources_it_named(home: Place) -> None:
    client, other = connect(home, NEW), connect(home, NEW)
    stream, honoured = open_stream(client, resourceSubscriptions=["echo://a", "judge://report", "nowhere://x"])
    assert honoured == {"resourceSubscriptions": ["echo://a"]}, "what may not be read is not promised"
    open_stream(other, resourceSubscriptions=["echo://b"])
    publish(home, "ResourceUpdated", "echo://a")
    told = client.next()
    assert (told["method"], told["params"]["uri"]) == (UPDATED, "echo://a")
    assert told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == stream
    assert other.silent(QUIET_S)


async def test_who_may_no_longer_read_is_not_told(home: Place, owner: Owner) -> None:
    ada = await owner.new_agent("ping")
    grant = await owner.call("grant_tool", agent=ada, tool="judge_things")
    old, new = connect(home, OLD, "--agent", ada), connect(home, NEW, "--agent", ada)
    assert "result" in old.request("resources/subscribe", uri="judge://report")
    assert open_stream(new, resourceSubscriptions=["judge://report"])[1] == {
        "resourceSubscriptions": ["judge://report"]
    }
    publish(home, "ResourceUpdated", "judge://report")
    assert old.next()["method"] == new.next()["method"] == UPDATED
    await owner.call("revoke_grant", id=grant.id)
    # On PostgreSQL the server hears of it a moment later.
    assert any("error" in old.request("resources/read", uri="judge://report") for _ in range(500))
    publish(home, "ResourceUpdated", "judge://report")
    assert old.silent(QUIET_S)
    assert new.silent(0)


@pytest.mark.parametrize("listing", WANTED)
def test_a_published_change_of_a_list_reaches_those_who_have_it(home: Place, listing: str) -> None:
    old, unaware = connect(home, OLD), connect(home, OLD)
    new, other = connect(home, NEW), connect(home, NEW)
    listed(old, listing)
    open_stream(new, **{WANTED[listing]: True})
    open_stream(other, **{wanted: True for name, wanted in WANTED.items() if name != listing})
    publish(home, f"{listing.capitalize()}ListChanged")
    method = f"notifications/{listing}/list_changed"
    assert old.next()["method"] == new.next()["method"] == method
    assert unaware.silent(QUIET_S)
    assert other.silent(0)


def test_a_change_is_told_only_once_it_is_there(home: Place) -> None:
    client = connect(home, OLD)
    client.request("resources/subscribe", uri="topic://heron")
    writer = connect(home, OLD)
    assert writer.call("add_topic", topic="heron") == {"said": "heron"}
    assert client.until(UPDATED)["params"]["uri"] == "topic://heron"
    assert "result" in client.request("resources/read", uri="topic://heron")
    assert "error" in writer.call("add_topic", topic="heron"), "it is there already, and nothing was changed"
    assert client.silent(QUIET_S)


def test_the_same_change_told_quickly_is_told_once(home: Place) -> None:
    client = connect(home, OLD)
    client.request("resources/subscribe", uri="echo://often")
    publisher = connect(home, OLD)
    asked = [publisher.ask_tool("publish_event", event="ResourceUpdated", uri="echo://often") for _ in range(100)]
    publisher.answers_to(asked)
    assert client.next()["method"] == UPDATED
    assert client.call("ping")["status"] == "pong"
    assert len(client.seen) < 100


def test_a_stream_that_has_ended_is_told_nothing(home: Place) -> None:
    client = connect(home, NEW)
    stream, _ = open_stream(client, resourceSubscriptions=["echo://a"])
    client.notify("notifications/cancelled", requestId=stream)
    assert client.call("ping")["status"] == "pong"
    publish(home, "ResourceUpdated", "echo://a")
    assert client.silent(QUIET_S)


def test_a_session_can_follow_only_so_many(home: Place) -> None:
    client = connect(home, OLD)
    asked = [client.ask("resources/subscribe", uri=f"echo://{number}") for number in range(1001)]
    answers = client.answers_to(asked)
    assert sum("result" in answer for answer in answers) == 1000
    (refused,) = [answer["error"] for answer in answers if "error" in answer]
    assert "1000" in refused["message"]
    assert client.request("resources/unsubscribe", uri="echo://1")["result"] == {}
    assert client.request("resources/subscribe", uri="echo://more")["result"] == {}


def test_publishing_is_for_handlers_that_change_something(home: Place) -> None:
    assert connect(home, OLD).call("publish_event", event="Unheard")["error"]["code"] == "INVALID_PARAMS"
