"""Channels that are told by HTTP. Each sends one request and returns what the other side calls the message."""

import hmac
import json
import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote, urlsplit

from rookery.core.errors import RateLimited, ServiceUnavailable, ValidationFailed
from rookery.domains.owner.channel_frames import (
    Fit,
    bare,
    chat_fence,
    cut,
    in_bytes,
    margin,
    markdown_fence,
    one_line,
    units,
    without_marks,
)
from rookery.domains.owner.channel_notice import Notice
from rookery.outgoing.client import Answer, GuardedClient

Config = Mapping[str, str]
COLOURS = {"info": 0x3498DB, "success": 0x2ECC71, "warning": 0xF39C12, "error": 0xE74C3C}
PRIORITIES = {"info": 3, "success": 3, "warning": 4, "error": 5}
DISCORD_HOSTS = ("discord.com", "discordapp.com")
MAX_REF = 200
DISCORD_TITLE = 256
DISCORD = Fit(limit=4096, size=units, frame=chat_fence)
SLACK = Fit(limit=30_000, size=lambda text: len(_slack_text(text)), frame=chat_fence, titled=True)
TELEGRAM = Fit(limit=4096, size=units, frame=bare, titled=True)
WHATSAPP = Fit(limit=4096, size=units, frame=chat_fence, titled=True)
SIGNAL = Fit(limit=6000, frame=margin, titled=True)
NTFY = Fit(limit=4000, size=in_bytes, frame=margin)
GITHUB = Fit(limit=60_000, size=units, frame=markdown_fence)
_REPO = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
SLACK_PASSING = ("ratelimited", "rate_limited", "fatal_error", "internal_error", "service_unavailable")
SLACK_LASTING = (
    "account_inactive", "channel_not_found", "invalid_auth", "is_archived", "missing_scope", "not_authed",
    "not_in_channel", "restricted_action", "token_expired", "token_revoked",
)  # fmt: skip


async def discord(client: GuardedClient, config: Config, notice: Notice) -> str | None:
    """A webhook of a channel. Nobody is mentioned, whatever the text says."""
    await check_discord(client, config)
    embed = {
        "title": without_marks(cut(notice.headline, DISCORD_TITLE, lambda text: len(without_marks(text)))),
        "description": notice.told(DISCORD).text,
        "color": COLOURS[notice.level],
    }
    address = config["webhook_url"]
    address += ("&" if "?" in address else "?") + "wait=true"
    answer = await _post(client, "discord", address, {"embeds": [embed], "allowed_mentions": {"parse": []}})
    return _ref(_inside(answer, "id"))


async def check_discord(client: GuardedClient, config: Config) -> None:
    """Refuse a webhook that is not Discord's, unless the owner allowed its host."""
    parts = urlsplit(config["webhook_url"])
    host = (parts.hostname or "").rstrip(".")
    ours = any(host == known or host.endswith(f".{known}") for known in DISCORD_HOSTS)
    if not ours and not client.named(host, parts.port or 443):
        raise ValidationFailed("webhook_url is not at discord.com", hint="copy it from the channel's integrations")


async def slack(client: GuardedClient, config: Config, notice: Notice) -> str | None:
    """A bot's message, or an incoming webhook. Signs that would mention people are taken literally."""
    text = _slack_text(notice.told(SLACK).text)
    if "bot_token" not in config or "channel" not in config:
        await _post(client, "slack", config["webhook_url"], {"text": text, "unfurl_links": False})
        return None
    base = config.get("api_url", "https://slack.com/api")
    answer = await _post(
        client,
        "slack",
        f"{base.rstrip('/')}/chat.postMessage",
        {"channel": config["channel"], "text": text, "unfurl_links": False},
        {"authorization": f"Bearer {config['bot_token']}"},
    )
    if _inside(answer, "ok") is not True:
        # Slack says 200 to everything.
        said = _inside(answer, "error")
        # Of what the other side says only words are repeated that are known beforehand.
        reason = said if said in SLACK_PASSING or said in SLACK_LASTING else "no reason"
        if reason in SLACK_PASSING:
            raise ServiceUnavailable(f"slack refused the message ({reason})")
        raise ValidationFailed(f"slack refused the message ({reason})", hint="check bot_token and channel")
    return _ref(_inside(answer, "ts"))


