"""Agents of the days before A2A had a protocol: tasks are posted as plain JSON and looked at by their ids."""

import math
from typing import Any, cast
from urllib.parse import quote

from rookery.core.errors import Conflict, NotFound, ServiceUnavailable
from rookery.domains.a2a.cards import AGENT, place_of
from rookery.domains.a2a.peer import MAX_ANSWER_BYTES, OPEN, REQUEST_S, Asked, Told, cut, sent_headers, unreadable
from rookery.outgoing.client import Answer, GuardedClient
from rookery.outgoing.threads import in_thread
from rookery.settings import Settings

SUBMIT_S = 30.0
_STATES = OPEN | {"completed", "failed"}


class PlainPeer:
    """One conversation. There is no way to cancel a task on this wire."""

    def __init__(self, base: str, client: GuardedClient, settings: Settings) -> None:
        self._base = base
        self._client = client
        self._headers = {
            "accept": "application/json",
            "user-agent": AGENT,
            **sent_headers(settings, place_of(base), place_of(base)),
        }

    async def send(self, asked: Asked) -> Told:
        """Post the task."""
        params = {"message": asked.text, "timeoutMs": math.ceil(asked.limit_s * 1000), **asked.about}
        answer = await self._client.request(
            "POST",
            f"{self._base}/a2a/tasks/send",
            json={"params": params},
            headers=self._headers,
            timeout_s=min(SUBMIT_S, asked.limit_s),
            max_bytes=MAX_ANSWER_BYTES,
        )
        return await in_thread(lambda: _told(answer))

    async def look(self, task: str) -> Told:
        """How far the task is."""
        answer = await self._client.request(
            "GET",
            f"{self._base}/a2a/tasks/{quote(task, safe='')}",
            headers=self._headers,
            timeout_s=REQUEST_S,
            max_bytes=MAX_ANSWER_BYTES,
        )
        return await in_thread(lambda: _told(answer))

    async def cancel(self, task: str) -> None:
        """Nothing: such agents are not asked to stop."""


def _told(answer: Answer) -> Told:
    if answer.status == 404:
        raise NotFound("the remote agent knows nothing of the task", hint="discover_agent shows its card")
    if answer.status == 429 or answer.status >= 500:
        raise ServiceUnavailable(f"the remote agent answered with {answer.status}", hint="try again later")
    if not answer.ok:
        raise Conflict(f"the remote agent answered with {answer.status}", hint="discover_agent shows its card")
    found = answer.json()
    task = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    task_id, state = task.get("id"), task.get("state")
    if not isinstance(task_id, str) or not task_id or len(task_id) > 500 or state not in _STATES:
        raise unreadable("a task without an id or a state that is known")
    return Told(cast(str, state), _said(task.get("messages")), task_id)


def _said(messages: Any) -> str:
    """The last thing that the agent said."""
    for message in reversed(cast("list[Any]", messages) if isinstance(messages, list) else []):
        if isinstance(message, dict) and cast("dict[str, Any]", message).get("role") == "agent":
            parts = cast("dict[str, Any]", message).get("parts")
            listed = cast("list[Any]", parts) if isinstance(parts, list) else []
            texts = [cast("dict[str, Any]", part).get("text") for part in listed if isinstance(part, dict)]
            return cut("\n".join(text for text in texts if isinstance(text, str)).strip())
    return ""
