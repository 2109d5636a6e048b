"""Who hears of changed rights: exactly those whom they concern, whoever changed them and however."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rookery.app import Platform, make_platform
from rookery.core.ids import new_id
from rookery.identity.resolve import Binding
from rookery.lifecycle.pausing import pause_agents, resume_agents
from rookery.settings import Settings
from tests.server import trials
from tests.server.conftest import Place
from tests.server.processes import Client

CHANGED = "notifications/tools/list_changed"
# Changes of other processes are seen within a second; after this nothing more is to come.
QUIET_S = 1.6
PATIENCE_S = 5.0


class Owner:
    """The owner in another process than the server: here, in the test's."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.actor = platform.database.direct(lambda tx: platform.resolver.resolve(tx, Binding(as_owner=True)).actor)

    async def call(self, name: str, /, **arguments: Any) -> Any:
        return (await self.platform.calls.call(self.actor, name, arguments)).value

    async def new_agent(self) -> str:
        """The name of an agent that has `ping` and nothing else."""
        name = new_id("agent")
        await self.call("create_agent", name=name, permissions=["ping"])
        return name


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def living(request: pytest.FixtureRequest, plugin: Path) -> Iterator[Place]:
    """A home with a server, once on each database."""
    place = Place(plugin)
    try:
        if request.param == "postgres":
            databases = request.getfixturevalue("postgres_dsn")
            place.env["ROOKERY_DATABASE"] = databases()
        place.server()
        yield place
    finally:
        place.close()


@pytest.fixture
def owner(living: Place) -> Iterator[Owner]:
    settings = Settings(home=str(living.home), database=living.env.get("ROOKERY_DATABASE", ""), plugins=False)
    platform = make_platform(settings, extra={"trials": trials})
    yield Owner(platform)
    platform.close()


@pytest.fixture
async def ada(owner: Owner) -> str:
    return await owner.new_agent()


@pytest.fixture
async def bob(owner: Owner) -> str:
    return await owner.new_agent()


def listening(client: Client) -> int:
    """Open a stream of changes as the newest revision does."""
    request = client.ask("subscriptions/listen", notifications={"toolsListChanged": True})
    client.until("notifications/subscriptions/acknowledged")
    return request


def until_listed(client: Client, *names: str) -> None:
    """Until the session has these tools: PostgreSQL tells other processes of a change a moment after its commit."""
    deadline = time.monotonic() + PATIENCE_S
    while client.tool_names() != set(names):
        assert time.monotonic() < deadline


async def told_alone(living: Place, owner: Owner, ada: str, bob: str, *, direct: bool) -> None:
    old, other = (living.session("--agent", name, direct=direct) for name in (ada, bob))
    new, another = (living.client("--agent", name, direct=direct).be_modern() for name in (ada, bob))
    for client in (old, other, new, another):
        assert client.tool_names() == {"ping"}
    stream, _ = listening(new), listening(another)
    grant = await owner.call("grant_tool", agent=ada, tool="save_note")
    assert old.next()["method"] == CHANGED
    changed = new.next()
    assert changed["method"] == CHANGED, "the newest revision hears through its stream"
    assert changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == stream
    for client in (old, new):
        assert client.tool_names() == {"ping", "save_note"}
        assert client.call("save_note", text="granted") == {"done": "granted"}
    await owner.call("revoke_grant", id=grant.id)
    assert old.next()["method"] == new.next()["method"] == CHANGED
    assert old.tool_names() == new.tool_names() == {"ping"}
    assert other.silent(QUIET_S)
    assert another.silent(0)


async def test_a_change_is_told_to_its_agent_and_to_nobody_else(
    living: Place, owner: Owner, ada: str, bob: str
) -> None:
    await told_alone(living, owner, ada, bob, direct=False)


@pytest.mark.slow
async def test_the_same_goes_for_sessions_that_serve_themselves(
    living: Place, owner: Owner, ada: str, bob: str
) -> None:
    await told_alone(living, owner, ada, bob, direct=True)


async def test_a_session_that_serves_itself_hears_of_changes(living: Place, owner: Owner, ada: str) -> None:
    client = living.session("--agent", ada, direct=True)
    assert client.tool_names() == {"ping"}
    await owner.call("grant_tool", agent=ada, tool="save_note")
    assert client.next()["method"] == CHANGED
    assert client.tool_names() == {"ping", "save_note"}


