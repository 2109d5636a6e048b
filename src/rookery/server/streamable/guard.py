"""Who may reach the server at all: the names it is known by, the pages that may call it, and what these are told."""

import ipaddress
import re
from urllib.parse import urlsplit

from rookery.server.streamable.answers import Headers
from rookery.server.streamable.requests import HttpRequest, Refusal
from rookery.settings import Settings
from rookery.settings.addresses import is_loopback

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
EXPOSED = b"mcp-session-id, mcp-protocol-version, www-authenticate"
ALLOWED = (
    "authorization, content-type, accept, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, last-event-id"
)
MAX_AGE = b"600"
# `urlsplit` would leave out spaces and control characters rather than refuse them.
_HOST = re.compile(r"[A-Za-z0-9._-]+(?::[0-9]*)?|\[[0-9A-Fa-f:.]+\](?::[0-9]*)?")
_TOKENS = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+(?:\s*,\s*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*")


def host_name(host: str) -> str | None:
    """The name in a Host header, without the port; None if it is no such header."""
    if not _HOST.fullmatch(host):
        return None
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname


class Guard:
    """Checks Host and Origin. A page of another site must not reach a server that trusts its own machine."""

    def __init__(self, settings: Settings) -> None:
        self._local = is_loopback(settings.host)
        extra = (host_name(host) or host for host in settings.http_hosts)
        self._hosts = {settings.host.lower(), *LOOPBACK_NAMES, *extra}
        public = urlsplit(settings.public_url) if settings.public_url else None
        if public is not None and public.hostname:
            self._hosts.add(public.hostname)
        self._origins = {origin.lower().rstrip("/") for origin in settings.http_origins}
        if public is not None:
            self._origins.add(f"{public.scheme}://{public.netloc}".lower())

    def check(self, request: HttpRequest) -> None:
        """Refuse a request that comes under a foreign name, or from a page that may not call."""
        self.check_host(request)
        self.check_origin(request)

    def check_host(self, request: HttpRequest) -> None:
        """Refuse a request that comes under a foreign name."""
        host = request.headers.get("host")
        if host is None or not self._known_host(host):
            raise Refusal(421, "this server is not known by that name; the setting http_hosts adds names")

    def check_origin(self, request: HttpRequest) -> None:
        """Refuse a request from a page that may not call."""
        origin = request.headers.get("origin")
        if origin is not None and not self._known_origin(origin):
            raise Refusal(403, "pages of this origin may not call this server; the setting http_origins adds origins")

    def _known_host(self, host: str) -> bool:
        name = host_name(host)
        if name is None:
            return False
        if name in self._hosts:
            return True
        # No page can point a number at us by a name server, and an open server has more numbers than it knows.
        return not self._local and _is_address(name)

    def _known_origin(self, origin: str) -> bool:
        origin = origin.lower()
        if "*" in self._origins or origin in self._origins:
            return True
        scheme, found, host = origin.partition("://")
        return bool(found) and scheme in ("http", "https") and host_name(host) in LOOPBACK_NAMES

    def cors(self, request: HttpRequest) -> Headers:
        """What a page that may call has to be told."""
        origin = request.headers.get("origin")
        if origin is None:
            return ()
        return (
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", EXPOSED),
            (b"vary", b"origin"),
        )

    def preflight(self, request: HttpRequest, methods: str) -> Headers:
        """The answer to a page that asks what it may send."""
        wanted = request.headers.get("access-control-request-headers", "")
        allowed = wanted if len(wanted) <= 1000 and _TOKENS.fullmatch(wanted) else ALLOWED
        return (
            *self.cors(request),
            (b"access-control-allow-methods", methods.encode()),
            (b"access-control-allow-headers", allowed.encode("latin-1")),
            (b"access-control-max-age", MAX_AGE),
            (b"allow", methods.encode()),
        )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