async def telegram(client: GuardedClient, config: Config, notice: Notice) -> str | None:
    """A bot's message, as plain text: marks in it mean nothing. What an agent wrote stands in a block of its own."""
    told = notice.told(TELEGRAM)
    hint = "\n\nPress a button, or reply to this message." if notice.answerable else ""
    if hint and told.cut and notice.decides:
        hint = "\n\nHere it can be denied or put off."
    sent: dict[str, Any] = {
        "chat_id": config["chat_id"],
        "text": told.text + hint,
        "entities": [{"type": "pre", "offset": 0, "length": units(told.said)}],
        # What fetches previews would open the link.
        "link_preview_options": {"is_disabled": True},
    }
    if notice.answerable and told.choices:
        # Counted from 1, as whoever reads the answer counts.
        rows = [
            [{"text": cut(f"{number}. {one_line(option)}", 60), "callback_data": f"a:{notice.id}:{number}"}]
            for number, option in told.choices
        ]
        sent["reply_markup"] = {"inline_keyboard": rows}
    answer = await _post(client, "telegram", telegram_address(config, "sendMessage"), sent)
    message_id = _inside(answer, "result", "message_id")
    return telegram_ref(config, message_id) if isinstance(message_id, int) else None


def telegram_address(config: Config, method: str) -> str:
    """Where a method of the bot is called."""
    base = config.get("api_url", "https://api.telegram.org").rstrip("/")
    return f"{base}/bot{quote(config['bot_token'], safe=':')}/{method}"


def telegram_ref(config: Config, message_id: int) -> str | None:
    """What a message is called here: numbers of messages are the bot's own, and begin anew in each chat."""
    return _ref(f"{config['bot_token'].partition(':')[0][:20]}/{config['chat_id']}/{message_id}")


async def whatsapp(client: GuardedClient, config: Config, notice: Notice) -> str | None:
    """A text by the Cloud API."""
    base = config.get("api_url", "https://graph.facebook.com/v21.0").rstrip("/")
    sent = {
        "messaging_product": "whatsapp",
        "to": config["recipient_phone"],
        "type": "text",
        "text": {"body": notice.told(WHATSAPP).text},
    }
    answer = await _post(
        client,
        "whatsapp",
        f"{base}/{quote(config['phone_number_id'], safe='')}/messages",
        sent,
        {"authorization": f"Bearer {config['access_token']}"},
    )
    return _ref(_inside(answer, "messages", 0, "id"))


async def signal(client: GuardedClient, config: Config, notice: Notice) -> str | None:
    """A text by signal-cli's REST server, which usually runs on this machine and then has to be allowed."""
    base = config.get("api_url", "http://localhost:8080").rstrip("/")
    sent = {
        "message": notice.told(SIGNAL).text,
        "number": config["sender_number"],
        "recipients": [config["recipient_number"]],
    }
    return _ref(_inside(await _post(client, "signal", f"{base}/v2/send", sent), "timestamp"))


async def ntfy(client: GuardedClient, config: Config, notice: Notice) -> str | None:
    """A message to a topic."""
    headers = {"authorization": f"Bearer {config['token']}"} if "token" in config else {}
    sent = {
        "topic": config["topic"],
        "title": notice.headline,
        "message": notice.told(NTFY).text,
        "priority": PRIORITIES[notice.level],
        "tags": [notice.level],
    }
    answer = await _post(client, "ntfy", config.get("server_url", "https://ntfy.sh"), sent, headers)
    return _ref(_inside(answer, "id"))


