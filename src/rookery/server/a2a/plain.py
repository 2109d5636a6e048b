"""The wire from before A2A had a protocol: a task is posted as plain JSON and looked at by its id. Needs no SDK."""

from datetime import UTC, datetime
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rookery.core.errors import InvalidParams, RookeryError
from rookery.domains.a2a import inbound
from rookery.domains.a2a.inbound import Incoming
from rookery.domains.a2a.store import Row
from rookery.server.a2a.admission import Door, Refused, refusal

DEFAULT_MS = 300_000
Json = dict[str, Any]


class PlainTasks:
    """`POST /a2a/tasks/send` and `GET /a2a/tasks/{id}`."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def send(self, request: Request) -> Response:
        """Take a task in and tell its id; it is done later."""
        calls = self._door.platform.calls
        try:
            actor = await self._door.actor(request)
            incoming = _incoming(await self._door.json(request), self._door.platform.settings.agent_timeout_ms)
            row = await inbound.take_in(calls, actor, incoming)
        except Refused as refused:
            return refused.response
        except RookeryError as error:
            return refusal(error)
        return JSONResponse(_shown(row))

    async def look(self, request: Request) -> Response:
        """How far a task is, for its sender."""
        try:
            actor = await self._door.actor(request)
            task_id: str = request.path_params["task"]
            database = self._door.platform.database
            found = await database.read(lambda tx: inbound.find(tx, actor, task_id), timeout_s=inbound.LIMIT_S)
            row = await inbound.current(database, found)
        except Refused as refused:
            return refused.response
        except RookeryError as error:
            return refusal(error)
        return JSONResponse(_shown(row))


def _incoming(body: object, most_ms: int) -> Incoming:
    """The task of a body, which is the params themselves or has them."""
    given = cast(Json, body) if isinstance(body, dict) else {}
    inner = given.get("params")
    params = cast(Json, inner) if isinstance(inner, dict) else given
    limit_ms = params.get("timeoutMs", DEFAULT_MS)
    if isinstance(limit_ms, bool) or not isinstance(limit_ms, int | float) or not 0 < limit_ms < float("inf"):
        raise InvalidParams("timeoutMs: must be a number of milliseconds", hint=f"such as {DEFAULT_MS}")
    depth, skill = inbound.about(params)
    return Incoming(
        text=_text(params.get("message")), skill=skill, depth=depth, limit_ms=max(1, round(min(limit_ms, most_ms)))
    )


def _text(message: object) -> str:
    if isinstance(message, dict):
        parts = cast(Json, message).get("parts")
        listed = cast("list[Any]", parts) if isinstance(parts, list) else []
        texts = [cast(Json, part).get("text") for part in listed if isinstance(part, dict)]
        message = "\n".join(text for text in texts if isinstance(text, str))
    if not isinstance(message, str):
        raise InvalidParams("message: must be a text", hint='such as {"params": {"message": "…"}}')
    return message


def _shown(row: Row) -> Json:
    said = [_message("user", row.content)]
    if row.answer is not None or row.error is not None:
        said.append(_message("agent", row.answer if row.answer is not None else row.error))
    return {
        "id": row.id,
        "state": "failed" if row.state == "canceled" else row.state,
        "messages": said,
        "sessionId": row.session_id,
        "createdAt": _moment(row.created_ms),
        "updatedAt": _moment(row.updated_ms),
    }


def _message(role: str, text: str) -> Json:
    return {"role": role, "parts": [{"type": "text", "text": text}]}


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
