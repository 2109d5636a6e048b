"""configure_notifications: who may set which channel up, what is refused, and that nobody reads a config again."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rookery.core.errors import InvalidParams, NotFound, PermissionDenied, ValidationFailed
from rookery.core.lint import lint, tokens
from rookery.outgoing.client import GuardedClient
from tests.domains.owner.telling import HERE, Everywhere, Telling
from tests.outgoing.loopback import Names, web_server
from tests.platform_fixtures import Fleet

pytestmark = pytest.mark.anyio
HOOK = {"url": "https://8.8.8.8/hook", "secret": "s3cr3t-hook-key"}
TELEGRAM = {"bot_token": "12:s3cr3t-token", "chat_id": "7"}


BAD_ARGUMENTS: list[dict[str, Any]] = [
    {},
    {"action": "destroy"},
    {"action": "set", "config": "x"},
    {"action": "set", "channel_type": "webhook", "config": HOOK, "enabled": "perhaps"},
    {"action": "set", "channel_type": "webhook", "config": HOOK, "agent": "ada"},
    {"action": "set", "channel_type": "webhook", "config": {"url": "https://8.8.8.8/\0"}},
]
BAD_CONFIGS: list[tuple[str | None, Any, str]] = [
    (None, HOOK, "channel_type is missing"),
    ("apprise", {"url": "json://8.8.8.8/s3cr3t"}, "apprise is set up by people"),
    ("discord", {"webhook_url": "https://a:99999/"}, "no address that can be requested"),
    ("pigeon", HOOK, "no channel of this type"),
    ("algochat", HOOK, "no channel of this type"),
    ("webhook", None, "config needs 1 to 12 keys"),
    ("webhook", {}, "config needs 1 to 12 keys"),
    ("webhook", {f"k{n}": "x" for n in range(13)}, "config needs 1 to 12 keys"),
    ("webhook", {"secret": "x"}, "webhook also needs url"),
    ("webhook", {**HOOK, "color": "red"}, "webhook takes no key of this name"),
    ("webhook", {**HOOK, "hunter": "x"}, "webhook takes no key of this name"),
    ("webhook", {**HOOK, "chat_id": "x"}, "webhook takes no chat_id"),
    ("webhook", {**HOOK, "links": "yes"}, "webhook takes no links"),
    ("github", {"repo": "a/b", "token": "x", "login": "eve"}, "github takes no login"),
    ("telegram", {**TELEGRAM, "answers": "yes"}, "telegram takes no answers"),
    ("webhook", {"url": 5.5}, "url must be text"),
    ("webhook", {"url": None}, "url must be text"),
    ("webhook", {"url": " "}, "url must have 1 to"),
    ("webhook", {"url": "https://8.8.8.8/\r\nX-A: b"}, "url must have 1 to"),
    ("webhook", {"url": "https://8.8.8.8/" + "x" * 4000}, "url must have 1 to"),
    ("webhook", {"url": "ftp://8.8.8.8/"}, "no address that can be requested"),
    ("telegram", {"bot_token": "x"}, "telegram also needs chat_id"),
    ("telegram", {**TELEGRAM, "botToken": "y"}, "bot_token twice"),
    ("telegram", {**TELEGRAM, "api_url": "http://8.8.8.8"}, "must be reached by https"),
    ("discord", {"webhook_url": "https://8.8.8.8/api/webhooks/1/x"}, "not at discord.com"),
    ("discord", {"webhook_url": "https://discord.com.evil.example/x"}, "not at discord.com"),
    ("email", {"smtp_host": "8.8.8.8", "from_address": "a", "to_address": "b@c"}, "from_address must be a mail"),
    (
        "email",
        {"smtp_host": "8.8.8.8", "from_address": "a@b", "to_address": "b@c", "smtp_port": "0"},
        "smtp_port must be",
    ),
    (
        "email",
        {"smtp_host": "8.8.8.8", "from_address": "a@b", "to_address": "b@c", "username": "u"},
        "username and password go together",
    ),
]
AT_HOME: list[tuple[str, dict[str, str]]] = [
    ("webhook", {"url": "http://127.0.0.1:9/x"}),
    ("webhook", {"url": "http://localhost/x"}),
    ("webhook", {"url": "http://169.254.169.254/latest/meta-data"}),
    ("webhook", {"url": "http://[::1]/"}),
    ("webhook", {"url": "http://inside.example/"}),
    ("slack", {"webhook_url": "https://10.0.0.1/x"}),
    ("ntfy", {"topic": "t", "server_url": "https://192.168.1.1"}),
    ("telegram", {**TELEGRAM, "api_url": "https://127.0.0.1"}),
    ("github", {"repo": "a/b", "token": "x", "api_url": "https://[fd00::1]"}),
    ("signal", {"sender_number": "+1", "recipient_number": "+2", "api_url": "http://localhost:8080"}),
    ("email", {"smtp_host": "127.0.0.1", "from_address": "a@b", "to_address": "b@c"}),
]


@pytest.fixture
def telling(database_url: str, make_fleet: Callable[..., Fleet]) -> Telling:
    return Telling(make_fleet(database_url, extra={}))


async def test_bad_arguments_are_refused(telling: Telling) -> None:
    for arguments in BAD_ARGUMENTS:
        with pytest.raises(InvalidParams):
            await telling.fleet.call(telling.agent, "configure_notifications", **arguments)
    assert telling.rows("channels") == []


async def test_a_bad_config_is_refused_without_being_repeated(telling: Telling) -> None:
    for channel_type, config, said in BAD_CONFIGS:
        given = {"config": config} if config is not None else {}
        with pytest.raises(ValidationFailed, match=said) as refusal:
            await telling.configure(telling.agent, "set", channel_type, **given)
        assert "s3cr3t" not in f"{refusal.value} {refusal.value.hint}"
    assert telling.rows("channels") == []


async def test_an_address_of_a_private_network_is_refused(telling: Telling) -> None:
    facts: Any = telling.platform.calls.facts
    facts["outgoing"] = GuardedClient(
        resolve=Names(inside_example=[["10.1.2.3"]], localhost=[["127.0.0.1"]], **{"127_0_0_1": [["127.0.0.1"]]})
    )
    for channel_type, config in AT_HOME:
        with pytest.raises(ValidationFailed, match="in this machine's own or a private network"):
            await telling.configure(telling.agent, "set", channel_type, config=config)
    assert telling.rows("channels") == []


async def test_whoever_is_no_agent_of_ours_has_no_channels(telling: Telling) -> None:
    outsider = replace(telling.agent, kind="external", agent=None, scopes=frozenset({"owner:configure"}))
    for action in ("list", "set", "remove"):
        with pytest.raises(PermissionDenied, match="this caller is none"):
            await telling.configure(outsider, action, "webhook", config=HOOK)


async def test_a_channel_is_set_listed_turned_off_and_on_and_removed(telling: Telling) -> None:
    agent = telling.agent
    shown = {"channel_type": "webhook", "enabled": True, "keys": ["secret", "url"]}
    assert await telling.configure(agent, "list") == []
    assert await telling.configure(agent, "set", "Webhook ", config=HOOK) == [shown]
    assert await telling.configure(agent, "list") == [shown]
    off = {**shown, "enabled": False}
    assert await telling.configure(agent, "disable", "webhook") == [off]
    assert await telling.configure(agent, "disable", "webhook") == [off]
    assert await telling.configure(agent, "enable", "webhook") == [shown]
    assert await telling.configure(agent, "remove", "webhook") == []
    for action in ("enable", "disable", "remove"):
        with pytest.raises(NotFound, match="the channel webhook is not set up"):
            await telling.configure(agent, action, "webhook")
    assert telling.rows("channels") == []


async def test_setting_a_channel_again_replaces_its_config_and_turns_it_on(telling: Telling) -> None:
    agent = telling.agent
    assert not (await telling.configure(agent, "set", "webhook", config=HOOK, enabled=False))[0]["enabled"]
    (row,) = telling.rows("channels")
    assert await telling.configure(agent, "set", "webhook", config={"url": HOOK["url"]}) == [
        {"channel_type": "webhook", "enabled": True, "keys": ["url"]}
    ]
    (again,) = telling.rows("channels")
    assert (again.id, again.config == row.config) == (row.id, False)


async def test_both_spellings_of_a_key_and_numbers_and_lists_are_taken(telling: Telling) -> None:
    given = {"botToken": "12:x", "chatId": -100123}
    (shown,) = await telling.configure(telling.agent, "set", "telegram", config=given)
    assert shown["keys"] == ["bot_token", "chat_id"]
    github = {"repo": "ada/shop", "token": "x", "labels": ["a", "b"]}
    assert (await telling.configure(telling.agent, "set", "github", config=github))[0]["keys"] == [
        "labels",
        "repo",
        "token",
    ]
    called = await telling.fleet.call(telling.agent, "corvid_configure_notifications", action="list")
    assert [each["channel_type"] for each in called.channels] == ["github", "telegram"]


async def test_an_agent_neither_sees_nor_changes_the_channels_of_another(telling: Telling) -> None:
    ada = await telling.new_agent("ada")
    await telling.configure(ada, "set", "webhook", config=HOOK)
    assert await telling.configure(telling.agent, "list") == []
    assert await telling.configure(telling.stranger, "list") == []
    for actor in (telling.agent, telling.owner, telling.stranger):
        for action in ("enable", "disable", "remove"):
            with pytest.raises(NotFound):
                await telling.configure(actor, action, "webhook")
    await telling.configure(telling.agent, "set", "webhook", config=HOOK)
    assert len(telling.rows("channels")) == 2


async def test_channels_of_people_are_shared_and_people_see_all(telling: Telling) -> None:
    ada = await telling.new_agent("ada")
    await telling.configure(telling.owner, "set", "webhook", config=HOOK)
    await telling.configure(ada, "set", "ntfy", config={"topic": "t", "token": "x"})
    shared = {"channel_type": "webhook", "enabled": True, "keys": ["secret", "url"], "shared": True}
    own = {"channel_type": "ntfy", "enabled": True, "keys": ["token", "topic"]}
    assert await telling.configure(ada, "list") == [own, shared]
    assert await telling.configure(telling.agent, "list") == [shared]
    assert await telling.configure(telling.owner, "list") == [{**own, "agent": "ada"}, shared]
    with pytest.raises(NotFound):
        await telling.configure(ada, "disable", "webhook")
    assert all(row.enabled for row in telling.rows("channels"))


async def test_people_turn_the_channel_of_an_agent_off_by_its_name(telling: Telling) -> None:
    ada = await telling.new_agent("Ada")
    await telling.configure(ada, "set", "webhook", config=HOOK)
    for actor in (telling.agent, ada, telling.stranger):
        with pytest.raises(NotFound):
            await telling.configure(actor, "disable", "ada/webhook")
    with pytest.raises(NotFound):
        await telling.configure(telling.owner, "disable", "bob/webhook")
    with pytest.raises(ValidationFailed, match="sets its own channels up"):
        await telling.configure(telling.owner, "set", "ada/webhook", config=HOOK)
    assert telling.rows("channels")[0].enabled
    assert not (await telling.configure(telling.owner, "disable", "ada/webhook"))[0]["enabled"]
    assert await telling.configure(telling.owner, "remove", "ada/webhook") == []
    assert telling.rows("channels") == []


async def test_variables_complete_channels_of_people_and_never_those_of_agents(
    telling: Telling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "99:owners")
    monkeypatch.setenv("TELEGRAM_CHAT_ID", "7")
    with pytest.raises(ValidationFailed, match="also needs bot_token"):
        await telling.configure(telling.agent, "set", "telegram", config={"chat_id": "8"})
    given = {"chat_id": "8", "api_url": "https://8.8.8.8"}
    with pytest.raises(ValidationFailed, match="also needs bot_token"):
        await telling.configure(telling.owner, "set", "telegram", config=given)
    assert (await telling.configure(telling.owner, "set", "telegram"))[0]["keys"] == []


@pytest.mark.parametrize(
    "who", [{"role": "operator"}, {"scheduler": True}, {"unattended": True}, {"role": "viewer"}], ids=str
)
async def test_nobody_but_the_owner_in_person_says_where_everybody_asks(telling: Telling, who: dict[str, Any]) -> None:
    await telling.configure(telling.owner, "set", "ntfy", config={"topic": "t"})
    before = telling.rows("channels")
    somebody = replace(telling.owner, **who)
    for action in ("set", "enable", "disable", "remove"):
        for channel_type in ("webhook", "ntfy"):
            with pytest.raises(PermissionDenied):
                await telling.configure(somebody, action, channel_type, config=HOOK)
    assert telling.rows("channels") == before


async def test_what_only_the_owner_can_switch_is_yes_or_no(telling: Telling) -> None:
    for value in ("maybe", 5, ["no", "x"], None, "YES "):
        with pytest.raises(ValidationFailed, match="links must be yes or no"):
            await telling.configure(telling.owner, "set", "webhook", config={**HOOK, "links": value})
    (shown,) = await telling.configure(telling.owner, "set", "webhook", config={**HOOK, "links": False})
    assert shown["keys"] == ["links", "secret", "url"]


async def test_what_the_owner_allowed_is_for_the_channels_of_people_only(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    telling = Telling(make_fleet(database_url, extra={}, outgoing_allow=HERE))
    facts: Any = telling.platform.calls.facts
    del facts["outgoing"]
    async with web_server() as web:
        config = {"url": f"{web.url}/v1/unregister/x"}
        with pytest.raises(ValidationFailed, match="in this machine's own or a private network"):
            await telling.configure(telling.agent, "set", "webhook", config=config)
        facts["outgoing"] = Everywhere(HERE)
        await telling.configure(telling.agent, "set", "webhook", config=config)
        del facts["outgoing"]
        assert (await telling.tell(telling.agent)).failed == ["webhook"]
        assert web.seen == []
        await telling.configure(telling.owner, "set", "webhook", config=config)
        assert (await telling.tell(telling.agent, "more")).sent == ["webhook"]
        assert len(web.seen) == 1


async def test_one_type_is_one_channel_also_at_the_same_moment(telling: Telling) -> None:
    agent = telling.agent
    await asyncio.gather(*(telling.configure(agent, "set", "webhook", config=HOOK) for _ in range(8)))
    assert len(telling.rows("channels")) == 1


def test_the_listing_of_the_three_tools_stays_short(telling: Telling) -> None:
    names = ("notify_owner", "configure_notifications", "list_notifications")
    declared = [telling.platform.registry.require(name) for name in names]
    assert [fault for tool in declared for fault in lint(tool)] == []
    assert {tool.name: tokens(tool) for tool in declared if tokens(tool) > 130} == {}
