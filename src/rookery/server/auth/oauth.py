"""Tokens of an OAuth or OpenID Connect issuer, checked with the keys that it publishes."""

import time
from collections.abc import Callable

from rookery.server.auth.claims import refuse
from rookery.server.auth.jwks import Keys
from rookery.server.auth.metadata import ALGORITHMS
from rookery.server.auth.signed import HOW, Json, SignedTokens, checked_claims
from rookery.settings import Settings


class OAuthTokens(SignedTokens):
    """Asymmetric signatures only, with keys of the issuer only; what the header brings along is never looked at."""

    mode = "oauth"

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time, keys: Keys | None = None) -> None:
        super().__init__(settings, clock)
        self.keys = keys or Keys(
            settings.jwks_address, cooldown_s=settings.auth_jwks_cooldown_s, timeout_s=settings.auth_jwks_timeout_s
        )

    async def verify(self, token: str, header: Json) -> Json:
        algorithm, kid = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS:
            wanted = ", ".join(ALGORITHMS)
            refuse("the token is signed in a way that this server does not accept", f"sign it with one of {wanted}")
        if kid is not None and (not isinstance(kid, str) or len(kid) > 256):
            refuse("the token's key id is not a name")
        key = await self.keys.find(kid, algorithm)
        if key is None:
            refuse("the token is signed with a key that its issuer does not show", self.keys.trouble or HOW)
        return checked_claims(token, key, algorithm)

    async def close(self) -> None:
        await self.keys.close()
