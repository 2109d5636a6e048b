"""From the claims of a signed token to an identity: what it must say, and how the usual spellings are read."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from rookery.core.errors import Unauthorized
from rookery.identity.resolve import TokenIdentity
from rookery.settings import Settings

LEEWAY_S = 30
LAST_MOMENT = 1e11
CLIENT = ("cid", "client_id", "azp")
TENANT = ("tid", "tenant_id")
SCOPES = ("scp", "scope", "scopes", "mcp_tool_scopes", "permissions")
MOST_SCOPES = 1000
Claims = Mapping[str, Any]


def refuse(message: str, hint: str = "get a new token from its issuer") -> NoReturn:
    raise Unauthorized(message, hint=hint)


def identity_of(claims: Claims, settings: Settings, now: float) -> TokenIdentity:
    """Who the token speaks for. Refused: one that is over, early, for others, or does not say enough."""
    expires = check_times(claims, now)
    _check_issuer(claims, settings)
    _check_audience(claims, settings)
    client = _first(claims, CLIENT)
    if client is None:
        refuse("the token names no client", f"it needs one of the claims {', '.join(CLIENT)}")
    scopes = _scopes(claims)
    if not scopes and settings.auth_scope_checks:
        refuse("the token has no scopes", f"it needs one of the claims {', '.join(SCOPES)}")
    tenant = _first(claims, TENANT) or settings.auth_tenant
    return TokenIdentity(
        tenant=dict(settings.auth_tenant_map).get(tenant, (tenant,))[0],
        client=client,
        subject=_first(claims, ("sub",)),
        scopes=scopes,
        expires_ms=int(expires * 1000),
    )


def check_times(claims: Claims, now: float) -> float:
    """The time from which the token is over, the leeway for clocks that differ included."""
    expires, begins, issued = (_moment(claims, name) for name in ("exp", "nbf", "iat"))
    if expires is None:
        refuse("the token has no end", "it needs the claim exp")
    if expires + LEEWAY_S <= now:
        refuse("the token has expired")
    if begins is not None and begins > now + LEEWAY_S:
        refuse("the token is not valid yet", "wait, or set the clocks right")
    if issued is not None and issued > now + LEEWAY_S:
        refuse("the token was issued in the future", "set the clocks right")
    return expires + LEEWAY_S


def _moment(claims: Claims, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < LAST_MOMENT:
        refuse(f"the token's {name} is not a time")
    return value


def _check_issuer(claims: Claims, settings: Settings) -> None:
    if settings.auth_issuer and claims.get("iss") != settings.auth_issuer:
        refuse("the token is from another issuer", f"this server takes those of {settings.auth_issuer}")


def _check_audience(claims: Claims, settings: Settings) -> None:
    audience = _texts(claims, "aud", split=False)
    if settings.auth_audience and settings.auth_audience not in audience:
        refuse("the token is for another audience", f"ask for one for {settings.auth_audience}")
    meant = {*audience, *_texts(claims, "resource", split=False)}
    if settings.auth_resource and settings.auth_resource not in meant:
        refuse("the token is for another resource", f"ask for one for {settings.auth_resource}")


def _first(claims: Claims, names: Sequence[str]) -> str | None:
    """The first of these claims that is there. One that is there and no plain text is refused."""
    for name in names:
        value = claims.get(name)
        if value is None or value == "":
            continue
        if not isinstance(value, str) or len(value) > 255 or not value.isprintable() or value != value.strip():
            refuse(f"the token's {name} is not a name")
        return value
    return None


def _scopes(claims: Claims) -> frozenset[str]:
    """The union of all spellings. A provider that knows only one of them can still carry our scopes."""
    found = frozenset(scope for name in SCOPES for scope in _texts(claims, name, split=True))
    if len(found) > MOST_SCOPES:
        refuse("the token has too many scopes")
    return found


def _texts(claims: Claims, name: str, *, split: bool) -> list[str]:
    """A claim that is a text or a list of texts; `split` reads a text as words."""
    value = claims.get(name)
    if value is None:
        return []
    items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in items):
        refuse(f"the token's {name} is neither a text nor a list of texts")
    if split and isinstance(value, str):
        items = value.split()
    if split and not all(re.fullmatch(r"[!#-\[\]-~]{1,256}", item) for item in items):
        refuse(f"the token's {name} has an entry that is no scope")
    return items
