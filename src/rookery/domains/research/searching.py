"""Asks the engine of the settings: of no other host, within its limits, and again only where that is harmless."""

import asyncio
import json
import logging
import zlib
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from rookery.core.context import Context
from rookery.core.errors import ConfigurationError, RookeryError, ServiceUnavailable, TimedOut, ValidationFailed
from rookery.domains.research.harmless import address, one_line, plain
from rookery.domains.research.pace import Pace, pace_of
from rookery.domains.research.port import Engine, Hit, Request, Search, load_engine
from rookery.outgoing.client import Answer, GuardedClient
from rookery.outgoing.rate_limits import PATIENCE_S, patience_s, told_wait_s, used_up, wait_shown
from rookery.settings import Settings

log = logging.getLogger("rookery.research")
MAX_ANSWER = 2 * 1024 * 1024
"""Packed or not. Twenty results take a tenth of it, and to read more would hold up everybody else."""
MAX_TITLE = 200
MAX_DESCRIPTION = 600
MAX_AGE = 60
MAX_SAID = 200
RETRIES = 1
ROUNDS = 6
"""So often a request is sent at most, when the engine refuses it for a moment because others were faster."""
BACKOFF_S = 0.25
URL_HINT = "is the setting search_url right?"
_PACKED = frozenset({"gzip", "x-gzip"})


@dataclass(frozen=True, slots=True)
class Found:
    """One result, as it can be shown to anybody."""

    title: str
    url: str
    description: str
    age: str | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Searching:
    """The engine as one call sees it. Every method raises one of `core/errors.py`."""

    def __init__(self, ctx: Context) -> None:
        settings: Settings = ctx.platform.facts["settings"]
        self.ctx = ctx
        self.engine: Engine = load_engine(settings.search_engine)
        self._url = settings.search_url or self.engine.url
        self._key = settings.search_api_key
        self._limit = f"{self.engine.title}'s rate limit"
        self._timeout_s = settings.search_timeout_s
        self._client = _client_for(settings)
        self._pace: Pace = pace_of(self._url, self._key)

    def missing(self) -> str | None:
        """What has to be set before anything can be found; None if all is there."""
        if self._key or not self.engine.key_name:
            return None
        log.warning("a search found nothing: no key for %s is set", self.engine.title)
        return (
            f"{self.engine.title} was not asked: it has no key. "
            f"The owner can set search_api_key ({self.engine.key_name})."
        )

    async def find(self, search: Search) -> list[Found]:
        """What the engine finds, at most `count` of it, in its order."""
        request = self.engine.request(self._url, self._key, search)
        answer = await self._send(request)
        said = _json(_unpacked(answer, self.engine.title))
        if not answer.ok:
            raise self._refusal(answer.status, said)
        hits = self.engine.hits(said)
        if hits is None:
            kind = one_line(answer.headers.get("content-type", "no type"))[:MAX_SAID]
            raise ServiceUnavailable(f"{self.engine.title} answered with something else ({kind})", hint=URL_HINT)
        # No more of them are made harmless than are wanted: an engine may send thousands.
        return list(islice((found for found in map(_found, hits) if found is not None), search.count))

    async def _send(self, request: Request) -> Answer:
        """The first answer that is neither a short refusal nor a fault that may pass."""
        faults = 0
        for _ in range(ROUNDS):
            await wait_shown(self.ctx, self._limit, self._pace.turn(self._limit, patience_s(self.ctx)))
            try:
                answer = await self._once(request)
            except ServiceUnavailable:
                faults += 1
                if faults > RETRIES:
                    raise
                await asyncio.sleep(BACKOFF_S)
                continue
            windows = self.engine.windows(answer.headers)
            if answer.status == 429:
                wait_s = self._pace.refused(windows, told_wait_s(answer.headers))
                if wait_s > patience_s(self.ctx):
                    raise used_up(self._limit, wait_s)
                continue
            self._pace.answered(windows)
            faults += answer.status >= 500
            if answer.status < 500 or faults > RETRIES:
                return answer
            await asyncio.sleep(BACKOFF_S)
        raise used_up(self._limit, PATIENCE_S)

    async def _once(self, request: Request) -> Answer:
        self.ctx.check()
        timeout_s = max(0.1, min(self._timeout_s, self.ctx.remaining_s))
        try:
            answer = await self._client.request(
                "GET", request.url, headers=request.headers, timeout_s=timeout_s, max_bytes=MAX_ANSWER, follow=False
            )
        except (ServiceUnavailable, TimedOut, ValidationFailed) as error:
            raise type(error)(f"{self.engine.title}: {error.message}", hint=error.hint) from None
        if 300 <= answer.status < 400:
            # The key is for the host that the owner named, and so are the agent's words.
            raise ValidationFailed(
                f"{self.engine.title} redirects to another address, which is not followed", hint=URL_HINT
            )
        return answer

    def _refusal(self, status: int, said: Any) -> RookeryError:
        fault = self.engine.fault(status, said)
        told = plain(fault.said, MAX_SAID)
        message = f"{self.engine.title} answered HTTP {status}{': ' if told else ''}{told}"
        if fault.of_key:
            return ConfigurationError(message, hint="the owner has to set another search_api_key")
        if status >= 500:
            return ServiceUnavailable(message, hint="try again later")
        return ValidationFailed(message, hint="change the query, or have the owner look at the key's plan")


def _client_for(settings: Settings) -> GuardedClient:
    """An address that the owner set may be of this machine or its network; no other host is ever asked."""
    if settings.search_url:
        return GuardedClient((urlsplit(settings.search_url).netloc,))
    return GuardedClient(settings.outgoing_allow)


def _found(hit: Hit) -> Found | None:
    url = address(hit.url)
    if url is None:
        return None
    age = plain(hit.age, MAX_AGE) or None
    return Found(plain(hit.title, MAX_TITLE) or url, url, plain(hit.description, MAX_DESCRIPTION), age)


def _unpacked(answer: Answer, title: str) -> bytes:
    """The body without its packing. One that unfolds into too much is cut off before it does."""
    packing = answer.headers.get("content-encoding", "").strip().lower()
    if packing in ("", "identity"):
        return answer.body
    if packing not in _PACKED:
        raise ServiceUnavailable(f"{title} packs its answer in a way that was not asked for", hint=URL_HINT)
    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        body = stream.decompress(answer.body, MAX_ANSWER)
    except zlib.error:
        body = b""
    if not stream.eof:
        raise ServiceUnavailable(
            f"{title}'s answer is broken, or has more than {MAX_ANSWER} bytes", hint="try again later"
        )
    return body


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