async def webhook(client: GuardedClient, config: Config, notice: Notice) -> str | None:
    """JSON to any address; with a `secret`, signed with HMAC-SHA256."""
    content = json.dumps(notice.as_json(), ensure_ascii=False).encode()
    headers = {"content-type": "application/json", "x-rookery-delivery": notice.delivery}
    if "secret" in config:
        digest = hmac.digest(config["secret"].encode(), content, "sha256").hex()
        headers["x-rookery-signature"] = f"sha256={digest}"
    check_answer("webhook", await client.request("POST", config["url"], content=content, headers=headers, plain=True))
    return None


async def github(client: GuardedClient, config: Config, notice: Notice) -> str | None:
    """An issue in a repository. What an agent wrote mentions nobody and hides nothing."""
    kinds = ["rookery-question", "awaiting-response"] if notice.about == "ask" else ["rookery-notification"]
    named = [label.strip() for label in config.get("labels", "").split(",") if label.strip()]
    told = notice.told(GITHUB)
    hint = "A comment denies it or puts it off." if told.cut and notice.decides else "Or answer with a comment."
    sent = {
        "title": notice.headline,
        "body": told.text + (f"\n\n{hint}" if notice.answerable else ""),
        "labels": named or [*kinds, *([notice.level] if notice.about == "notification" else [])],
    }
    answer = await _post(client, "github", github_address(config), sent, github_headers(config))
    return _ref(_inside(answer, "html_url") or _inside(answer, "number"))


async def warn_github(client: GuardedClient, config: Config) -> str:
    """Warn of a login that whoever has the token can write as."""
    base = config.get("api_url", "https://api.github.com").rstrip("/")
    if "login" not in config:
        return ""
    owner = _inside(await client.request("GET", f"{base}/user", headers=github_headers(config)), "login")
    if not isinstance(owner, str) or owner.lower() != config["login"].lower():
        return ""
    return (
        "login is the token's own account, so whoever writes with that token answers as you: "
        "use the token of another account, or leave login out"
    )


def github_address(config: Config) -> str:
    """Where the issues of the repository are."""
    if not _REPO.fullmatch(config["repo"]):
        raise ValidationFailed("config: repo must be owner/name")
    return f"{config.get('api_url', 'https://api.github.com').rstrip('/')}/repos/{config['repo']}/issues"


def github_headers(config: Config) -> dict[str, str]:
    """What every request carries."""
    return {
        "authorization": f"Bearer {config['token']}",
        "accept": "application/vnd.github+json",
        "x-github-api-version": "2022-11-28",
    }


async def _post(
    client: GuardedClient, channel: str, address: str, sent: Any, headers: Mapping[str, str] | None = None
) -> Answer:
    answer = await client.request("POST", address, json=sent, headers=headers)
    check_answer(channel, answer)
    return answer


def check_answer(channel: str, answer: Answer) -> None:
    """Raise unless the message was taken. What a second try cannot mend is not tried again."""
    if answer.ok:
        return
    said = f"{channel} answered {answer.status}"
    if answer.status == 429:
        raise RateLimited(said)
    if answer.status in (408, 425) or answer.status >= 500:
        raise ServiceUnavailable(said)
    raise ValidationFailed(said, hint="check the config of the channel")


def _inside(answer: Answer, *path: str | int) -> Any:
    """What is at a place in the JSON of an answer; None if there is no such place."""
    found = answer.json()
    for step in path:
        if isinstance(step, str) and isinstance(found, dict):
            found = cast("dict[str, Any]", found).get(step)
        elif isinstance(step, int) and isinstance(found, list) and len(cast("list[Any]", found)) > step:
            found = cast("list[Any]", found)[step]
        else:
            return None
    return found


def _ref(found: Any) -> str | None:
    """A reference as both databases can keep it."""
    if isinstance(found, bool) or not isinstance(found, str | int):
        return None
    text = str(found)
    return text if text.isprintable() and text.isascii() and 0 < len(text) <= MAX_REF else None


def _slack_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
