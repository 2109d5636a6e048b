"""Who comes in, and with how much: the same credentials as at the MCP endpoint, and a body within limits."""

import asyncio
import json
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from rookery.core.actor import Actor
from rookery.core.errors import RookeryError, Unauthorized
from rookery.domains.a2a.json_values import is_modest
from rookery.server.auth import Authenticator
from rookery.server.session import open_session

if TYPE_CHECKING:
    from rookery.app import Platform

BODY_S = 30.0
MAX_BODY = 512 * 1024
"""Ten times the characters that a message may have."""
MAX_VALUES = 2_000
"""In one body; a message with a few hundred parts has no more."""


class Refused(Exception):
    """The request goes no further; this is its answer."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


class Door:
    """Lets requests in."""

    def __init__(self, platform: "Platform", authenticator: Authenticator) -> None:
        self.platform = platform
        self._authenticator = authenticator

    async def actor(self, request: Request) -> Actor:
        """Who sends the request; Refused with a challenge if that is not proven."""
        try:
            credential = await self._authenticator.authenticate(request.headers.get("authorization"))
            return await (await open_session(self.platform, credential.binding)).actor()
        except Unauthorized as error:
            challenge = {"WWW-Authenticate": self._authenticator.challenge(error, None)}
            raise Refused(JSONResponse({"error": error.message}, 401, challenge)) from None
        except RookeryError as error:
            status = 503 if error.retryable else 403
            raise Refused(JSONResponse({"error": "the server cannot look up who you are"}, status)) from None

    async def body(self, request: Request) -> bytes:
        """What was sent; Refused if that is too much or comes too slowly."""
        most = min(self.platform.settings.http_max_body_bytes, MAX_BODY)
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_S):
                async for part in request.stream():
                    body += part
                    if len(body) > most:
                        raise Refused(JSONResponse({"error": f"the body has more than {most} bytes"}, 413))
        except (TimeoutError, ClientDisconnect):
            raise Refused(JSONResponse({"error": f"the body did not come within {BODY_S:g} s"}, 408)) from None
        sent = bytes(body)
        # In a thread: it may have been made to take long.
        if not await asyncio.to_thread(is_modest, sent, MAX_VALUES):
            raise Refused(JSONResponse({"error": f"the body has more than {MAX_VALUES} values"}, 413))
        return sent

    async def json(self, request: Request) -> object:
        """What was sent, as JSON; Refused if it is none."""
        try:
            return json.loads(await self.body(request))
        except (ValueError, RecursionError):
            raise Refused(JSONResponse({"error": "the body must be JSON"}, 400)) from None


def refusal(error: RookeryError) -> Response:
    """An error as an answer of the plain wire."""
    told = {"error": error.message} | ({"hint": error.hint} if error.hint else {})
    return JSONResponse(told, error.http, retry_after(error))


def retry_after(error: RookeryError) -> dict[str, str]:
    """The header that says when to come again, if that makes sense."""
    return {"Retry-After": "60" if error.http == 429 else "5"} if error.retryable else {}
