"""A tool that calls an API elsewhere, and what becomes of it when that API is slow, broken or gone."""

import asyncio
import functools
import json
import os
import ssl

import httpx2
from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import ServiceUnavailable, TimedOut
from rookery.core.tool import ToolInput, ToolOutput, tool

URL_SETTING = "ROOKERY_ECHO_CAT_FACT_URL"
DEFAULT_URL = "https://catfact.ninja"
LIMIT_S = 5.0
MAX_BYTES = 64 * 1024


class CatFact(ToolInput):
    max_length: int | None = Field(None, ge=1, le=10_000, description="The most characters the fact may have.")


class Fact(ToolOutput):
    fact: str
    length: int

    def as_text(self) -> str:
        return self.fact


@tool(
    title="Cat fact", effect="external", action="echo:fetch", tier="observe", group="Read", profiles="",
    default=False, idempotent=True, timeout_s=LIMIT_S + 5,
)  # fmt: skip
async def cat_fact(ctx: Context, args: CatFact) -> Fact:
    """Fetch a fact about cats from an API on the internet. Use it to see how a tool calls another service.
    Returns the fact. Needs the network; fails after 5 seconds, and when no fact is short enough."""
    try:
        async with asyncio.timeout(LIMIT_S):
            body = await _fetch(args.max_length)
    except TimeoutError:
        raise TimedOut(f"the cat facts took longer than {LIMIT_S:g} s", hint="try again later") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ServiceUnavailable(
            f"the cat facts are out of reach: {type(error).__name__}", hint=f"check {URL_SETTING}"
        ) from error
    return _read(body)


@functools.cache
def _certificates() -> ssl.SSLContext:
    return ssl.create_default_context()


async def _fetch(max_length: int | None) -> bytes:
    base = os.environ.get(URL_SETTING) or DEFAULT_URL
    wanted = {} if max_length is None else {"max_length": max_length}
    # They take a tenth of a second to load, in which the event loop would serve nobody.
    trusted = await asyncio.to_thread(_certificates)
    async with (
        # The limit for the whole is the caller's; httpx knows only limits for the parts.
        httpx2.AsyncClient(timeout=None, verify=trusted) as client,
        client.stream("GET", f"{base.rstrip('/')}/fact", params=wanted) as response,
    ):
        if not response.is_success:
            raise ServiceUnavailable(f"the cat facts answered {response.status_code}", hint="try again later")
        body = b""
        async for part in response.aiter_bytes():
            body += part
            if len(body) > MAX_BYTES:
                raise ServiceUnavailable("the cat facts answered far too much", hint=f"check {URL_SETTING}")
        return body


def _read(body: bytes) -> Fact:
    """The fact in an answer; what another program sends is checked before it is passed on."""
    try:
        fact = json.loads(body)["fact"]
    except (ValueError, KeyError, TypeError, RecursionError):
        fact = None
    if not isinstance(fact, str) or not fact:
        raise ServiceUnavailable("the cat facts had no fact", hint="a greater max_length may find one")
    return Fact(fact=fact, length=len(fact))
