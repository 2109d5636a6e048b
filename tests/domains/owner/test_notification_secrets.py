"""No secret of a channel is in a log, a result, an error, an audit record or any other row."""

import logging
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest

from rookery.around.logs import JsonFormatter
from rookery.core.errors import RookeryError
from rookery.outgoing.services import is_installed
from tests.domains.owner.telling import HERE, Everywhere, Telling
from tests.outgoing.loopback import Names, mail_server, web_server
from tests.platform_fixtures import Fleet

pytestmark = pytest.mark.anyio
SECRET = "s3cr3t"


@pytest.fixture
def telling(database_url: str, make_fleet: Callable[..., Fleet]) -> Telling:
    return Telling(make_fleet(database_url, extra={}, outgoing_allow=HERE))


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[StringIO]:
    """Everything that is logged, as the product writes it, of every library and level."""
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    caplog.set_level(logging.DEBUG)
    root = logging.getLogger()
    root.addHandler(handler)
    yield stream
    root.removeHandler(handler)


def configs(web: str, mail_port: int) -> dict[str, dict[str, Any]]:
    mail = {"smtp_host": "127.0.0.1", "smtp_port": mail_port, "security": "none", "username": "u"}
    return {
        "discord": {"webhook_url": f"{web}/{SECRET}"},
        "slack": {"bot_token": SECRET, "channel": "c", "api_url": web},
        "telegram": {"bot_token": SECRET, "chat_id": "7", "api_url": web},
        "whatsapp": {"phone_number_id": "5", "access_token": SECRET, "recipient_phone": "+1", "api_url": web},
        "signal": {"sender_number": "+1", "recipient_number": "+2", "api_url": f"{web}/{SECRET}"},
        "ntfy": {"topic": SECRET, "token": SECRET, "server_url": web},
        "webhook": {"url": f"{web}/{SECRET}?k={SECRET}", "secret": SECRET},
        "github": {"repo": "a/b", "token": SECRET, "api_url": web},
        "email": {**mail, "password": SECRET, "from_address": "a@example.org", "to_address": "b@example.org"},
    }


@pytest.mark.parametrize("status", [200, 403, 503])
async def test_secrets_stay_in_their_configs(telling: Telling, logged: StringIO, status: int) -> None:
    said: list[str] = []
    refuse = {200: {}, 403: {"AUTH": 535}, 503: {"AUTH": 454}}[status]
    async with web_server() as web, mail_server(refuse=refuse) as post:
        whole = configs(web.url, post.port)
        body = b'{"ok": true}' if status == 200 else SECRET.encode()
        paths = [f"/{SECRET}", "/chat.postMessage", f"/bot{SECRET}/sendMessage", "/5/messages", f"/{SECRET}/v2/send"]
        for path in [*paths, "/", "/repos/a/b/issues"]:
            web.says(path, status, body)
        for channel, config in whole.items():
            said.append(repr(await telling.configure(telling.agent, "set", channel, config=config)))
        said.append(repr(await telling.configure(telling.agent, "list")))
        said.append(repr(await telling.configure(telling.owner, "list")))
        told = await telling.tell(telling.agent)
        await telling.try_again()
        await telling.try_again()
        assert len(web.seen) >= 8
        assert set(told.sent) == (set(whole) if status == 200 else set())
        said.append(repr(told))
        said.append(repr(await telling.fleet.call(telling.owner, "list_notifications")))
    assert {row.status for row in telling.rows("deliveries")} == {"sent" if status == 200 else "failed"}
    assert SECRET not in "\n".join(said)
    assert SECRET not in telling.everything()
    assert SECRET not in logged.getvalue()


async def test_a_refused_config_leaves_its_secret_nowhere(telling: Telling, logged: StringIO) -> None:
    wrong: list[tuple[str, Any]] = [
        ("telegram", {"bot_token": SECRET}),
        ("telegram", {"bot_token": [SECRET, 5], "chat_id": "7"}),
        ("pigeon", {"token": SECRET}),
        ("webhook", {SECRET: "x"}),
        ("webhook", {"url": f"http://10.0.0.1/{SECRET}"}),
        ("webhook", {"url": f"https://u:{SECRET}@8.8.8.8/"}),
        ("webhook", {"url": f"https://8.8.8.8/\n{SECRET}"}),
        ("discord", {"webhook_url": f"https://8.8.8.8/{SECRET}"}),
        ("webhook", SECRET),
    ]
    for channel, config in wrong:
        with pytest.raises(RookeryError) as refusal:
            await telling.configure(telling.agent, "set", channel, config=config)
        assert SECRET not in f"{refusal.value.as_dict()} {refusal.value.__cause__!r}"
    assert telling.rows("channels") == []
    assert SECRET not in telling.everything()
    assert SECRET not in logged.getvalue()


@pytest.mark.skipif(not is_installed(), reason="the extra notify is not installed")
@pytest.mark.parametrize("status", [200, 503])
async def test_the_address_of_a_service_stays_secret(telling: Telling, logged: StringIO, status: int) -> None:
    async with web_server() as web:
        web.says(f"/{SECRET}", status, SECRET.encode())
        address = f"json://{SECRET}:{SECRET}@127.0.0.1:{web.port}/{SECRET}"
        said = [repr(await telling.configure(telling.owner, "set", "apprise", config={"url": address}))]
        said.append(repr(await telling.tell(telling.agent)))
        for _ in range(3):
            await telling.try_again()
        assert len(web.seen) == (1 if status == 200 else 3)
        said.append(repr(await telling.fleet.call(telling.owner, "list_notifications")))
    assert [row.status for row in telling.rows("deliveries")] == ["sent" if status == 200 else "failed"]
    assert SECRET not in "\n".join(said) + telling.everything() + logged.getvalue()


async def test_a_hosts_name_that_is_a_secret_stays_one(telling: Telling, logged: StringIO) -> None:
    facts: Any = telling.platform.calls.facts
    host = f"{SECRET}.hooks.example"
    names = Names(**{host.replace(".", "_"): [["8.8.8.8"], ["10.0.0.1"]]}, mail_example=[["8.8.8.8"], ["127.0.0.1"]])
    facts["outgoing"] = Everywhere(HERE, resolve=names)
    await telling.configure(telling.agent, "set", "webhook", config={"url": f"https://{host}/x"})
    mail = {"smtp_host": f"{SECRET}.example", "from_address": "a@example.org", "to_address": "b@example.org"}
    names.answers[f"{SECRET}.example"] = [["8.8.8.8"], []]
    await telling.configure(telling.agent, "set", "email", config=mail)
    await telling.tell(telling.agent)
    for _ in range(3):
        await telling.try_again()
    assert [row.status for row in telling.rows("deliveries")] == ["failed", "failed"]
    assert SECRET not in telling.everything() + logged.getvalue()
