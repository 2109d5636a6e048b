"""The MCP endpoint: POST, GET, DELETE and OPTIONS on one path, for every revision that the SDK speaks."""

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel import Server
from starlette.types import Receive, Scope, Send

from rookery.core.errors import (
    InternalError,
    NotFound,
    PermissionDenied,
    RookeryError,
    ServiceUnavailable,
    Unauthorized,
)
from rookery.server.auth import Authenticator, Credential
from rookery.server.hub import Hub
from rookery.server.session import Session, open_session
from rookery.server.streamable.answers import Headers, send_empty, send_json, send_refusal, start_events
from rookery.server.streamable.exchange import Exchange
from rookery.server.streamable.guard import Guard
from rookery.server.streamable.identities import Identities
from rookery.server.streamable.posts import Posts
from rookery.server.streamable.requests import HttpRequest, Refusal, is_modern
from rookery.server.streamable.session_table import SessionTable
from rookery.server.streamable.sessions import HttpSession, owner_of
from rookery.server.streamable.status import send_status
from rookery.server.streamable.streams import serve_stream

if TYPE_CHECKING:
    from rookery.app import Platform

METHODS = "GET, HEAD, POST, DELETE, OPTIONS"
STATELESS_METHODS = "GET, HEAD, POST, OPTIONS"
GRACE_S = 1.0
LAST_WORD_S = 0.2
LATER = "try again in a moment; the server's log says what is wrong"
log = logging.getLogger("rookery.http")


