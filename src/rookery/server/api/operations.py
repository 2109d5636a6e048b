"""Requests that are calls of tools: one table of them, and the few that are more than one call."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rookery.asks.tables import OPEN
from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound, RookeryError, ValidationFailed
from rookery.server.api.admission import HEADERS, Answer, Door, answered

ALWAYS = "approve for 30 days"
"""The longest that somebody can agree in advance."""
MAX_TOGETHER = 100
Verdict = Literal["approve", "deny", "answer"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One request. Its path, its query and its body together are the arguments of the tool."""

    method: str
    path: str
    tool: str
    status: int = 200


OPERATIONS = (
    Operation("GET", "/api/sessions", "list_sessions"),
    Operation("POST", "/api/sessions", "start_session", 201),
    Operation("PATCH", "/api/sessions/{session_id}", "change_session"),
    Operation("DELETE", "/api/sessions/{session_id}", "end_session"),
    Operation("POST", "/api/sessions/{session_id}/messages", "send_session_message", 202),
    Operation("POST", "/api/sessions/{session_id}/interrupt", "interrupt_session", 202),
    Operation("GET", "/api/session-stats", "get_session_stats"),
    Operation("GET", "/api/asks", "list_asks"),
    Operation("POST", "/api/intake", "submit_requests", 201),
)


def calling(door: Door, operation: Operation) -> Answer:
    """Answers by calling the tool of an operation."""

    async def answer(request: Request) -> Response:
        actor = await (await door.session(request)).actor()
        body = {} if operation.method == "GET" else await door.body(request)
        given = {**body, **_query(request), **_path(request)}
        result = await door.platform.calls.call(actor, operation.tool, given)
        return JSONResponse(result.structured, operation.status, HEADERS)

    return answered(door, answer)


def reading(door: Door, uri: str) -> Answer:
    """Answers with what the resource at `uri` holds, which is JSON; with 304 to whoever has it already."""

    async def answer(request: Request) -> Response:
        actor = await (await door.session(request)).actor()
        parts = await door.platform.calls.read(actor, uri.format(**_path(request)))
        body = parts[0].text.encode(errors="replace") if isinstance(parts[0].text, str) else parts[0].text
        headers = {
            **HEADERS,
            "Cache-Control": "private, no-cache",
            "ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"',
        }
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(body, 200, headers, "application/json")

    return answered(door, answer)


def answering(door: Door, what: Verdict) -> Answer:
    """Answers what a session's agent asks, one ask or several; the first that is refused ends it."""

    async def answer(request: Request) -> Response:
        actor = await (await door.session(request)).actor()
        wanted = _answers(what, await door.body(request))
        for ask_id in wanted:
            await _check(door, actor, _path(request)["session_id"], ask_id, what)
        asks: list[Any] = []
        for ask_id, words in wanted.items():
            try:
                result = await door.platform.calls.call(actor, "answer_ask", {"ask_id": ask_id, "answer": words})
            except RookeryError as error:
                # Somebody was faster; those before are answered all the same.
                return JSONResponse({"error": error.as_dict(), "asks": asks}, error.http, HEADERS)
            asks += result.structured["asks"]
        return JSONResponse({"asks": asks}, 200, HEADERS)

    return answered(door, answer)


async def _check(door: Door, actor: Actor, session_id: str, ask_id: str, what: Verdict) -> None:
    """Refuse an ask that is not the session's, is of another kind, or is over: nothing is answered then."""
    session = json.loads((await door.platform.calls.read(actor, f"session://{session_id}"))[0].text)
    found = await door.platform.calls.call(actor, "list_asks", {"ask_id": ask_id})
    ask: dict[str, Any] = found.structured["asks"][0]
    if ask.get("session") != session["id"]:
        raise NotFound(f"the session has not asked {ask_id[:64]}", hint="its events name what it asks")
    if (ask["kind"] == "approval") != (what in ("approve", "deny")):
        raise ValidationFailed(
            f"{ask_id[:64]} is of the kind {ask['kind']}", hint="approve or deny approvals, and answer the rest"
        )
    if ask["status"] != OPEN:
        raise Conflict(f"{ask_id[:64]} is {ask['status']} already", hint="the first answer counts")


def _answers(what: Verdict, body: dict[str, Any]) -> dict[str, str]:
    """What is said to each ask, by its id."""
    if what == "answer" and isinstance(body.get("answers"), dict):
        several = cast("dict[str, Any]", body["answers"])
        return _few({ask_id: _word(words, "answers") for ask_id, words in several.items()})
    ids: Any = body.get("ask_ids", [body.get("ask_id")])
    if not isinstance(ids, list):
        raise ValidationFailed("ask_ids is no list", hint="give ask_id, or a list of them as ask_ids")
    words = {"approve": _approval, "deny": _denial, "answer": _answer}[what](body)
    return _few({_word(ask_id, "ask_id"): words for ask_id in cast("list[Any]", ids)})


def _few(answers: dict[str, str]) -> dict[str, str]:
    if not 1 <= len(answers) <= MAX_TOGETHER:
        raise ValidationFailed(f"1 to {MAX_TOGETHER} asks can be answered together", hint="name them")
    return answers


def _approval(body: dict[str, Any]) -> str:
    return ALWAYS if body.get("always") is True else "approve"


def _denial(body: dict[str, Any]) -> str:
    reason: Any = body.get("reason")
    if reason is None or reason == "":
        return "deny"
    return f"deny: {_word(reason, 'reason')}"


def _answer(body: dict[str, Any]) -> str:
    return _word(body.get("answer"), "answer")


def _word(given: Any, name: str) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ValidationFailed(f"{name} must be a text", hint="it is missing or of another kind")
    return given


def _path(request: Request) -> dict[str, str]:
    return {name: str(value) for name, value in request.path_params.items()}


def _query(request: Request) -> dict[str, Any]:
    given: Sequence[tuple[str, str]] = request.query_params.multi_items()
    return dict(given)
