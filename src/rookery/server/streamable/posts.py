"""POST: a message of any revision, told apart by its headers, and answered in the way of its revision."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    validate_mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.types import Receive, Send

from rookery.server.auth import Credential
from rookery.server.mcp import init_options
from rookery.server.session import Session, open_session
from rookery.server.streamable.answers import Headers, send_empty
from rookery.server.streamable.exchange import Exchange, Notice
from rookery.server.streamable.requests import (
    VERSION,
    HttpRequest,
    Refusal,
    check_body_headers,
    parse,
    read_body,
    unsupported_version,
)
from rookery.server.streamable.sessions import HttpSession, new_session_id, owner_of, record_id, session_header

if TYPE_CHECKING:
    from rookery.server.streamable.endpoint import Endpoint

LISTEN = "subscriptions/listen"


@dataclass(slots=True)
class Post:
    """One message that came in, from whom, and the way back."""

    http: HttpRequest
    headers: Headers
    message: dict[str, Any]
    credential: Credential
    identity: Session
    receive: Receive
    send: Send

    def exchange(self, *, modern: bool = False, back: HttpSession | None = None) -> Exchange:
        """The answer to it, on its way."""
        return Exchange(
            self.http, self.send, self.receive, self.message, headers=self.headers, modern=modern, back=back
        )

    async def accepted(self) -> None:
        """It was taken, and there is nothing to say to it."""
        await send_empty(self.send, 202, self.headers)


class Posts:
    """Answers POST requests of an endpoint."""

    def __init__(self, endpoint: "Endpoint") -> None:
        settings = endpoint.platform.settings
        self._endpoint = endpoint
        self._server = endpoint.server
        self._max_bytes = settings.http_max_body_bytes
        self._plain = settings.http_answers == "json"
        self._at_once = settings.http_answers == "sse"
        # Few tools want arguments repeated as headers, and a look at every schema in every call costs.
        self._mirroring = {tool.name for tool in endpoint.platform.registry if x_mcp_header_map(tool.input_schema)}

    async def serve(self, http: HttpRequest, headers: Headers, receive: Receive, send: Send) -> None:
        credential, identity = await self._endpoint.who(http)
        check_body_headers(http, self._max_bytes)
        if not (http.accepts_json or http.accepts_sse):
            raise Refusal(406, "the client must accept application/json and text/event-stream")
        message = parse(await self._body(receive))
        if self._plain and http.accepts_json and message.get("method") != LISTEN:
            http.accepts_sse = False
        post = Post(http, headers, message, credential, identity, receive, send)
        if self._is_modern(http, message):
            await self._modern(post)
        elif self._endpoint.stateful:
            await self._stateful(post)
        else:
            await self._stateless(post)

    async def _body(self, receive: Receive) -> bytes:
        """The whole body. A server that stops does not wait for the rest of one."""
        task = asyncio.current_task()
        assert task is not None
        self._endpoint.reading.add(task)
        try:
            return await read_body(receive, self._max_bytes)
        finally:
            self._endpoint.reading.discard(task)

    def _is_modern(self, http: HttpRequest, message: dict[str, Any]) -> bool:
        """Whether the message is of the era without a handshake; one of no revision that we speak is refused."""
        version = http.headers.get(VERSION)
        if version in MODERN_PROTOCOL_VERSIONS:
            return True
        if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS:
            meta: Any = params_of(message).get("_meta")
            return isinstance(meta, dict) and types.PROTOCOL_VERSION_META_KEY in meta
        raise unsupported_version(version, message.get("id") if "method" in message else None)

    # From 2026-07-28 on: every request stands for itself.

    async def _modern(self, post: Post) -> None:
        http, message = post.http, post.message
        if "method" not in message:
            raise Refusal(400, "answers are not posted in this revision; they travel in the next request")
        if "id" not in message:
            # There is nothing that a notification could act on, but clients send them.
            await post.accepted()
            return
        method = message["method"]
        verdict = classify_inbound_request(message, headers=http.headers)
        if isinstance(verdict, InboundLadderRejection):
            raise _rejected(verdict, message["id"])
        self._check_mirrored(http, message)
        if method == LISTEN and not http.accepts_sse:
            raise Refusal(406, "the answer is an event stream; accept text/event-stream", request_id=message["id"])
        connection = Connection.from_envelope(
            verdict.protocol_version, verdict.client_info, verdict.client_capabilities
        )
        exchange = post.exchange(modern=True)
        runner = ServerRunner(self._server, connection, post.identity)
        handling = runner.on_request(exchange, method, message.get("params"))
        await self._exchange(exchange, handling, listening=post.identity if method == LISTEN else None)

    def _check_mirrored(self, http: HttpRequest, message: dict[str, Any]) -> None:
        """Refuse a call whose headers and arguments say different things: a proxy may have looked at the headers."""
        if message["method"] != "tools/call":
            return
        name, arguments = params_of(message).get("name"), params_of(message).get("arguments")
        tool = self._endpoint.platform.registry.get(name) if isinstance(name, str) else None
        if tool is None or not isinstance(arguments, dict | None) or tool.name not in self._mirroring:
            return
        rejection = validate_mcp_param_headers(tool.input_schema, cast("dict[str, Any]", arguments or {}), http.headers)
        if rejection is not None:
            raise _rejected(rejection, message["id"])

    # Before: a handshake, and a session unless there are none here.

    async def _stateless(self, post: Post) -> None:
        message = post.message
        if "method" not in message or "id" not in message:
            await post.accepted()
            return
        identity = post.identity.apart()
        version = post.http.headers.get(VERSION, types.DEFAULT_NEGOTIATED_VERSION)
        connection = Connection.from_envelope(version, None, None)
        options = await init_options(self._server, identity) if message["method"] == "initialize" else None
        runner = ServerRunner(self._server, connection, identity, init_options=options)
        exchange = post.exchange()
        await self._exchange(exchange, runner.on_request(exchange, message["method"], message.get("params")))

    async def _stateful(self, post: Post) -> None:
        http, message = post.http, post.message
        method = message.get("method")
        if method == "initialize" and "id" in message and "mcp-session-id" not in http.headers:
            session_id = new_session_id()
            with self._endpoint.table.place_for(session_id):
                exchange = post.exchange()
                await self._exchange(exchange, self._shake_hands(session_id, exchange, post))
            return
        session = await self._endpoint.session(http, post.credential, post.identity)
        post.headers = (*post.headers, *session.header)
        options = await init_options(self._server, session.session) if method == "initialize" else None
        runner = ServerRunner(self._server, session.connection, session.session, init_options=options)
        if method is not None and "id" in message:
            exchange = post.exchange(back=session)
            await self._on_session(session, exchange, runner.on_request(exchange, method, message.get("params")))
            return
        if method is None:
            session.answered(message)
        else:
            if method == "notifications/cancelled":
                session.cancelled(params_of(message))
            await runner.on_notify(Notice(http), method, message.get("params"))
        await post.accepted()

    async def _shake_hands(self, session_id: str, exchange: Exchange, post: Post) -> dict[str, Any]:
        """Open a session. It counts once the handshake has succeeded and the record has it."""
        plain = exchange.headers
        # Already now: an answer that takes long begins as a stream before it is there.
        exchange.headers = (*plain, session_header(session_id))
        try:
            binding = replace(post.credential.binding, session=record_id(session_id))
            opened = await open_session(self._endpoint.platform, binding)
            session = HttpSession(session_id, opened, owner_of(await post.identity.actor()), post.credential.key)
            options = await init_options(self._server, opened)
            runner = ServerRunner(self._server, session.connection, opened, init_options=options)
            result = await runner.on_request(exchange, "initialize", post.message.get("params"))
            await self._endpoint.table.add(session)
        except BaseException:
            exchange.headers = plain
            raise
        return result

    async def _on_session(self, session: HttpSession, exchange: Exchange, handling: Awaitable[dict[str, Any]]) -> None:
        key = coerce_request_id(exchange.request_id)
        session.running[key] = exchange
        session.calls.add(exchange)
        session.busy += 1
        try:
            await self._exchange(exchange, handling)
        finally:
            session.left()
            session.calls.discard(exchange)
            if session.running.get(key) is exchange:
                del session.running[key]

    async def _exchange(
        self, exchange: Exchange, handling: Awaitable[dict[str, Any]], *, listening: Session | None = None
    ) -> None:
        exchange.listening = listening
        exchange.wanting = self._endpoint.wanting if self._endpoint.asks_for_scopes else None
        self._endpoint.exchanges.add(exchange)
        try:
            await exchange.answer(handling, at_once=self._at_once)
        finally:
            self._endpoint.exchanges.discard(exchange)


def params_of(message: dict[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", message.get("params") or {})


def _rejected(rejection: InboundLadderRejection, request_id: int | str) -> Refusal:
    status = ERROR_CODE_HTTP_STATUS.get(rejection.code, 400)
    return Refusal(status, rejection.message, code=rejection.code, data=rejection.data, request_id=request_id)
