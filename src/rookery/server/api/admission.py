"""Who sends a request, what came with it, and how an error is told."""

import asyncio
import functools
import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from rookery.core.errors import InternalError, RookeryError, Unauthorized, ValidationFailed
from rookery.server.auth import Authenticator
from rookery.server.session import Session, open_session

if TYPE_CHECKING:
    from rookery.app import Platform

log = logging.getLogger("rookery.api")
BODY_S = 30.0
MAX_BODY = 4 << 20
"""Four times the characters that a message may have."""
HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
Answer = Callable[[Request], Awaitable[Response]]


class TooLarge(ValidationFailed):
    http = 413


class TooSlow(ValidationFailed):
    http = 408


class Door:
    """Lets requests in, with the same credentials as the MCP endpoint."""

    def __init__(self, platform: "Platform", authenticator: Authenticator) -> None:
        self.platform = platform
        self.authenticator = authenticator

    async def session(self, request: Request) -> Session:
        """Who sends the request; what is wrong with the credential is raised."""
        return (await self.lasting(request))[0]

    async def lasting(self, request: Request) -> tuple[Session, float | None]:
        """The same, and until when the credential was checked, as `time.time()`; None: the session looks after that."""
        credential = await self.authenticator.authenticate(request.headers.get("authorization"))
        return await open_session(self.platform, credential.binding), credential.until

    async def body(self, request: Request) -> dict[str, Any]:
        """The object that was sent; an empty one if nothing was."""
        most = min(self.platform.settings.http_max_body_bytes, MAX_BODY)
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_S):
                async for part in request.stream():
                    body += part
                    if len(body) > most:
                        raise TooLarge(f"the body has more than {most} bytes", hint="put long texts into a file")
        except (TimeoutError, ClientDisconnect):
            raise TooSlow(f"the body did not come within {BODY_S:g} s", hint="send it again") from None
        if not body:
            return {}
        try:
            # Not on the event loop: it may have been made to take long.
            found: Any = await asyncio.to_thread(json.loads, bytes(body))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ValidationFailed("the body is no JSON object", hint='such as {"text": "hello"}')
        return cast("dict[str, Any]", found)

    def told(self, error: RookeryError) -> Response:
        """An error as an answer."""
        headers = dict(HEADERS)
        if isinstance(error, Unauthorized):
            headers["WWW-Authenticate"] = self.authenticator.challenge(error, None)
        elif error.retryable:
            headers["Retry-After"] = "60" if error.http == 429 else "5"
        return JSONResponse({"error": error.as_dict()}, error.http, headers)


def answered(door: Door, work: Answer) -> Answer:
    """The same with every error told as JSON; a fault of ours is logged, not shown."""

    @functools.wraps(work)
    async def answer(request: Request) -> Response:
        try:
            return await work(request)
        except RookeryError as error:
            return door.told(error)
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return door.told(InternalError("the server failed", hint="its log says where"))

    return answer
