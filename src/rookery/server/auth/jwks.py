"""The keys that an issuer publishes: fetched when needed, kept, and fetched again seldom enough."""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from typing import Any, cast

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from rookery.server.auth.fetching import fetch

log = logging.getLogger("rookery.auth")

MOST_KEYS = 100
MAX_AGE_S = 600
"""A key that the issuer took away is forgotten after this long at the latest, if the issuer can be asked."""
SHORTEST_RSA_BITS = 2048
FAMILIES = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC"}
Key = RSAPublicKey | EllipticCurvePublicKey


class Keys:
    """The keys of one issuer.

    A key id that is not known makes one request for all who wait. Between two requests lies the cool-down, whatever
    came of the first, so that tokens with invented ids cannot drive requests. When the issuer does not answer, the
    keys that are known go on.
    """

    def __init__(
        self, address: str, *, cooldown_s: float, timeout_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.trouble = ""
        self._address = address
        self._cooldown_s = cooldown_s
        self._timeout_s = timeout_s
        self._clock = clock
        self._entries: list[dict[str, Any]] = []
        self._made: dict[tuple[int, str], Key | None] = {}
        self._fresh_until = float("-inf")
        self._again_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, kid: str | None, algorithm: str) -> Key | None:
        """The one key for a token, or None. A token without a key id gets the only key that fits."""
        found = self._among(kid, algorithm)
        if found is not None:
            if self._clock() >= self._fresh_until:
                self._fetch()
            return found
        fetching = self._fetch()
        if fetching is None:
            return None
        # Not awaited itself: one that hangs up must not take the answer away from the others.
        await asyncio.wait({fetching})
        return self._among(kid, algorithm)

    async def close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)

    def _among(self, kid: str | None, algorithm: str) -> Key | None:
        fitting = [
            index
            for index, entry in enumerate(self._entries)
            if (kid is None or entry.get("kid") == kid) and _fits(entry, algorithm)
        ]
        return self._key(fitting[0], algorithm) if len(fitting) == 1 else None

    def _key(self, index: int, algorithm: str) -> Key | None:
        place = (index, FAMILIES[algorithm])
        if place not in self._made:
            self._made[place] = _make(self._entries[index], algorithm)
        return self._made[place]

    def _fetch(self) -> asyncio.Task[None] | None:
        """The request that is under way, or a new one if the cool-down is over."""
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        now = self._clock()
        if now < self._again_at:
            return None
        self._again_at = now + self._cooldown_s
        self._fetching = asyncio.create_task(self._refresh(), name="issuer keys")
        return self._fetching

    async def _refresh(self) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                self._entries, self._made = await _download(self._address, self._timeout_s), {}
        except Exception as error:  # whatever the other side does, those who wait are refused and nothing else
            self.trouble = "the issuer's keys could not be fetched; try again later"
            known = f"the {len(self._entries)} known ones go on" if self._entries else "no token can be checked"
            log.warning("the keys at %s could not be fetched (%s); %s", self._address, _reason(error), known)
            return
        self.trouble = ""
        self._fresh_until = self._clock() + max(MAX_AGE_S, self._cooldown_s)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError) else type(error).__name__


async def _download(address: str, timeout_s: float) -> list[dict[str, Any]]:
    """The key entries at an address."""
    return _entries(await fetch(address, timeout_s, "application/json, application/jwk-set+json"))


def _entries(body: bytes) -> list[dict[str, Any]]:
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("no JSON") from None
    listed: Any = cast("dict[str, Any]", document).get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("no key set")
    entries = [cast("dict[str, Any]", entry) for entry in cast("list[Any]", listed) if isinstance(entry, dict)]
    return entries[:MOST_KEYS]


def _fits(entry: dict[str, Any], algorithm: str) -> bool:
    """Whether the issuer means this key for signatures of this kind. A private key is nobody's to publish."""
    operations = entry.get("key_ops", ["verify"])
    return (
        entry.get("kty") == FAMILIES[algorithm]
        and entry.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
        and entry.get("alg", algorithm) == algorithm
        and "d" not in entry
    )


def _make(entry: dict[str, Any], algorithm: str) -> Key | None:
    """The key of an entry, None if it is broken, too short or on another curve."""
    try:
        if FAMILIES[algorithm] == "RSA":
            made: Any = RSAAlgorithm.from_jwk(cast("dict[str, str]", entry))
            return made if isinstance(made, RSAPublicKey) and made.key_size >= SHORTEST_RSA_BITS else None
        made = ECAlgorithm.from_jwk(cast("dict[str, str]", entry))
        return made if isinstance(made, EllipticCurvePublicKey) and isinstance(made.curve, SECP256R1) else None
    except Exception:  # an entry that cannot be read is no key, and must not keep the others from being used
        return None
