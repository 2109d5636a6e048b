"""What each channel sends by HTTP, and what it makes of the answers."""

import hashlib
import hmac
import json
from typing import Any

import pytest

from rookery.core.errors import RateLimited, RookeryError, ServiceUnavailable, ValidationFailed
from rookery.domains.owner.channel_notice import Notice
from rookery.domains.owner.channels import KINDS, send_by
from rookery.outgoing.client import GuardedClient
from tests.outgoing.loopback import Seen, Web, web_server

pytestmark = pytest.mark.anyio
CLIENT = GuardedClient(["127.0.0.1"])
SECRET = "s3cr3t"
TOLD = Notice(
    delivery="dlv-1",
    about="notification",
    id="ntf-1",
    title="News",
    text="<b> & @everyone",
    level="error",
    sender="ada",
)
ASKED = Notice(
    delivery="dlv-2",
    about="ask",
    id="ask-1",
    title="Which?",
    text="Which one?",
    level="warning",
    options=("red", "blue"),
    context="The button.",
)


def configs(url: str) -> dict[str, dict[str, str]]:
    return {
        "discord": {"webhook_url": f"{url}/discord/{SECRET}"},
        "slack": {"bot_token": SECRET, "channel": "C1", "api_url": f"{url}/slack"},
        "telegram": {"bot_token": f"1:{SECRET}", "chat_id": "7", "api_url": url},
        "whatsapp": {
            "phone_number_id": "55",
            "access_token": SECRET,
            "recipient_phone": "+1",
            "api_url": f"{url}/v21.0",
        },
        "signal": {"sender_number": "+1", "recipient_number": "+2", "api_url": url},
        "ntfy": {"topic": "t", "token": SECRET, "server_url": f"{url}/ntfy"},
        "webhook": {"url": f"{url}/hook/{SECRET}", "secret": SECRET},
        "github": {"repo": "ada/shop", "token": SECRET, "api_url": url},
    }


PATHS = {
    "discord": f"/discord/{SECRET}",
    "slack": "/slack/chat.postMessage",
    "telegram": f"/bot1:{SECRET}/sendMessage",
    "whatsapp": "/v21.0/55/messages",
    "signal": "/v2/send",
    "ntfy": "/ntfy",
    "webhook": f"/hook/{SECRET}",
    "github": "/repos/ada/shop/issues",
}
TAKEN: dict[str, tuple[dict[str, Any], str | None]] = {
    "discord": ({"id": "900"}, "900"),
    "slack": ({"ok": True, "ts": "17.4"}, "17.4"),
    "telegram": ({"ok": True, "result": {"message_id": 31}}, "1/7/31"),
    "whatsapp": ({"messages": [{"id": "wamid.1"}]}, "wamid.1"),
    "signal": ({"timestamp": "1700"}, "1700"),
    "ntfy": ({"id": "n1"}, "n1"),
    "webhook": ({"id": "ignored"}, None),
    "github": (
        {"number": 5, "html_url": "https://github.com/ada/shop/issues/5"},
        "https://github.com/ada/shop/issues/5",
    ),
}
HTTP = sorted(PATHS)


async def sent(web: Web, channel: str, notice: Notice = TOLD) -> tuple[str | None, Seen]:
    web.says(PATHS[channel], 200, json.dumps(TAKEN[channel][0]).encode())
    ref = await send_by(CLIENT, channel, configs(web.url)[channel], notice, shared=False)
    return ref, web.seen[-1]


def test_every_kind_has_a_test() -> None:
    assert set(HTTP) | {"email", "apprise"} == set(KINDS)


@pytest.mark.parametrize("channel", HTTP)
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (302, ValidationFailed),
        (400, ValidationFailed),
        (401, ValidationFailed),
        (404, ValidationFailed),
        (408, ServiceUnavailable),
        (429, RateLimited),
        (500, ServiceUnavailable),
        (503, ServiceUnavailable),
    ],
)
async def test_a_refusal_tells_its_status_and_no_secret(channel: str, status: int, error: type[RookeryError]) -> None:
    async with web_server() as web:
        web.says(PATHS[channel], status, SECRET.encode(), Location=f"/{SECRET}")
        with pytest.raises(error) as refusal:
            await send_by(CLIENT, channel, configs(web.url)[channel], TOLD, shared=False)
        assert refusal.value.message == f"{channel} answered {status}"
        assert len(web.seen) == 1
    with pytest.raises(ServiceUnavailable) as gone:
        await send_by(CLIENT, channel, configs(web.url)[channel], TOLD, shared=False)
    assert SECRET not in f"{gone.value!r} {gone.value.hint}"


@pytest.mark.parametrize("channel", HTTP)
async def test_a_message_is_sent_and_its_reference_kept(channel: str) -> None:
    async with web_server() as web:
        ref, seen = await sent(web, channel)
        assert ref == TAKEN[channel][1]
        assert (seen.method, seen.path.partition("?")[0]) == ("POST", PATHS[channel])
        assert "News" in seen.body.decode()
        assert json.loads(seen.body)


@pytest.mark.parametrize("channel", HTTP)
@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"ok": true, "id": {"x": 1}, "result": 5, "messages": []}'])
async def test_an_answer_that_says_nothing_is_taken_for_a_delivery_without_a_reference(
    channel: str, body: bytes
) -> None:
    async with web_server() as web:
        web.says(PATHS[channel], 200, body)
        if channel == "slack" and b"ok" not in body:
            with pytest.raises(ValidationFailed, match=r"slack refused the message \(no reason\)"):
                await send_by(CLIENT, channel, configs(web.url)[channel], TOLD, shared=False)
        else:
            assert await send_by(CLIENT, channel, configs(web.url)[channel], TOLD, shared=False) is None


