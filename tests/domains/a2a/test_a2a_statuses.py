from tests.domains.a2a.outpost import Outpost
from tests.domains.a2a.remote_agent import RemoteAgent
from tests.statuses import statuses_of


async def test_whoever_looks_for_an_agent_is_told_twice_how_it_goes(outpost: Outpost, mirror: RemoteAgent) -> None:
    heard = statuses_of(outpost.fleet)
    await outpost.discover("nobody at all")
    assert heard["discover_agent"] == [
        "looking for nobody at all",
        "No known agent card has nobody at all. Give a URL to fetch one.",
    ]
    await outpost.discover(mirror.url)
    assert heard["discover_agent"][2:] == [f"looking for {mirror.url}", "agent cards found: 1"]


async def test_whoever_asks_a_remote_agent_is_told_twice_how_it_goes(outpost: Outpost, mirror: RemoteAgent) -> None:
    heard = statuses_of(outpost.fleet)
    await outpost.invoke(mirror.url, "echo hello")
    assert heard["invoke_remote_agent"] == ["asking Mirror", "answer of Mirror received"]
