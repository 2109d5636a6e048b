"""What is reached below /hooks/…: reports of other programs, pages behind a link. Each hook checks its own secret."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from rookery.core.errors import RookeryError
from rookery.core.hook import MAX_BODY, Hook, HookAnswer, HookRequest

if TYPE_CHECKING:
    from rookery.app import Platform

log = logging.getLogger("rookery.hooks")
HOOKS = "/hooks/"
BODY_S = 30.0
TOO_LARGE = f"the body has more than {MAX_BODY} bytes"
TOO_SLOW = f"the body did not come within {BODY_S:g} s"
PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # The address of such a page is a secret.
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow",
}


Visitor = Callable[[Request], Awaitable[str | None]]


async def nobody(request: Request) -> str | None:
    """Takes no browser for one that is signed in."""


def hook_routes(platform: "Platform", visitor: Visitor = nobody) -> list[Route]:
    """The addresses of every hook. `visitor` says of which tenant's console a browser is signed in, or None."""
    return [
        Route(f"{HOOKS}{hook.pattern}", _endpoint(platform, hook, visitor), methods=list(hook.methods))
        for hook in platform.hooks
    ]


def _endpoint(platform: "Platform", hook: Hook, visitor: Visitor) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            async with asyncio.timeout(BODY_S):
                body = await _body(request)
        except (TimeoutError, ClientDisconnect):
            return _response(_refused(hook, 408, TOO_SLOW))
        if body is None:
            return _response(_refused(hook, 413, TOO_LARGE))
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = {name: str(value) for name, value in request.path_params.items()}
        # A HEAD is a GET of which only the head is wanted.
        method = "GET" if request.method == "HEAD" else request.method
        try:
            console_of = await visitor(request) if "GET" in hook.methods else None
            told = await hook.handler(platform.calls, HookRequest(path, headers, body, method, console_of))
        except RookeryError as error:
            told = _refused(hook, 503 if error.retryable else 400, error.message)
        except Exception:
            log.exception("the hook %s failed", hook.pattern)
            told = _refused(hook, 500, "the hook failed")
        return _response(told)

    return answer


def _refused(hook: Hook, status: int, reason: str) -> HookAnswer:
    return HookAnswer(status, {"error": reason}, None if hook.refusal is None else hook.refusal(reason))


def _response(told: HookAnswer) -> Response:
    if told.page is not None:
        return HTMLResponse(told.page, told.status, PAGE_HEADERS)
    return JSONResponse(told.body, told.status)


async def _body(request: Request) -> bytes | None:
    """The body; None if it is too large."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            return None
    return body
