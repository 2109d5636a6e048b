"""Where other programs report that something has happened: POST /hooks/… Each hook checks its own secret."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rookery.core.errors import RookeryError
from rookery.core.hook import MAX_BODY, Hook, HookRequest

if TYPE_CHECKING:
    from rookery.app import Platform

log = logging.getLogger("rookery.hooks")
HOOKS = "/hooks/"
BODY_S = 30.0
TOO_LARGE = {"error": f"the body has more than {MAX_BODY} bytes"}
TOO_SLOW = {"error": f"the body did not come within {BODY_S:g} s"}


def hook_routes(platform: "Platform") -> list[Route]:
    """The addresses of every hook."""
    return [Route(f"{HOOKS}{hook.pattern}", _endpoint(platform, hook), methods=["POST"]) for hook in platform.hooks]


def _endpoint(platform: "Platform", hook: Hook) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            async with asyncio.timeout(BODY_S):
                body = await _body(request)
        except (TimeoutError, ClientDisconnect):
            return JSONResponse(TOO_SLOW, 408)
        if body is None:
            return JSONResponse(TOO_LARGE, 413)
        headers = {name.lower(): value for name, value in request.headers.items()}
        given = HookRequest({name: str(value) for name, value in request.path_params.items()}, headers, body)
        try:
            told = await hook.handler(platform.calls, given)
        except RookeryError as error:
            return JSONResponse({"error": error.message}, 503 if error.retryable else 400)
        except Exception:
            log.exception("the hook %s failed", hook.pattern)
            return JSONResponse({"error": "the hook failed"}, 500)
        return JSONResponse(told.body, told.status)

    return answer


async def _body(request: Request) -> bytes | None:
    """The body; None if it is too large."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            return None
    return body
