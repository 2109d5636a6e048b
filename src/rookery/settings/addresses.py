"""Addresses as settings have them: each is read into the one form that the server compares, or refused."""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

RESERVED_PATHS = ("/", "/healthz", "/readyz", "/metrics", "/a2a")
USUAL_PORTS = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address: 127.0.0.0/8, ::1 or localhost."""
    bare = host.removeprefix("[").removesuffix("]")
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return bare.lower().rstrip(".") == "localhost"


def web_address(text: str) -> str:
    """An http(s) address without query, fragment, credentials and final slash."""
    parts = _split(text)
    if parts.scheme.lower() not in USUAL_PORTS or parts.query or parts.fragment or "?" in text or "#" in text:
        raise ValueError(text)
    return text.rstrip("/")


def safe_address(text: str) -> str:
    """The same address if nobody can read along: https, or http that stays on this machine. Compared as it stands."""
    parts = _split(text)
    if "#" in text or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))):
        raise ValueError(text)
    return text


def api_address(text: str) -> str:
    """The same without query and final slash, to which paths are added."""
    return web_address(safe_address(text))


def github_place(text: str) -> str:
    """An owner on GitHub, or the owner/name of a repository. Capitals do not count there."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(/[A-Za-z0-9_.-]{1,100})?", text):
        raise ValueError(text)
    return text.lower()


def plain_word(text: str) -> str:
    """A name in small letters, digits and underscores, which can lead to no other file or host."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", text):
        raise ValueError(text)
    return text


def header_word(text: str) -> str:
    """A key that a header can carry: ASCII, no spaces, no line ends."""
    if not re.fullmatch(r"[!-~]{1,1000}", text):
        raise ValueError("not a key")
    return text


def resource_address(text: str) -> str:
    """A resource indicator of RFC 8707: an absolute URI without a fragment."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[!\"$-~]+", text):
        raise ValueError(text)
    return text


def origin(text: str) -> str:
    """An Origin as browsers send it: small letters, no usual port. `*` stands for any."""
    if text == "*":
        return text
    parts = _split(text.lower())
    if not parts.scheme or parts.path or "?" in text or "#" in text:
        raise ValueError(text)
    port = "" if parts.port in (None, USUAL_PORTS.get(parts.scheme)) else f":{parts.port}"
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def host_name(text: str) -> str:
    """A name as a Host header has it, with or without a port."""
    small = text.lower()
    if not re.fullmatch(r"[a-z0-9.-]+(:[0-9]{1,5})?|\[[0-9a-f:.]+\](:[0-9]{1,5})?", small):
        raise ValueError(text)
    return small


def outgoing_place(text: str) -> str:
    """A network as 10.0.0.0/8, or a name with or without a port."""
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        return host_name(text)


def endpoint_path(text: str) -> str:
    """A path for the MCP endpoint that no other route of the server has."""
    plain = re.fullmatch(r"(/[A-Za-z0-9_~.-]+)+", text) and not {".", ".."} & set(text.split("/"))
    if not plain or text in RESERVED_PATHS or text.startswith("/.well-known"):
        raise ValueError(text)
    return text


def _split(text: str) -> SplitResult:
    """The parts of an address that names a host and carries no credentials."""
    if not re.fullmatch(r"[!-~]+", text) or "\\" in text:
        raise ValueError(text)
    parts = urlsplit(text)
    if not parts.hostname or "@" in parts.netloc or parts.netloc.endswith(":") or parts.port == 0:
        raise ValueError(text)
    return parts