async def test_a_session_that_called_before_it_was_told_is_told_all_the_same(
    living: Place, owner: Owner, ada: str
) -> None:
    client = living.session("--agent", ada)
    assert client.tool_names() == {"ping"}
    await owner.call("grant_tool", agent=ada, tool="save_note")
    deadline = time.monotonic() + PATIENCE_S
    # The call that is let through has seen the new rights; what the client holds is still the old list.
    while "error" in client.call("save_note", text="at once"):
        assert time.monotonic() < deadline
    assert (client.seen or [client.next()])[0]["method"] == CHANGED


async def test_a_session_that_has_listed_again_by_itself_is_told_once_at_most(
    living: Place, owner: Owner, ada: str
) -> None:
    client = living.session("--agent", ada)
    assert client.tool_names() == {"ping"}
    await owner.call("grant_tool", agent=ada, tool="save_note")
    until_listed(client, "ping", "save_note")
    assert client.silent(QUIET_S)
    assert len(client.seen) <= 1


async def test_a_right_that_runs_out_is_told(living: Place, owner: Owner, ada: str) -> None:
    client = living.session("--agent", ada)
    ends = datetime.now(UTC) + timedelta(seconds=2)
    await owner.call("grant_tool", agent=ada, tool="save_note", expires_at=ends.isoformat())
    until_listed(client, "ping", "save_note")
    client.seen.clear()
    client.until(CHANGED)
    assert client.tool_names() == {"ping"}


async def test_a_client_that_does_not_read_keeps_nobody_from_hearing(living: Place, owner: Owner, ada: str) -> None:
    deaf, client = living.session("--agent", ada), living.session("--agent", ada)
    assert deaf.tool_names() == client.tool_names() == {"ping"}
    flood = deaf.meanwhile(*(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % number for number in range(3000)))
    until_listed(client, "ping")
    await owner.call("grant_tool", agent=ada, tool="save_note")
    client.until(CHANGED)
    deaf.kill()
    flood.join()


async def test_a_session_that_lists_nothing_is_not_told(living: Place, owner: Owner, ada: str) -> None:
    client = living.session("--agent", ada)
    assert client.call("ping")["status"] == "pong"
    await owner.call("grant_tool", agent=ada, tool="save_note")
    assert client.silent(QUIET_S)
    assert client.tool_names() == {"ping", "save_note"}


async def test_sessions_of_different_scope_never_see_each_others_tools(living: Place, ada: str) -> None:
    (living.home / "narrow.json").write_text('["measure_text"]')
    flags: dict[str, list[str]] = {
        "ada": ["--agent", ada],
        "default": [],
        "worker": ["--agent-type", "worker"],
        "narrow": ["--tool-scope-file", "narrow.json"],
        "owner": ["--as-owner"],
    }
    clients = {name: living.session(*given) for name, given in flags.items()}
    expected = {name: client.tool_names() for name, client in clients.items()}
    assert expected["ada"] == {"ping"}
    assert expected["narrow"] == {"measure_text"}
    assert len({frozenset(names) for names in expected.values()}) == len(clients)
    for _ in range(20):
        asked = {name: client.ask("tools/list") for name, client in clients.items()}
        tried = {name: client.ask_tool("measure_text", text="abc") for name, client in clients.items()}
        for name, client in clients.items():
            listed, answer = client.answers_to([asked[name], tried[name]])
            assert {tool["name"] for tool in listed["result"]["tools"]} == expected[name]
            assert answer["result"]["isError"] is ("measure_text" not in expected[name])


async def test_a_pause_reaches_the_sessions_that_are_open_and_so_does_the_resume(
    living: Place, owner: Owner, ada: str, bob: str
) -> None:
    for name in (ada, bob):
        await owner.call("update_agent", agent=name, permissions=["ping", "save_note"])
    held, other = (living.session("--agent", name) for name in (ada, bob))
    for client in (held, other):
        assert client.tool_names() == {"ping", "save_note"}
    await owner.platform.calls.run(owner.actor, pause_agents, {"agent": ada, "reason": "stop"})
    assert held.next()["method"] == CHANGED
    assert held.tool_names() == {"ping"}
    assert "was paused by owner: stop" in str(held.request("tools/call", name="save_note", arguments={"text": "no"}))
    assert other.call("save_note", text="still") == {"done": "still"}
    await owner.platform.calls.run(owner.actor, resume_agents, {"agent": ada})
    assert held.next()["method"] == CHANGED
    assert held.tool_names() == {"ping", "save_note"}
    assert other.silent(QUIET_S)
