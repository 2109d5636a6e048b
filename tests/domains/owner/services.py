"""Telegram and GitHub on this machine, as far as answers go: they behave as the real ones do, faults included."""

import asyncio
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.outgoing.loopback import Said, Seen, Web

BOT, CHAT = "42", 7
HOLD_S = 0.1


def said(status: int, body: Any, **headers: str) -> Said:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, content


class Telegram:
    """One bot. Updates stay until they are confirmed by an offset; of two who wait for them the first is sent away."""

    def __init__(self, web: Web) -> None:
        self.updates: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self.pressed: list[dict[str, Any]] = []
        self.offsets: list[int | None] = []
        self.faults: list[Said] = []
        self.repeats = False
        """Whether it forgets what was confirmed, as it does after trouble of its own."""
        self._last = 1000
        self._waiting: asyncio.Event | None = None
        web.act = self._act
        self.config = {"bot_token": f"{BOT}:s3cr3t", "chat_id": str(CHAT), "api_url": web.url}

    async def _act(self, seen: Seen) -> Said:
        given = json.loads(seen.body)
        method = seen.path.rpartition("/")[2]
        if seen.path != f"/bot{BOT}:s3cr3t/{method}":
            return said(401, {"ok": False, "error_code": 401, "description": "Unauthorized"})
        if method == "sendMessage":
            self.sent.append(given)
            return said(200, {"ok": True, "result": {"message_id": len(self.sent), "chat": {"id": CHAT}}})
        if method == "answerCallbackQuery":
            self.pressed.append(given)
            return said(200, {"ok": True, "result": True})
        return await self._get(given)

    async def _get(self, given: dict[str, Any]) -> Said:
        offset = given.get("offset")
        self.offsets.append(offset)
        if self.faults:
            return self.faults.pop(0)
        if self._waiting is not None:
            self._waiting.set()
        gone = self._waiting = asyncio.Event()
        if offset is not None and not self.repeats:
            self.updates = [update for update in self.updates if update.get("update_id", offset) >= offset]
        if not self.updates or self.repeats:
            try:
                await asyncio.wait_for(gone.wait(), HOLD_S)
                return said(409, {"ok": False, "error_code": 409, "description": "Conflict: terminated"})
            except TimeoutError:
                pass
        self._waiting = None
        return said(200, {"ok": True, "result": self.updates[: given["limit"]]})

    def hears(self, *, chat: Any = CHAT, sender: Any = None, **message: Any) -> None:
        """Somebody writes in a chat."""
        person = {"id": 7, "is_bot": False} if sender is None else sender
        content = {"message_id": 500 + self._last, "chat": {"id": chat, "type": "private"}, "from": person, **message}
        self._add(message=content)

    def replies(self, message_id: int, text: str, **more: Any) -> None:
        """Somebody replies to a message of the bot."""
        sent = self.sent[message_id - 1]["text"] if message_id <= len(self.sent) else ""
        bot = {"id": int(BOT), "is_bot": True}
        self.hears(text=text, reply_to_message={"message_id": message_id, "text": sent, "from": bot}, **more)

    def presses(self, message_id: int, number: int, *, chat: Any = CHAT, sender: Any = None) -> None:
        """Somebody presses a button, the first having the number 1."""
        rows = self.sent[message_id - 1]["reply_markup"]["inline_keyboard"]
        where = {"message_id": message_id, "chat": {"id": chat}}
        person = {"id": 7, "is_bot": False} if sender is None else sender
        pressed = {"id": "cb", "from": person, "message": where, "data": rows[number - 1][0]["callback_data"]}
        self._add(callback_query=pressed)

    def _add(self, **update: Any) -> None:
        self._last += 1
        self.updates.append({"update_id": self._last, **update})


class GitHub:
    """One repository with issues and comments; ETags count, and so do limits."""

    def __init__(self, web: Web) -> None:
        self.issues: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = []
        self.faults: list[Said] = []
        self.unchanged = 0
        self.author = "rookery-bot"
        self._url = "https://github.example/ada/shop"
        web.act = self._act
        self.config = {"repo": "ada/shop", "token": "s3cr3t", "login": "Ada", "api_url": web.url}

    async def _act(self, seen: Seen) -> Said:
        if seen.headers.get("authorization") != "Bearer s3cr3t":
            return said(401, {"message": "Bad credentials"})
        parts = urlsplit(seen.path)
        if parts.path == "/user":
            return said(200, {"login": self.author})
        rest = parts.path.removeprefix("/repos/ada/shop/issues").strip("/").split("/")
        if seen.method == "GET":
            return self._listed(parse_qs(parts.query), seen.headers.get("if-none-match"))
        given = json.loads(seen.body)
        if rest == [""]:
            self.issues.append({**given, "number": len(self.issues) + 1, "state": "open"})
            return said(201, {**self.issues[-1], "html_url": f"{self._url}/issues/{len(self.issues)}"})
        number = int(rest[0])
        if seen.method == "PATCH":
            self.issues[number - 1] |= given
            return said(200, self.issues[number - 1])
        return said(201, self.writes(number, given["body"], self.author))

    def _listed(self, query: dict[str, list[str]], etag: str | None) -> Said:
        if self.faults:
            return self.faults.pop(0)
        found = [each for each in self.comments if each["updated_at"] >= query["since"][0]]
        found.sort(key=lambda each: each["updated_at"])
        size, page = int(query["per_page"][0]), int(query["page"][0])
        told = found[(page - 1) * size : page * size]
        tag = f'W/"{hash(json.dumps([query, told]))}"'
        if etag == tag:
            self.unchanged += 1
            return said(304, b"")
        return said(200, told, ETag=tag)

    def writes(self, number: int, body: Any, login: str = "ada") -> dict[str, Any]:
        """Somebody comments on an issue."""
        count = len(self.comments) + 1
        comment = {
            "id": 9000 + count,
            "body": body,
            "user": {"login": login},
            "html_url": f"{self._url}/issues/{number}#issuecomment-{9000 + count}",
            "updated_at": f"2999-01-01T{count // 3600:02}:{count // 60 % 60:02}:{count % 60:02}Z",
        }
        self.comments.append(comment)
        return comment
