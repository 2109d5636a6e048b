"""The cookies of a browser: that it is signed in, or is about to be. And the token that its forms carry."""

import hashlib
import hmac
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from rookery.identity.signing_in import SESSION_LASTS_MS, SignedIn, find_session, keep_session

if TYPE_CHECKING:
    from rookery.app import Platform

ENTERING_LASTS_S = 20 * 60
LONGEST = 200


class Cookies:
    """Cookies of this server alone: another on the same machine, at another port, has others."""

    def __init__(self, platform: "Platform") -> None:
        settings = platform.settings
        self.secure = settings.public_url.startswith("https://") if settings.public_url else False
        prefix = "__Host-" if self.secure else ""
        self.session = f"{prefix}rookery_{settings.port}"
        self.notice = f"{prefix}rookery_notice_{settings.port}"
        self.entering = f"{prefix}rookery_entering_{settings.port}"
        """A secret of a browser that is not signed in, to which its form is bound."""
        self.journey = f"{prefix}rookery_sso_{settings.port}"
        """The secret of an attempt with a single sign-on, and where it leads."""

    def set(self, response: Response, name: str, value: str, *, lasts_s: int | None = None) -> None:
        response.set_cookie(name, value, max_age=lasts_s, path="/", secure=self.secure, httponly=True, samesite="lax")

    def drop(self, response: Response, name: str) -> None:
        response.delete_cookie(name, path="/", secure=self.secure, httponly=True, samesite="lax")

    def sign_in(self, response: Response, token: str) -> None:
        """Let the browser keep its session, from now on for as long as it lasts."""
        self.set(response, self.session, token, lasts_s=SESSION_LASTS_MS // 1000)

    def renew(self, response: Response, token: str) -> None:
        """Let the browser keep its session for longer, unless the answer has just ended or replaced it."""
        if not any(each.startswith(f"{self.session}=") for each in response.headers.getlist("set-cookie")):
            self.sign_in(response, token)

    def entered(self, request: Request) -> str:
        """The secret that the browser was given on its way in; empty if it has none."""
        token = request.cookies.get(self.entering, "")
        return token if 40 <= len(token) <= LONGEST else ""


def form_token(session_token: str) -> str:
    """What every form of a session carries. No other site can know it, and it tells nothing of the session."""
    return hashlib.sha256(b"rookery form\0" + session_token.encode("utf-8", "replace")).hexdigest()


def is_form_token(session_token: str, given: str) -> bool:
    return hmac.compare_digest(form_token(session_token).encode(), given.encode("utf-8", "replace"))


async def who(
    platform: "Platform", cookies: Cookies, request: Request, *, keep: bool = True
) -> tuple[SignedIn, str] | None:
    """Who sends the request, and the token of their session; None if nobody is signed in.

    With `keep` the session lasts longer, for which the browser has to be told so too: `Cookies.renew`.
    """
    token = request.cookies.get(cookies.session)
    if not token or len(token) > LONGEST:
        return None
    found = await platform.database.read(lambda tx: find_session(tx, token))
    if found is None:
        return None
    if found.stale and keep:
        await platform.database.change(lambda tx: keep_session(tx, found.id))
    return found, token
