"""The card and the JSON-RPC endpoint, for A2A 1.0 and 0.3 alike. The SDK is loaded with the first request."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message

from rookery.core.errors import ConfigurationError, RookeryError
from rookery.db.tx import Tx
from rookery.domains.a2a import sdk
from rookery.server.a2a.admission import Door, Refused, retry_after
from rookery.server.a2a.taker import Taker, taker_of, usual_taker

if TYPE_CHECKING:
    from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher

ENDPOINT = "/a2a"
CARD_AGE_S = 300
MOST_CARDS = 64
NAME = "Rookery"
LIMIT_S = 10.0
LEFT_TO_HTTP = (403, 429, 503)
"""What the protocol has no errors for."""
GONE = 499
"""For the log of a proxy: nobody reads it."""


class A2aEndpoint:
    """Answers for the SDK, which knows the protocol; what is done is ours."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._platform = door.platform
        self._dispatcher: JsonRpcDispatcher | None = None
        self._cards: dict[tuple[str, str, Taker], tuple[dict[str, Any], str]] = {}

    async def card(self, request: Request) -> Response:
        """What this server can do, for everybody."""
        return await self._shown(request, ENDPOINT, lambda tx: usual_taker(tx, self._platform))

    async def agent_card(self, request: Request) -> Response:
        """The same of one agent, for whoever has a token."""
        agent: str = request.path_params["agent"]
        try:
            actor = await self._door.actor(request)
        except Refused as refused:
            return refused.response
        return await self._shown(
            request, f"{ENDPOINT}/agents/", lambda tx: taker_of(tx, self._platform, actor.tenant, agent)
        )

    async def _shown(self, request: Request, place: str, find: Callable[[Tx], Taker]) -> Response:
        base = self._platform.settings.public_url or f"{request.url.scheme}://{request.url.netloc}"
        try:
            taker = await self._platform.database.read(find, timeout_s=LIMIT_S)
            card, tag = await self._card(base, place, taker)
        except ConfigurationError as error:
            return _missing(error)
        except RookeryError as error:
            return JSONResponse({"error": error.message}, 404 if error.http == 404 else 503)
        headers = {"ETag": tag, "Cache-Control": f"max-age={CARD_AGE_S}", "Vary": "Host"}
        if tag.removeprefix("W/") in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return JSONResponse(card, headers=headers)

    async def _card(self, base: str, place: str, taker: Taker) -> tuple[dict[str, Any], str]:
        """The card, and its mark. An agent's own endpoint ends with its id."""
        await sdk.load("rookery.server.a2a.card")
        from rookery.server.a2a.card import card_for

        known = base, place, taker
        if known not in self._cards:
            if len(self._cards) >= MOST_CARDS:
                self._cards.clear()
            own = place != ENDPOINT
            endpoint = f"{base}{place}{taker.agent_id}" if own else f"{base}{place}"
            made = card_for(self._platform, base, endpoint, taker, taker.name if own else NAME)
            digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()
            self._cards[known] = made, f'W/"{digest}"'
        return self._cards[known]

    async def rpc(self, request: Request) -> Response:
        """One request of either revision of the protocol."""
        try:
            request.state.actor = await self._door.actor(request)
            body = await self._door.body(request)
            dispatcher = await self._loaded()
        except Refused as refused:
            return refused.response
        except ConfigurationError as error:
            return _missing(error)
        request.state.refused = None
        request.state.target = request.path_params.get("agent")
        handling = asyncio.create_task(_begun(dispatcher, Request(request.scope, _again(body))))
        response = await _unless_gone(request, handling)
        refused_for: RookeryError | None = request.state.refused
        if refused_for is not None and refused_for.http in LEFT_TO_HTTP:
            response.status_code = refused_for.http
            response.headers.update(retry_after(refused_for))
        return response

    async def _loaded(self) -> "JsonRpcDispatcher":
        if self._dispatcher is None:
            await sdk.load("rookery.server.a2a.handler")
            from rookery.server.a2a.handler import make_dispatcher

            self._dispatcher = make_dispatcher(self._platform)
        return self._dispatcher


def _missing(error: ConfigurationError) -> Response:
    return JSONResponse({"error": error.message, "hint": error.hint}, 501)


async def _begun(dispatcher: "JsonRpcDispatcher", request: Request) -> Response:
    """The response. Of a stream the first event is there: if it is a refusal, the status of the answer says so."""
    response = await dispatcher.handle_requests(request)
    rest: AsyncIterator[Any] | None = getattr(response, "body_iterator", None)
    if rest is None:
        return response
    first = await anext(rest, None)
    refused_for: RookeryError | None = request.state.refused
    if first is not None and refused_for is not None and refused_for.http in LEFT_TO_HTTP:
        return JSONResponse(json.loads(first["data"]))
    cast(Any, response).body_iterator = _from(first, rest)
    return response


async def _from(first: Any, rest: AsyncIterator[Any]) -> AsyncGenerator[Any]:
    async with aclosing(cast("AsyncGenerator[Any]", rest)):
        if first is not None:
            yield first
        async for each in rest:
            yield each


async def _unless_gone(request: Request, handling: "asyncio.Task[Response]") -> Response:
    """The response; for whoever has hung up nothing is done any more."""
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((handling, gone), return_when=asyncio.FIRST_COMPLETED)
        return handling.result() if handling.done() else Response(status_code=GONE)
    finally:
        for each in (handling, gone):
            each.cancel()
        await asyncio.wait((handling, gone))


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _again(body: bytes) -> Callable[[], Awaitable[Message]]:
    """The body once more, for whoever reads it next."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
