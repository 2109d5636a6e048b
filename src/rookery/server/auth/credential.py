"""What every way to sign in shares: the credential, how it is sent, and how a refusal asks for a better one."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from rookery.core.errors import PermissionDenied, RookeryError, Unauthorized
from rookery.identity.resolve import Binding

LONGEST_TOKEN = 16 * 1024
SEND = "send it as the header Authorization: Bearer TOKEN"


@dataclass(frozen=True, slots=True)
class Credential:
    """A checked credential.

    `key` is the same for the same credential and never the secret itself. From `until` (as `time.time()`) on it must
    be checked again; None: the session looks after that by itself.
    """

    binding: Binding
    key: str
    until: float | None


class MissingToken(Unauthorized):
    """Nothing was sent, so the answer asks for a token and calls none wrong."""


class Authenticator(Protocol):
    """One way to sign in."""

    mode: str

    async def authenticate(self, authorization: str | None) -> Credential:
        """The credential of an Authorization header; whatever is wrong with it is Unauthorized."""
        ...

    def challenge(self, error: RookeryError | None, resource_metadata: str | None, scopes: Sequence[str] = ()) -> str:
        """The WWW-Authenticate header of the refusal."""
        ...

    async def close(self) -> None:
        """Let go of what is held open."""
        ...


class Bearer:
    """What all ways with bearer tokens share."""

    def challenge(self, error: RookeryError | None, resource_metadata: str | None, scopes: Sequence[str] = ()) -> str:
        """As RFC 6750 and RFC 9728 have it: what was wrong is said only to those who sent a token."""
        parts = ['realm="rookery"']
        if error is not None and not isinstance(error, MissingToken):
            name = "insufficient_scope" if isinstance(error, PermissionDenied) else "invalid_token"
            parts += [f'error="{name}"', f'error_description="{_plain(error.message)}"']
        if scopes:
            parts.append(f'scope="{_plain(" ".join(scopes))}"')
        if resource_metadata:
            address = quote(resource_metadata, safe=":/?#[]@!$&()*+,;=~%")
            parts.append(f'resource_metadata="{address}"')
        return f"Bearer {', '.join(parts)}"

    async def close(self) -> None:
        return


def bearer_token(authorization: str | None, how: str) -> str:
    """The one token of an Authorization header. `how` tells a person where to get one."""
    if authorization is None or not authorization.strip():
        raise MissingToken("this server needs a token", hint=f"{how}; {SEND}")
    if len(authorization) > LONGEST_TOKEN:
        raise Unauthorized("the token is too long", hint=f"{how}; {SEND}")
    scheme, _, token = authorization.strip(" \t").partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthorized("only bearer tokens are accepted", hint=f"{how}; {SEND}")
    token = token.strip(" ")
    if not re.fullmatch(r"[A-Za-z0-9._~+/-]+=*", token):
        what = "there is no token after Bearer" if not token else "the header does not hold exactly one token"
        raise Unauthorized(what, hint=f"{how}; {SEND}")
    return token


def key_of(token: str) -> str:
    """What stands for a token in tables and logs."""
    return hashlib.sha256(b"rookery credential\0" + token.encode()).hexdigest()


def _plain(text: str) -> str:
    """Text that a quoted header value may hold: printable ASCII without quotes and backslashes."""
    return re.sub(r"[^ !#-\[\]-~]", lambda found: "'" if found.group() == '"' else "?", text)[:400]
