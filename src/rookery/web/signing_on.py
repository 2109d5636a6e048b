"""Signing in with a single sign-on: to the issuer and back, in one browser, for people who are known here."""

import secrets
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.identity.binding import Binding
from rookery.identity.browser_commands import make_sign_in_link
from rookery.identity.people import People, Row
from rookery.identity.store import DEFAULT_TENANT
from rookery.web.headers import safely
from rookery.web.sign_in import PATH, TOO_MANY, SignIn, address_of, next_address, our_address

if TYPE_CHECKING:
    from rookery.app import Platform
    from rookery.server.auth.single_sign_on import SingleSignOn

START, BACK = f"{PATH}/sso", f"{PATH}/sso/done"
LASTS_S = 600
STRANGER = "Nobody here is known by this account. An owner can add you on the page People, with your email."
LOST = "This browser has not begun to sign in, or too long ago. Begin again."
DENIED = "The single sign-on did not let you in."


class SigningOn:
    """The two addresses of the journey. There are none unless the settings name an issuer."""

    def __init__(self, platform: "Platform", sign_in: SignIn) -> None:
        self._platform = platform
        self._sign_in = sign_in
        self._cookies = sign_in.cookies
        self._issuer: SingleSignOn | None = None

    def routes(self) -> list[Route]:
        """The addresses, to stand before those of links."""
        if not self._platform.settings.oidc_issuer:
            return []
        secure = self._cookies.secure
        return [
            Route(START, safely(self._leave, secure=secure), methods=["GET"]),
            Route(BACK, safely(self._come_back, secure=secure), methods=["GET"]),
        ]

    async def close(self) -> None:
        if self._issuer is not None:
            await self._issuer.close()

    async def _leave(self, request: Request) -> Response:
        """To the issuer, with a secret that only this browser holds."""
        from rookery.server.auth.single_sign_on import Attempt

        secret = secrets.token_urlsafe(32)
        try:
            to = await self._single_sign_on().way_there(Attempt(secret))
        except RookeryError as error:
            return self._refused(request, error)
        response = RedirectResponse(to, 303)
        kept = f"{secret}.{quote(next_address(request), safe='')[:1500]}"
        self._cookies.set(response, self._cookies.journey, kept, lasts_s=LASTS_S)
        return response

    async def _come_back(self, request: Request) -> Response:
        """From the issuer, with a code. It counts once, and only in the browser that has begun."""
        response = await self._entered(request)
        self._cookies.drop(response, self._cookies.journey)
        return response

    async def _entered(self, request: Request) -> Response:
        from rookery.server.auth.single_sign_on import Attempt

        query, address = request.query_params, address_of(request)
        if not self._sign_in.attempts.begin(address):
            return self._sign_in.page(request, 429, error=TOO_MANY)
        secret, _, wanted = request.cookies.get(self._cookies.journey, "").partition(".")
        attempt = Attempt(secret)
        if len(secret) < 40 or not secrets.compare_digest(attempt.state.encode(), query.get("state", "").encode()):
            return self._sign_in.page(request, 403, error=LOST)
        if query.get("iss", self._platform.settings.oidc_issuer) != self._platform.settings.oidc_issuer:
            return self._sign_in.page(request, 403, error=DENIED)
        code = query.get("code", "")
        if not code or "error" in query or len(code) > 4096:
            return self._sign_in.page(request, 403, error=DENIED)
        try:
            claims = await self._single_sign_on().claims(attempt, code)
            person = await self._platform.database.read(lambda tx: self._known(tx, claims))
            if person is None:
                return self._sign_in.page(request, 403, error=STRANGER)
            response = await self._open(request, person, our_address(unquote(wanted)))
        except RookeryError as error:
            return self._refused(request, error)
        self._sign_in.attempts.worked(address)
        return response

    async def _open(self, request: Request, person: Row, to: str) -> Response:
        """Sign them in as if they had made a link and used it, which is what the audit log shows."""
        binding = Binding(tenant=DEFAULT_TENANT, person=person.id, source="web")
        platform = self._platform
        actor = await platform.database.read(lambda tx: platform.resolver.resolve(tx, binding).actor)
        made = (await platform.calls.run(actor, make_sign_in_link, {})).structured
        link = made["path"].rpartition("/")[2]
        return await self._sign_in.entered(request, DEFAULT_TENANT, person.id, link, to=to)

    def _known(self, tx: Tx, claims: dict[str, Any]) -> Row | None:
        """The person whom the settings or their email names. An email counts if the issuer vouches for it."""
        people, named = People(tx, DEFAULT_TENANT), dict(self._platform.settings.oidc_people)
        email = claims.get("email")
        if claims.get("email_verified") is not True or not isinstance(email, str):
            email = ""
        by_email = {key.lower(): value for key, value in named.items()}
        chosen = named.get(claims["sub"]) or by_email.get(email.lower())
        if chosen is not None:
            return next((row for row in people.all() if row.name.lower() == chosen[0].lower()), None)
        return people.by_email(email) if email else None

    def _refused(self, request: Request, error: RookeryError) -> Response:
        said = [part for part in (error.message, error.hint or "") if part]
        words = " ".join(f"{part[:1].upper()}{part[1:]}." for part in said)
        return self._sign_in.page(request, error.http, error=words)

    def _single_sign_on(self) -> "SingleSignOn":
        # The libraries for signatures take a tenth of a second to load, and most servers need none of them.
        from rookery.server.auth.single_sign_on import SingleSignOn

        if self._issuer is None:
            settings = self._platform.settings
            base = settings.public_url or f"http://127.0.0.1:{settings.port}"
            self._issuer = SingleSignOn(settings, base.rstrip("/") + BACK)
        return self._issuer
