"""The console as a part of the server: who is let in, what every answer carries, and the stream of changes."""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncGenerator
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from rookery.core.errors import InternalError, RookeryError, ValidationFailed
from rookery.identity.signing_in import SignedIn
from rookery.web.headers import guarded, safely
from rookery.web.listener import Listener
from rookery.web.live import MOST, PING_S, Live
from rookery.web.readings import Readings
from rookery.web.rendering import rendered
from rookery.web.routing import Address, addresses
from rookery.web.session_stream import SessionStreams
from rookery.web.sign_in import SignIn
from rookery.web.signed_in import Cookies, is_form_token, who
from rookery.web.signing_on import SigningOn
from rookery.web.static import serve_static
from rookery.web.visit import Visit

if TYPE_CHECKING:
    from rookery.app import Platform

log = logging.getLogger("rookery.web")
BODY_S = 120.0
STALE = "this form belongs to another session: load its page again"


class TooLarge(ValidationFailed):
    http = 413


class StaleForm(ValidationFailed):
    http = 403


class Console:
    """The pages of one server. Close it before the server ends: its streams would go on for ever."""

    def __init__(self, platform: "Platform") -> None:
        self.platform = platform
        self.cookies = Cookies(platform)
        self.live = Live(platform)
        self._readings = Readings()
        self._session_streams = SessionStreams(platform, self.cookies, self._readings)
        self._sign_in = SignIn(platform, self.cookies)
        self._signing_on = SigningOn(platform, self._sign_in)

    def routes(self) -> list[Route]:
        """The addresses, with those of files and of the stream."""
        secure = self.cookies.secure
        return [
            Route("/static/{name:path}", safely(serve_static, secure=secure), methods=["GET"]),
            Route("/live", safely(self._stream, secure=secure), methods=["GET"]),
            Route("/sessions/{id}/events", safely(self._session_streams.follow, secure=secure), methods=["GET"]),
            *self._signing_on.routes(),
            *self._sign_in.routes(),
            *(
                Route(each.path, safely(partial(self._answer, each), secure=secure), methods=[each.method])
                for each in addresses()
            ),
        ]

    async def visitor(self, request: Request) -> str | None:
        """The tenant of whoever is signed in, for pages that anybody may see; None if nobody is."""
        found = await who(self.platform, self.cookies, request, keep=False)
        return None if found is None else found[0].tenant

    async def unknown(self, request: Request, error: Exception) -> Response:
        """What is said where there is no page: a page for browsers, a word for programs."""
        status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
        words = "there is no such page" if status == 404 else "this address does not take such a request"
        values = {"title": "This did not work", "message": words, "hint": ""}
        if "text/html" in request.headers.get("accept", ""):
            response: Response = HTMLResponse(rendered("plain.html", values), status, headers)
        else:
            response = PlainTextResponse("Not Found" if status == 404 else "Method Not Allowed", status, headers)
        return guarded(response, secure=self.cookies.secure)

    async def close(self) -> None:
        await self._session_streams.close()
        await self.live.close()
        await self._signing_on.close()

    async def _answer(self, address: Address, request: Request) -> Response:
        visit: Visit | None = None
        try:
            found = await who(self.platform, self.cookies, request)
            if found is None:
                return self._to_sign_in(request)
            visit = Visit(self.platform, self.cookies, self._readings, request, *found)
            if address.method == "POST":
                visit.form = await _form(request, address.max_body)
                given = request.headers.get("x-csrf-token") or visit.word("csrf")
                if not is_form_token(found[1], given):
                    raise StaleForm(STALE, hint="then send it once more")
            response = await address.handler(visit)
            if found[0].stale:
                self.cookies.renew(response, found[1])
            return response
        except RookeryError as error:
            return self._plain(error) if visit is None else await _refused(visit, error)
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            failed = InternalError("the server failed", hint="its log says where")
            return self._plain(failed) if visit is None else await _refused(visit, failed)
        finally:
            if visit is not None:
                await visit.form.close()

    def _to_sign_in(self, request: Request) -> Response:
        """Nobody is signed in: where one signs in, and back to here afterwards."""
        back = _page_of(request)
        to = "/sign-in" if back == "/" or request.method != "GET" else f"/sign-in?next={quote(back)}"
        if request.headers.get("hx-request") == "true":
            return Response(status_code=204, headers={"HX-Redirect": to})
        return RedirectResponse(to, 303)

    def _plain(self, error: RookeryError) -> Response:
        values = {"title": "This did not work", "message": error.message, "hint": error.hint}
        return HTMLResponse(rendered("plain.html", values), error.http)

    async def _stream(self, request: Request) -> Response:
        """The topics named by `on`, as events without content, whenever something in them has changed."""
        found = await who(self.platform, self.cookies, request, keep=False)
        if found is None:
            return Response(status_code=401)
        if len(self.live.listeners) >= MOST:
            return Response(status_code=503, headers={"Retry-After": "30"})
        headers = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._frames(request, found[0]), 200, headers, "text/event-stream")

    async def _frames(self, request: Request, signed_in: SignedIn) -> AsyncGenerator[bytes]:
        yield b": here\n\n"
        query = request.query_params
        last, topics = request.headers.get("last-event-id", ""), frozenset(query.get("on", "").split(","))
        listener = Listener(signed_in, topics, last=last, feed=query.get("feed", ""), query=query)
        checked = time.monotonic()
        async with contextlib.aclosing(self.live.follow(listener)) as following:
            async for news in following:
                if time.monotonic() - checked >= PING_S:
                    if await who(self.platform, self.cookies, request, keep=False) is None:
                        return
                    checked = time.monotonic()
                yield news or b": ping\n\n"


async def _form(request: Request, max_body: int) -> FormData:
    """What a form has sent."""
    length = request.headers.get("content-length")
    if length is None and request.headers.get("transfer-encoding") is None:
        return FormData()
    if length is None or not length.isdecimal() or int(length) > max_body:
        raise TooLarge(f"a form may have {max_body:,} bytes", hint="send less")
    try:
        async with asyncio.timeout(BODY_S):
            return await request.form(max_files=50, max_fields=5000, max_part_size=max_body)
    except (TimeoutError, ClientDisconnect):
        raise TooLarge("the form did not come in time", hint="send it again") from None


async def _refused(visit: Visit, error: RookeryError) -> Response:
    """What was refused, in words: as a notice for htmx, else as a page of its own."""
    words = {"title": "This did not work", "message": error.message, "hint": error.hint}
    if visit.is_htmx:
        said = ". ".join(part for part in (error.message, error.hint) if part)
        headers = {"HX-Reswap": "none", "HX-Trigger": json.dumps({"refused": said})}
        return Response(status_code=error.http, headers=headers)
    try:
        return await visit.render("error.html", status=error.http, **words)
    except RookeryError:
        return HTMLResponse(rendered("plain.html", words), error.http)


def _page_of(request: Request) -> str:
    """The page that is shown, from its path on: a part that fetches itself is none to come back to."""
    try:
        shown = urlsplit(request.headers.get("hx-current-url") or str(request.url))
    except ValueError:
        return "/"
    return shown.path + (f"?{shown.query}" if shown.query else "")
