"""Rookery's own tokens, and the way in for a machine that trusts everybody on it."""

import re

from rookery.core.errors import Unauthorized
from rookery.identity.resolve import Binding
from rookery.server.auth.credential import SEND, Bearer, Credential, bearer_token, key_of
from rookery.settings import Settings
from rookery.settings.addresses import is_loopback

HOW = "make one on the server's machine: rookery token create NAME --agent AGENT"


class LocalTokens(Bearer):
    """Takes tokens of `rookery token create`. Whether one is still live is asked of the database by its session."""

    mode = "local"

    async def authenticate(self, authorization: str | None) -> Credential:
        token = bearer_token(authorization, HOW)
        if not re.fullmatch(r"rk_[A-Za-z0-9_-]{43}", token):
            raise Unauthorized("this is not a token of this Rookery", hint=f"{HOW}; {SEND}")
        return Credential(Binding(token=token, source="http"), key_of(token), None)


class NoTokens(Bearer):
    """Takes everybody for the default agent. Only for a server that nobody but this machine can reach."""

    mode = "none"

    def __init__(self, settings: Settings) -> None:
        # Settings refuse this as well; a door without a lock is worth two looks.
        if settings.auth_mode != "none" or not is_loopback(settings.host):
            raise ValueError("only an explicit auth_mode none on a loopback address goes without tokens")

    async def authenticate(self, authorization: str | None) -> Credential:
        return Credential(Binding(source="http"), "none", None)