class Endpoint:
    """Serves one path. What POST does is in posts.py."""

    def __init__(self, platform: "Platform", server: Server[Any], hub: Hub, authenticator: Authenticator) -> None:
        settings = platform.settings
        self.platform = platform
        self.server = server
        self.guard = Guard(settings)
        self.stateful = settings.http_sessions != "stateless"
        self.methods = METHODS if self.stateful else STATELESS_METHODS
        self.exchanges: set[Exchange] = set()
        self.reading: set[asyncio.Task[Any]] = set()
        """Requests whose body has yet to come."""
        self.table = SessionTable(platform, hub)
        self.closing = False
        self.asks_for_scopes = authenticator.mode == "oauth"
        self._auth = authenticator
        self._identities = Identities(platform, hub)
        self._posts = Posts(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = ()
        try:
            http = HttpRequest(scope)
            self.guard.check(http)
            headers = self.guard.cors(http)
            await self._serve(http, headers, receive, send)
        except Refusal as refusal:
            await send_refusal(send, refusal, headers)
        except asyncio.CancelledError:
            if not self.closing:
                raise
            # What had no answer yet gets this one; otherwise there is nothing left to say.
            with contextlib.suppress(RuntimeError, TimeoutError):
                async with asyncio.timeout(LAST_WORD_S):
                    await send_refusal(send, _stopping(), headers)
        except RookeryError as error:
            # Rights or the database went away after the caller was known.
            challenge = self._challenge(HttpRequest(scope), error) if isinstance(error, Unauthorized) else ()
            await send_refusal(send, _refused(error.http, error, challenge), headers)
        except Exception:
            log.exception("a request failed unexpectedly")
            # If the answer had begun already, there is nothing left to say.
            with contextlib.suppress(RuntimeError):
                fault = InternalError("the server failed unexpectedly")
                await send_refusal(send, _refused(500, fault, ()), headers)

    async def _serve(self, http: HttpRequest, headers: Headers, receive: Receive, send: Send) -> None:
        if self.closing:
            raise _stopping()
        match http.method:
            case "POST":
                await self._posts.serve(http, headers, receive, send)
            case "GET" if "text/event-stream" in http.headers.get("accept", "").lower():
                await self._listen(http, headers, receive, send)
            case "GET" | "HEAD":
                await send_status(http, send, headers)
            case "DELETE":
                await self._delete(http, headers, send)
            case "OPTIONS":
                await send_empty(send, 204, self.guard.preflight(http, self.methods))
            case _:
                raise self.not_allowed(self.methods)

    def not_allowed(self, methods: str) -> Refusal:
        return Refusal(405, f"this endpoint takes {methods}", headers=((b"allow", methods.encode()),))

    async def who(self, http: HttpRequest) -> tuple[Credential, Session]:
        """Who asks. Raises the refusal that tells a client how to authenticate, and a person what to do."""
        try:
            credential = await self._auth.authenticate(http.headers.get("authorization"))
            identity = await self._identities.session(credential)
        except Unauthorized as error:
            self._count_attempt("refused")
            raise _refused(401, error, self._challenge(http, error)) from None
        except NotFound as error:
            self._count_attempt("refused")
            # The project is closed to this agent. 404 would make its client shake hands again, and again.
            raise _refused(403, PermissionDenied(error.message, hint=error.hint), ()) from None
        except RookeryError as error:
            self._count_attempt("failed")
            # Whoever it is has proven nothing yet, and the message may tell where the database is.
            log.error("a caller could not be looked up: %s", error.message)
            trouble = ServiceUnavailable("the server cannot look up who you are", hint=LATER)
            raise _refused(503, trouble, ((b"retry-after", b"5"),)) from None
        self._count_attempt("accepted")
        return credential, identity

    def _count_attempt(self, outcome: str) -> None:
        self.platform.metrics.count("mcp_auth_attempts_total", mode=self._auth.mode, outcome=outcome)

    def _metadata_address(self, http: HttpRequest) -> str | None:
        if self._auth.mode != "oauth":
            return None
        settings = self.platform.settings
        origin = settings.public_url.rstrip("/") or f"http://{http.headers['host']}"
        return f"{origin}/.well-known/oauth-protected-resource{settings.http_path}"

    def wanting(self, http: HttpRequest) -> Headers:
        """What tells an OAuth client which scopes to come back with."""
        return self._challenge(http, PermissionDenied("the token lacks a scope"))

    def _challenge(self, http: HttpRequest, error: RookeryError) -> Headers:
        challenge = self._auth.challenge(error, self._metadata_address(http), http.missing_scopes)
        return ((b"www-authenticate", challenge.encode("latin-1")),)

    async def session(self, http: HttpRequest, credential: Credential, identity: Session) -> HttpSession:
        """The session that the request names, if it belongs to who asks."""
        session_id = http.headers.get("mcp-session-id")
        if session_id is None:
            raise Refusal(400, "the header Mcp-Session-Id is missing; initialize opens a session")
        session = self.table.get(session_id, owner_of(await identity.actor()))
        if session is None:
            raise _unknown_session()
        if session.credential != credential.key:
            binding = replace(credential.binding, session=session.session.id)
            newer = await open_session(self.platform, binding)
            if session.ended:
                raise _unknown_session()
            self.table.switch(session, newer, credential.key)
        return session

    async def _listen(self, http: HttpRequest, headers: Headers, receive: Receive, send: Send) -> None:
        """The stream for what belongs to no request, or the rest of one that was cut."""
        if is_modern(http) or not self.stateful:
            raise self.not_allowed("POST, OPTIONS")
        session = await self.session(http, *await self.who(http))
        event = http.headers.get("last-event-id")
        found = session.resume(event) if event is not None else (session.standalone, None)
        if found is None:
            raise Refusal(400, "the event is not known any more; ask again for what you missed")
        stream, after = found
        if stream is session.standalone and event is None and session.primed:
            stream.prime()
        session.busy += 1
        try:
            await start_events(send, (*headers, *session.header))
            await serve_stream(stream, send, receive, after)
        finally:
            session.left()

    async def _delete(self, http: HttpRequest, headers: Headers, send: Send) -> None:
        if is_modern(http) or not self.stateful:
            raise self.not_allowed(STATELESS_METHODS)
        session = await self.session(http, *await self.who(http))
        await self.table.end([session], "client")
        await send_json(send, 200, {"status": "terminated"}, (*headers, *session.header))

    async def close(self) -> None:
        """Take nothing more in, let calls finish for a moment, then end what is left, each with an answer."""
        self.closing = True
        for task in self.reading:
            task.cancel()
        self.table.quieten()
        for session in {exchange.listening for exchange in self.exchanges if exchange.listening is not None}:
            session.close_streams()
        deadline = asyncio.get_running_loop().time() + GRACE_S
        while self.exchanges and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        for exchange in list(self.exchanges):
            exchange.cancel("stopped")
        await self.table.close()


def _unknown_session() -> Refusal:
    return Refusal(404, "the session is not found or has expired; initialize opens a new one")


def _stopping() -> Refusal:
    return Refusal(503, "the server is stopping", headers=((b"retry-after", b"5"), (b"connection", b"close")))


def _refused(status: int, error: RookeryError, headers: Headers) -> Refusal:
    message = f"{error.message}: {error.hint}" if error.hint else error.message
    return Refusal(status, message, code=error.rpc, data=error.as_dict(), headers=headers)
