"""Tokens of other issuers: what the two ways to check a signature share."""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, cast

import jwt

from rookery.core.errors import Unauthorized
from rookery.identity.resolve import Binding
from rookery.server.auth.claims import identity_of, refuse
from rookery.server.auth.credential import Bearer, Credential, bearer_token, key_of
from rookery.settings import Settings

RECHECK_S = 60
MOST_KEPT = 10_000
TYPES = ("jwt", "at+jwt", "application/at+jwt")
HOW = "get one from the issuer that this server trusts"
Json = dict[str, Any]
_jws = jwt.PyJWS()


class SignedTokens(Bearer, ABC):
    """Checks a token once and remembers it for up to a minute, by its hash."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self._clock = clock
        self._kept: dict[str, Credential] = {}

    async def authenticate(self, authorization: str | None) -> Credential:
        token = bearer_token(authorization, HOW)
        key, now = key_of(token), self._clock()
        known = self._kept.get(key)
        if known is not None and known.until is not None and now < known.until:
            return known
        try:
            claims = await self.verify(token, header_of(token))
            identity = identity_of(claims, self.settings, now)
        except Unauthorized:
            self._kept.pop(key, None)
            raise
        binding = Binding(tenant=identity.tenant, identity=identity, source="http")
        credential = Credential(binding, key, min(identity.expires_ms / 1000, now + RECHECK_S))
        self._keep(credential, now)
        return credential

    @abstractmethod
    async def verify(self, token: str, header: Json) -> Json:
        """The claims of a token whose signature is right; Unauthorized for any other."""

    def _keep(self, credential: Credential, now: float) -> None:
        if len(self._kept) >= MOST_KEPT:
            live = {key: kept for key, kept in self._kept.items() if kept.until is not None and kept.until > now}
            self._kept = live if len(live) < MOST_KEPT else {}
        self._kept[credential.key] = credential


def header_of(token: str) -> Json:
    """The header of a token, which nobody has signed yet: it may choose among our keys, never bring one."""
    try:
        header: Json = _jws.get_unverified_header(token)
    except Exception:  # whatever a forged token makes the parser do, it is a forged token
        refuse("the token is not a signed JWT", HOW)
    kind = header.get("typ")
    if kind is not None and (not isinstance(kind, str) or kind.lower() not in TYPES):
        refuse("the token is of another type", "send an access token")
    if "crit" in header or header.get("b64", True) is not True:
        refuse("the token demands an extension that this server does not have")
    return header


def checked_claims(token: str, key: Any, algorithm: str) -> Json:
    """The claims, once `key` says that they were signed with `algorithm`."""
    try:
        payload = _jws.decode(token, key, algorithms=[algorithm])
        claims: Any = json.loads(payload)
    except Exception:  # as above: nothing but a good signature lets a token pass
        refuse("the token's signature is wrong", HOW)
    if not isinstance(claims, dict):
        refuse("the token holds no claims")
    return cast(Json, claims)
