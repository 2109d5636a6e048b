"""Answers in a Telegram chat: a button of our message, a reply to it, or `/answer ID …`."""

import re
from collections.abc import Mapping
from typing import Any, cast

from rookery.core.errors import ServiceUnavailable
from rookery.domains.owner.channel_frames import cut, units
from rookery.domains.owner.channel_http import TELEGRAM as FIT
from rookery.domains.owner.channel_http import check_answer, telegram_address, telegram_ref
from rookery.domains.owner.outside_heard import Config, Heard, Listener, Said, at, whole
from rookery.outgoing.client import GuardedClient

POLL_S = 25
SPARE_S = 10.0
MOST = 50
BUSY_S = 15.0
LONGEST_S = 300.0
DAY_MS = 86_400_000
_BUTTON = re.compile(r"a:([0-9a-f]{32}):([0-9]{1,3})")
_COMMAND = re.compile(r"/answer(?:@\w+)?\s+([0-9A-Fa-f]{8,32})\s+(.+)", re.DOTALL)
_OF_OTHERS = ("sender_chat", "via_bot", "forward_origin", "forward_date")
"""What a message has that its sender did not write."""


async def hear(client: GuardedClient, config: Config, cursor: str | None) -> Heard:
    """What the owner answered since; waits for it up to 25 seconds at the other side."""
    asked: dict[str, Any] = {"timeout": POLL_S, "limit": MOST, "allowed_updates": ["message", "callback_query"]}
    if cursor is not None:
        asked["offset"] = int(cursor)
    answer = await client.request(
        "POST", telegram_address(config, "getUpdates"), json=asked, timeout_s=POLL_S + SPARE_S
    )
    told = answer.json()
    if answer.status == 429:
        wait_s = whole(at(told, "parameters", "retry_after")) or BUSY_S
        return Heard(cursor=cursor, again_s=min(max(1.0, float(wait_s)), LONGEST_S))
    if answer.status == 409:
        # Another program listens to the bot, or another server of ours that has not noticed yet that it is over.
        return Heard(cursor=cursor, again_s=BUSY_S)
    check_answer("telegram", answer)
    found = at(told, "result")
    if at(told, "ok") is not True or not isinstance(found, list):
        raise ServiceUnavailable("telegram answered what cannot be read")
    return _heard(config, cast("list[Any]", found), cursor)


def _heard(config: Config, updates: list[Any], cursor: str | None) -> Heard:
    after = -1 if cursor is None else int(cursor) - 1
    said: list[Said] = []
    for update in sorted((each for each in updates if whole(at(each, "update_id")) is not None), key=_number):
        if _number(update) <= after:
            continue
        after = _number(update)
        one = _said(config, update, str(after + 1))
        if one is not None:
            said.append(one)
    return Heard(said=said, cursor=cursor if after < 0 else str(after + 1))


def _number(update: Any) -> int:
    return update["update_id"]


def _said(config: Config, update: Any, cursor: str) -> Said | None:
    """The answer in an update; None if it is none, or not of the owner's chat."""
    pressed, message = at(update, "callback_query"), at(update, "message")
    where = at(pressed, "message") if pressed is not None else message
    if not _of_chat(config, at(where, "chat")) or not _of_owner(config, at(pressed or message, "from")):
        return None
    if pressed is not None:
        button = _BUTTON.fullmatch(str(at(pressed, "data")))
        if button is None:
            return None
        back = {"callback": str(at(pressed, "id"))[:100], "message": whole(at(where, "message_id"))}
        return Said(text=button[2], ask_id=button[1], cursor=cursor, back=back)
    text = at(message, "text")
    if not isinstance(text, str) or any(at(message, sign) is not None for sign in _OF_OTHERS):
        return None
    back = {"message": whole(at(message, "message_id"))}
    command = _COMMAND.fullmatch(text.strip())
    if command is not None:
        return Said(text=command[2], ask_id=command[1].lower(), named=True, cursor=cursor, back=back)
    message_id = whole(at(message, "reply_to_message", "message_id"))
    # Which ask it is about only we know: what the other message says, an agent may have written.
    ref = None if message_id is None else telegram_ref(config, message_id)
    return None if ref is None else Said(text=text, ref=ref, cursor=cursor, back=back)


def _of_chat(config: Config, chat: Any) -> bool:
    wanted = config["chat_id"]
    name = at(chat, "username")
    return str(at(chat, "id")) == wanted or (isinstance(name, str) and f"@{name}".lower() == wanted.lower())


def _of_owner(config: Config, sender: Any) -> bool:
    if at(sender, "is_bot") is not False:
        return False
    return "user_id" not in config or str(at(sender, "id")) == config["user_id"]


async def reply(client: GuardedClient, config: Config, text: str, back: Mapping[str, Any]) -> None:
    """Tell the chat how it went, and the button that it was heard."""
    if back.get("callback"):
        # Its failure is no matter: Telegram takes it for a few seconds only.
        pressed = {"callback_query_id": back["callback"], "text": cut(text, 190, units)}
        await client.request("POST", telegram_address(config, "answerCallbackQuery"), json=pressed)
    sent: dict[str, Any] = {"chat_id": config["chat_id"], "text": cut(text, 4000, units)}
    if back.get("message"):
        sent["reply_parameters"] = {"message_id": back["message"], "allow_sending_without_reply": True}
    check_answer("telegram", await client.request("POST", telegram_address(config, "sendMessage"), json=sent))


def source(config: Config) -> str:
    """The bot, by the part of its token that is no secret."""
    return f"telegram:{config['bot_token'].partition(':')[0][:20]}"


# After a week without any update Telegram counts from a new number.
TELEGRAM = Listener(hear=hear, reply=reply, source=source, fit=FIT, cursor_lasts_ms=5 * DAY_MS)