@pytest.mark.parametrize("channel", [each for each in HTTP if each != "webhook"])
async def test_an_ask_has_numbers_from_one_and_says_how_it_is_answered(channel: str) -> None:
    async with web_server() as web:
        _, seen = await sent(web, channel, ASKED)
        text = seen.body.decode()
        assert text.index("1. red\\n") < text.index("2. blue\\n")
        assert "rookery answer ask-1 NUMBER or TEXT" in text


@pytest.mark.parametrize("channel", [each for each in HTTP if each not in ("webhook", "github")])
async def test_a_long_message_is_cut_where_the_channel_has_a_limit_and_can_still_be_answered(channel: str) -> None:
    async with web_server() as web:
        long = Notice(delivery="d", about="ask", id="ask-7", title="T", text="é" * 50_000)
        _, seen = await sent(web, channel, long)
        assert len(json.dumps(json.loads(seen.body), ensure_ascii=False)) < 31_000
        assert "rookery answer ask-7" in seen.body.decode()
        if channel == "ntfy":
            assert len(json.loads(seen.body)["message"].encode()) <= 4000


async def test_credentials_are_where_each_service_wants_them() -> None:
    async with web_server() as web:
        for channel in ("slack", "whatsapp", "ntfy", "github"):
            _, seen = await sent(web, channel)
            assert seen.headers["authorization"] == f"Bearer {SECRET}"
            assert SECRET not in seen.body.decode() + seen.path
        _, seen = await sent(web, "webhook")
        assert (
            seen.headers["x-rookery-signature"]
            == "sha256=" + hmac.new(SECRET.encode(), seen.body, hashlib.sha256).hexdigest()
        )


async def test_nobody_is_mentioned_and_nothing_is_marked_up() -> None:
    async with web_server() as web:
        discord = json.loads((await sent(web, "discord"))[1].body)
        assert discord["allowed_mentions"] == {"parse": []}
        assert discord["embeds"][0]["color"] == 0xE74C3C
        slack = json.loads((await sent(web, "slack"))[1].body)
        assert "&lt;b&gt; &amp; @everyone" in slack["text"]
        assert "parse_mode" not in json.loads((await sent(web, "telegram"))[1].body)


async def test_slack_takes_an_incoming_webhook_and_its_refusals_are_read() -> None:
    async with web_server() as web:
        assert await send_by(CLIENT, "slack", {"webhook_url": f"{web.url}/x"}, TOLD, shared=False) is None
        assert set(json.loads(web.seen[0].body)) == {"text", "unfurl_links"}
        config = configs(web.url)["slack"]
        for said, error in (("invalid_auth", ValidationFailed), ("ratelimited", ServiceUnavailable)):
            web.says(PATHS["slack"], 200, json.dumps({"ok": False, "error": said}).encode())
            with pytest.raises(error, match=said):
                await send_by(CLIENT, "slack", config, TOLD, shared=False)
        for said in (f"bad {SECRET}", "hunter", 5, None, ["invalid_auth"]):
            web.says(PATHS["slack"], 200, json.dumps({"ok": False, "error": said}).encode())
            with pytest.raises(ValidationFailed, match="no reason"):
                await send_by(CLIENT, "slack", config, TOLD, shared=False)


async def test_issues_have_labels_by_what_they_are_or_those_of_the_config() -> None:
    async with web_server() as web:
        assert json.loads((await sent(web, "github"))[1].body)["labels"] == ["rookery-notification", "error"]
        asked = json.loads((await sent(web, "github", ASKED))[1].body)
        assert asked["labels"] == ["rookery-question", "awaiting-response"]
        config = {**configs(web.url)["github"], "labels": "a, b"}
        await send_by(CLIENT, "github", config, TOLD, shared=False)
        assert json.loads(web.seen[-1].body)["labels"] == ["a", "b"]
        for repo in ("ada", "ada/shop/../x", "ada/sh op", "../x/y"):
            with pytest.raises(ValidationFailed, match="owner/name"):
                await send_by(CLIENT, "github", {**config, "repo": repo}, TOLD, shared=False)


async def test_a_variable_never_goes_to_a_server_that_somebody_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", SECRET)
    async with web_server() as web:
        chosen = {"channel": "C1", "api_url": f"{web.url}/slack"}
        for shared in (True, False):
            with pytest.raises(ValidationFailed, match="not complete"):
                await send_by(CLIENT, "slack", chosen, TOLD, shared=shared)
        with pytest.raises(ValidationFailed, match="not complete"):
            await send_by(CLIENT, "slack", {"channel": "C1"}, TOLD, shared=False)
        assert web.seen == []


async def test_signal_on_this_machine_has_to_be_allowed() -> None:
    config = {"sender_number": "+1", "recipient_number": "+2"}
    with pytest.raises(ValidationFailed, match="the host is in this machine's own"):
        await send_by(GuardedClient(), "signal", config, TOLD, shared=False)


@pytest.mark.parametrize("channel", ["slack", "whatsapp", "ntfy", "github"])
async def test_a_value_that_breaks_a_request_is_not_told(channel: str) -> None:
    async with web_server() as web:
        tokens = ("bot_token", "token", "access_token")
        whole = configs(web.url)[channel]
        odd = {key: f"{value}\u2028\n" if key in tokens else value for key, value in whole.items()}
        with pytest.raises(ServiceUnavailable) as failure:
            await send_by(CLIENT, channel, odd, TOLD, shared=False)
        assert SECRET not in f"{failure.value!r} {failure.value.hint} {failure.value.__cause__!r}"
        assert web.seen == []
