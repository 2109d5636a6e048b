"""Requests to other machines. A name is looked up once, and connected to at exactly the address that was checked.

So neither a redirect nor a name server that changes its answer leads to this machine or its network. Errors name no
part of an address, since services keep their secrets in the path and some in the host's name.
"""

import asyncio
import functools
import ipaddress
import json as json_text
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from rookery.core.errors import RookeryError, ServiceUnavailable, TimedOut, ValidationFailed
from rookery.outgoing.places import Allowed, is_public
from rookery.outgoing.threads import in_thread
from rookery.settings import Settings

MAX_REDIRECTS = 5
MAX_BYTES = 1024 * 1024
MAX_ADDRESS = 2048
TRIED_ADDRESSES = 4
LOOK_UP_S = 5.0
CONNECT_S = 3.0
TIMEOUT_S = 10.0
ALLOW_HINT = "the owner can allow it with the setting outgoing_allow"
_HOST = re.compile(rb"[A-Za-z0-9._:-]{1,255}")
_PORTS = {"http": 80, "https": 443}
_KEPT_ELSEWHERE = frozenset({"accept", "accept-encoding", "content-type", "user-agent"})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_REDIRECTS_OF_BODIES = frozenset({307, 308})

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses that the system knows for a name, in the order in which they should be tried."""
    found = await in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, slots=True)
class Answer:
    """What the other side said. Names of headers are in lower case; the body is as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body as JSON; None if it is none."""
        try:
            return json_text.loads(self.body)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hop:
    """One request on the way through redirects."""

    method: str
    url: httpx2.URL
    headers: dict[str, str] = field(repr=False)
    content: bytes = field(repr=False)
    plain: bool
    max_bytes: int

    @property
    def host(self) -> str:
        return self.url.raw_host.decode("ascii")

    @property
    def port(self) -> int:
        return self.url.port or _PORTS[self.url.scheme]


class GuardedClient:
    """Sends requests. It keeps no connections and no cookies, and asks no proxy."""

    def __init__(
        self, allow: Sequence[str] = (), *, resolve: Resolve = look_up, tls: ssl.SSLContext | None = None
    ) -> None:
        self.allow = tuple(allow)
        self._allowed = Allowed(allow)
        self._resolve = resolve
        self._tls = tls

    def for_agents(self) -> "GuardedClient":
        """The same without any allowance: what the owner trusts by name is not for whoever else names it."""
        return GuardedClient(resolve=self._resolve, tls=self._tls)

    @property
    def tls(self) -> ssl.SSLContext:
        """What certificates are checked with."""
        return self._tls or _default_tls()

    async def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
        max_bytes: int = MAX_BYTES,
        plain: bool = False,
        follow: bool = True,
    ) -> Answer:
        """The answer, whatever its status. Up to five redirects are followed, each checked like the first address.

        A redirect that would turn a request with a body into one without is not followed, and without `follow` none
        is: it is the answer. Addresses that may not be reached are ValidationFailed, and so is http to the internet
        unless `plain`; what does not answer is ServiceUnavailable or TimedOut.
        """
        sent = {"user-agent": "rookery", "accept-encoding": "identity"}
        sent |= {name.lower(): value for name, value in (headers or {}).items()}
        if json is not None:
            content = json_text.dumps(json, ensure_ascii=False).encode()
            sent.setdefault("content-type", "application/json")
        hop = _Hop(
            method=method.upper(), url=_parsed(url), headers=sent, content=content, plain=plain, max_bytes=max_bytes
        )
        try:
            async with asyncio.timeout(timeout_s):
                return await (self._follow(hop) if follow else self._send(hop))
        except TimeoutError:
            raise TimedOut(f"the host did not answer within {timeout_s:g} s", hint="try again later") from None

    async def check(self, url: str, *, plain: bool = False) -> None:
        """Raise what a request to the address would raise before it connects."""
        await self._places(
            _Hop(method="GET", url=_parsed(url), headers={}, content=b"", plain=plain, max_bytes=MAX_BYTES)
        )

    async def addresses(self, host: str, port: int) -> list[str]:
        """Where the name leads, looked up now: connect to one of these and look it up no more.

        If one of its addresses may not be reached, none may: such an answer is a mistake or a trap.
        """
        try:
            async with asyncio.timeout(LOOK_UP_S):
                found = [ipaddress.ip_address(text) for text in await self._resolve(host, port)]
        except (OSError, ValueError):
            found = []
        if not found:
            raise ServiceUnavailable("the host's name leads nowhere", hint="is it spelt right, and is there a network?")
        if not self.named(host, port):
            for address in found:
                if not (is_public(address) or self._allowed.address(address)):
                    raise ValidationFailed("the host is in this machine's own or a private network", hint=ALLOW_HINT)
        return [str(address) for address in found[:TRIED_ADDRESSES]]

    def named(self, host: str, port: int) -> bool:
        """Whether the owner allowed this host by its name, or as an address that stands in the request."""
        return self._allowed.name(host, port)

    async def _follow(self, hop: _Hop) -> Answer:
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._send(hop)
            following = _following(hop, answer)
            if following is None:
                return answer
            hop = following
        raise ValidationFailed(
            f"the host sends from address to address, more than {MAX_REDIRECTS} times", hint="use the final address"
        )

    async def _places(self, hop: _Hop) -> list[str]:
        places = await self.addresses(hop.host, hop.port)
        at_home = self.named(hop.host, hop.port) or not any(is_public(ipaddress.ip_address(each)) for each in places)
        if hop.url.scheme == "http" and not (hop.plain or at_home):
            raise ValidationFailed("the host must be reached by https: a secret is sent", hint="write https://")
        return places

    async def _send(self, hop: _Hop) -> Answer:
        failed = "ConnectError"
        for place in await self._places(hop):
            try:
                return await self._send_to(place, hop)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failed = type(error).__name__
            except RookeryError:
                raise
            except (httpx2.HTTPError, OSError) as error:
                # The text of such an error may repeat a header.
                failed = type(error).__name__
                break
        raise ServiceUnavailable(f"the host could not be reached ({failed})", hint="try again later")

    async def _send_to(self, place: str, hop: _Hop) -> Answer:
        limits: dict[str, Any] = {"timeout": {"connect": CONNECT_S}}
        if hop.url.scheme == "https":
            limits["sni_hostname"] = hop.host
        request = httpx2.Request(
            hop.method,
            hop.url.copy_with(host=place),
            headers={**hop.headers, "host": hop.url.netloc.decode("ascii")},
            content=hop.content,
            extensions=limits,
        )
        # By the transport itself: the client above it logs the whole address of every request.
        async with httpx2.AsyncHTTPTransport(verify=self.tls, trust_env=False) as transport:
            response = await transport.handle_async_request(request)
            try:
                body = await _body(response, hop)
            finally:
                await response.aclose()
        return Answer(response.status_code, {key.lower(): value for key, value in response.headers.items()}, body)


def guarded_client(settings: Settings) -> GuardedClient:
    """The client of an installation."""
    return GuardedClient(settings.outgoing_allow)


async def _body(response: httpx2.Response, hop: _Hop) -> bytes:
    body = bytearray()
    # Raw, so that a packed answer cannot unfold into more than was counted.
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > hop.max_bytes:
            raise ValidationFailed(f"the host answered with more than {hop.max_bytes} bytes", hint="ask for less")
    return bytes(body)


def _parsed(text: str) -> httpx2.URL:
    try:
        url = httpx2.URL(text) if len(text) <= MAX_ADDRESS else None
    except (httpx2.InvalidURL, ValueError):
        url = None
    if url is None or url.scheme not in _PORTS or url.userinfo or not _sound(url):
        raise ValidationFailed(
            "this is no address that can be requested", hint="http or https, a host, and no name or password before it"
        )
    return url.copy_with(fragment=None)


def _sound(url: httpx2.URL) -> bool:
    return bool(_HOST.fullmatch(url.raw_host)) and (url.port is None or 0 < url.port < 65536)


def _following(hop: _Hop, answer: Answer) -> _Hop | None:
    """The request that a redirect asks for; None if the answer is final."""
    location = answer.headers.get("location")
    bodiless = hop.method in ("GET", "HEAD")
    if location is None or answer.status not in (_REDIRECTS if bodiless else _REDIRECTS_OF_BODIES):
        return None
    try:
        joined = str(hop.url.join(location))
    except (httpx2.InvalidURL, ValueError):
        joined = ""
    url = _parsed(joined)
    if hop.url.scheme == "https" and url.scheme == "http":
        raise ValidationFailed("the host redirects from https to http", hint="use the final address")
    headers = hop.headers
    if (url.scheme, url.host, url.port) != (hop.url.scheme, hop.url.host, hop.url.port):
        # A credential is for the host that it was given for.
        headers = {name: value for name, value in headers.items() if name in _KEPT_ELSEWHERE}
    return _Hop(
        method=hop.method, url=url, headers=headers, content=hop.content, plain=hop.plain, max_bytes=hop.max_bytes
    )


@functools.cache
def _default_tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context()
