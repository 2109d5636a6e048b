"""Where people sign in: by a link that works once, or by a single sign-on that the settings name."""

import secrets
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from rookery.core.errors import RookeryError, Unauthorized
from rookery.identity.binding import Binding
from rookery.identity.browser_commands import open_browser
from rookery.identity.signing_in import find_link
from rookery.web.attempts import WITHIN_S, Attempts
from rookery.web.headers import safely
from rookery.web.rendering import rendered
from rookery.web.signed_in import ENTERING_LASTS_S, Cookies, form_token, is_form_token, who

if TYPE_CHECKING:
    from rookery.app import Platform

PATH = "/sign-in"
USED = "This link was used already, or is too old."
TOO_MANY = "There were too many attempts. Wait a minute, then try again."
FOREIGN = "This form was not made for this browser. Open the link again, then press the button."
MOST_BODY = 4096


class SignIn:
    """The pages for those who are not signed in."""

    def __init__(self, platform: "Platform", cookies: Cookies) -> None:
        self.platform = platform
        self.cookies = cookies
        self.attempts = Attempts()

    def routes(self) -> list[Route]:
        """The addresses. A link only shows a button: programs that look at links in messages must not use it up."""
        endpoints = ((PATH, self._show, "GET"), (PATH + "/{token}", self._offer, "GET"))
        endpoints += ((PATH + "/{token}", self._enter, "POST"),)
        return [
            Route(path, safely(endpoint, secure=self.cookies.secure), methods=[method])
            for path, endpoint, method in endpoints
        ]

    async def _show(self, request: Request) -> Response:
        if await who(self.platform, self.cookies, request, keep=False) is not None:
            return RedirectResponse(next_address(request), 303)
        return self.page(request)

    async def _offer(self, request: Request) -> Response:
        return self.page(request, offered=True)

    async def _enter(self, request: Request) -> Response:
        """Use the link up and let the browser in, under a session that it did not have before."""
        address = address_of(request)
        if not self.attempts.begin(address):
            return self.page(request, 429, error=TOO_MANY)
        entering = self.cookies.entered(request)
        if not entering or not is_form_token(entering, await _token_of(request)):
            return self.page(request, 403, error=FOREIGN)
        token = str(request.path_params["token"])
        found = await self.platform.database.read(lambda tx: find_link(tx, token))
        if found is None:
            return self.page(request, 403, error=USED)
        try:
            response = await self.entered(request, *found, token)
        except Unauthorized:
            return self.page(request, 403, error=USED)
        except RookeryError as error:
            return self.page(request, error.http, error=f"{error.message}.")
        self.attempts.worked(address)
        return response

    async def entered(self, request: Request, tenant: str, person: str, link: str, *, to: str = "") -> Response:
        """Where a person wanted to go, with the cookie of a new session; who was signed in there is not any more."""
        before = await who(self.platform, self.cookies, request, keep=False)
        binding = Binding(tenant=tenant, person=person, source="web")
        actor = await self.platform.database.read(lambda tx: self.platform.resolver.resolve(tx, binding).actor)
        given = {
            "link": link,
            "device": request.headers.get("user-agent", "")[:2000],
            "instead_of": None if before is None else before[0].id,
        }
        made = (await self.platform.calls.run(actor, open_browser, given)).structured
        response = RedirectResponse(to or next_address(request), 303)
        self.cookies.sign_in(response, made["secret"])
        self.cookies.drop(response, self.cookies.entering)
        return response

    def page(self, request: Request, status: int = 200, **values: Any) -> Response:
        """The page on which one signs in, with the button of a link or with what was wrong."""
        entering = self.cookies.entered(request) or secrets.token_urlsafe(32)
        shown = {"offered": False, "error": "", "sso": self._sso(request), "csrf": form_token(entering), **values}
        headers = {"Retry-After": f"{WITHIN_S:.0f}"} if status == 429 else {}
        response = HTMLResponse(rendered("sign_in.html", shown), status, headers)
        self.cookies.set(response, self.cookies.entering, entering, lasts_s=ENTERING_LASTS_S)
        return response

    def _sso(self, request: Request) -> str:
        """Where the single sign-on begins; empty if there is none."""
        if not self.platform.settings.oidc_issuer:
            return ""
        to = next_address(request)
        return f"{PATH}/sso" if to == "/" else f"{PATH}/sso?next={quote(to, safe='')}"


def address_of(request: Request) -> str:
    """Where the request came from, as far as the connection says."""
    return request.client.host if request.client is not None else ""


def next_address(request: Request) -> str:
    """Where to go afterwards: an address of ours, whatever the link says."""
    return our_address(request.query_params.get("next", "/"))


def our_address(wanted: str) -> str:
    """The address if it is one of ours, else that of the first page."""
    return wanted if wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable() else "/"


async def _token_of(request: Request) -> str:
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > MOST_BODY:
        return ""
    form = await request.form(max_files=0, max_fields=10)
    given = form.get("csrf")
    return given if isinstance(given, str) else ""
