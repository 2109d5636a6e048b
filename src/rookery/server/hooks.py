"""Where other programs report that something has happened: POST /hooks/… Each hook checks its own secret."""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rookery.core.errors import RookeryError
from rookery.core.hook import MAX_BODY, Hook, HookRequest

if TYPE_CHECKING:
    from rookery.app import Platform

log = logging.getLogger("rookery.hooks")
TOO_LARGE = {"error": f"the body has more than {MAX_BODY} bytes"}


def hook_routes(platform: "Platform") -> list[Route]:
    """The addresses of every hook."""
    return [Route(f"/hooks/{hook.pattern}", _endpoint(platform, hook), methods=["POST"]) for hook in platform.hooks]


def _endpoint(platform: "Platform", hook: Hook) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY:
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
