"""An OpenID Connect issuer with whom people sign in: the way there, and what its answer proves.

Authorization code flow with PKCE. What comes back is believed only if the issuer's own keys signed it, for this server,
for this very attempt of this very browser, and not too long ago.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, urlencode

from rookery.core.errors import ServiceUnavailable, Unauthorized
from rookery.server.auth.claims import check_times
from rookery.server.auth.fetching import fetch
from rookery.server.auth.jwks import Keys
from rookery.server.auth.metadata import ALGORITHMS
from rookery.server.auth.signed import checked_claims, header_of
from rookery.settings import Settings
from rookery.settings.addresses import safe_address

log = logging.getLogger("rookery.auth")
FRESH_S = 3600.0
SCOPES = "openid email profile"
LATER = "try again later, or sign in with a link of rookery login"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What the issuer says of itself."""

    authorization: str
    token: str
    keys: Keys
    posts_secret: bool


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of one browser. Everything follows from the secret that only this browser holds."""

    secret: str

    @property
    def state(self) -> str:
        return self._part("state")

    @property
    def nonce(self) -> str:
        return self._part("nonce")

    @property
    def verifier(self) -> str:
        return self._part("verifier")

    @property
    def challenge(self) -> str:
        return _base64(hashlib.sha256(self.verifier.encode()).digest())

    def _part(self, name: str) -> str:
        key = self.secret.encode("utf-8", "replace")
        return _base64(hmac.digest(key, b"rookery sign-on\0" + name.encode(), "sha256"))


class SingleSignOn:
    """The issuer that the settings name. What it says of itself is asked for when needed, and again after an hour."""

    def __init__(self, settings: Settings, redirect: str, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._redirect = redirect
        self._clock = clock
        self._found: tuple[float, Endpoints] | None = None
        self._finding = asyncio.Lock()

    async def way_there(self, attempt: Attempt) -> str:
        """Where the browser has to go to sign in."""
        endpoints = await self._endpoints()
        asked = {
            "response_type": "code",
            "client_id": self._settings.oidc_client_id,
            "redirect_uri": self._redirect,
            "scope": SCOPES,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in endpoints.authorization else "?"
        return f"{endpoints.authorization}{joint}{urlencode(asked)}"

    async def claims(self, attempt: Attempt, code: str) -> Json:
        """What the issuer says of whoever brought this code back. Unauthorized unless all of it is proven."""
        endpoints = await self._endpoints()
        token = await self._redeem(endpoints, attempt, code)
        header = header_of(token)
        algorithm, kid = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS or not (kid is None or (isinstance(kid, str) and len(kid) <= 256)):
            raise _refused("it is signed in a way that this server does not accept")
        key = await endpoints.keys.find(kid, algorithm)
        if key is None:
            raise _refused(endpoints.keys.trouble or "it is signed with a key that the issuer does not show")
        claims = checked_claims(token, key, algorithm)
        self._check(claims, attempt)
        return claims

    async def close(self) -> None:
        if self._found is not None:
            await self._found[1].keys.close()

    def _check(self, claims: Json, attempt: Attempt) -> None:
        settings, audience = self._settings, claims.get("aud")
        meant: list[Any] = cast("list[Any]", audience) if isinstance(audience, list) else [audience]
        if claims.get("iss") != settings.oidc_issuer:
            raise _refused("it is from another issuer")
        if settings.oidc_client_id not in meant:
            raise _refused("it is for another client")
        if claims.get("azp", settings.oidc_client_id) != settings.oidc_client_id or (
            len(meant) > 1 and "azp" not in claims
        ):
            raise _refused("it was given to another client")
        nonce = claims.get("nonce")
        if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), attempt.nonce.encode()):
            raise _refused("it belongs to another attempt")
        check_times(claims, self._clock())
        if not isinstance(claims.get("sub"), str) or not claims["sub"]:
            raise _refused("it names nobody")

    async def _redeem(self, endpoints: Endpoints, attempt: Attempt, code: str) -> str:
        """The signed token for a code. The issuer gives it out once, and to the holder of the verifier."""
        settings = self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect,
            "client_id": settings.oidc_client_id,
            "code_verifier": attempt.verifier,
        }
        basic = None
        if settings.oidc_client_secret and endpoints.posts_secret:
            form["client_secret"] = settings.oidc_client_secret
        elif settings.oidc_client_secret:
            # RFC 6749 has both encoded as in a form before they become a header.
            basic = (quote(settings.oidc_client_id, safe=""), quote(settings.oidc_client_secret, safe=""))
        found = await self._asked(endpoints.token, form=form, basic=basic)
        token = found.get("id_token")
        if not isinstance(token, str) or len(token) > 64 * 1024:
            raise _refused("the issuer sent no id_token")
        return token

    async def _endpoints(self) -> Endpoints:
        async with self._finding:
            now = self._clock()
            if self._found is not None and now - self._found[0] < FRESH_S:
                return self._found[1]
            found = self._read(await self._asked(f"{self._settings.oidc_issuer.rstrip('/')}{DISCOVERY}"))
            if self._found is not None:
                await self._found[1].keys.close()
            self._found = now, found
            return found

    def _read(self, found: Json) -> Endpoints:
        if found.get("issuer") != self._settings.oidc_issuer:
            raise ServiceUnavailable(
                "the issuer of the single sign-on calls itself otherwise", hint="oidc_issuer must be exactly its name"
            )
        try:
            authorization, token, jwks = (
                safe_address(str(found.get(name, "")))
                for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")
            )
        except ValueError:
            raise ServiceUnavailable("the issuer names an address that anybody could read along", hint=LATER) from None
        settings = self._settings
        keys = Keys(jwks, cooldown_s=settings.auth_jwks_cooldown_s, timeout_s=settings.auth_jwks_timeout_s)
        methods = found.get("token_endpoint_auth_methods_supported")
        posts = isinstance(methods, list) and "client_secret_basic" not in methods and "client_secret_post" in methods
        return Endpoints(authorization, token, keys, posts)

    async def _asked(self, address: str, **how: Any) -> Json:
        timeout_s = self._settings.auth_jwks_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                found: Any = json.loads(await fetch(address, timeout_s, **how))
        except Exception as error:  # whatever the other side does, whoever wants in is told so and nothing else
            log.warning("the single sign-on at %s did not answer as it should (%s)", address, _reason(error))
            raise ServiceUnavailable("the single sign-on cannot be reached just now", hint=LATER) from None
        if not isinstance(found, dict):
            raise ServiceUnavailable("the single sign-on does not answer as it should", hint=LATER)
        return cast(Json, found)


DISCOVERY = "/.well-known/openid-configuration"


def _refused(why: str) -> Unauthorized:
    return Unauthorized(f"the single sign-on's answer is refused: {why}", hint="sign in again")


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError) else type(error).__name__


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
