"""Servers in each mode of authentication, with whoever issues tokens for them."""

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from rookery.identity.access import AccessStore, hash_token
from rookery.identity.store import IdentityStore
from rookery.identity.tables import tokens
from tests.server.auth.issuer import (
    AUDIENCE,
    ISSUER,
    SECRET,
    KeyServer,
    rsa_entry,
    shared_token,
    signed_token,
)
from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.web import Web

SCOPES = "probe:read probe:run system:read"
OTHER_TENANT = "other"


class Gate:
    """A server and its issuer. Who comes is an agent of ours in mode local, a subject of the issuer in the others."""

    def __init__(self, web: Web, mode: str) -> None:
        self.web = web
        self.mode = mode

    async def token(
        self, who: str = "ada", *, tenant: str = "default", client: str = "cli", scope: str = SCOPES
    ) -> str:
        """A new token. In mode local each is a client of its own."""
        if self.mode == "local":
            return self.local_token(who, tenant=tenant, scope=scope)[1]
        sign = shared_token if self.mode == "jwt" else signed_token
        return sign(sub=who, tid=tenant, client_id=client, scope=scope)

    def local_token(
        self, who: str = "ada", *, tenant: str = "default", scope: str = SCOPES, left_s: float | None = None
    ) -> tuple[str, str]:
        """The id and the secret of a token of ours, for an agent that is made if it is not there."""
        ends = None if left_s is None else datetime.now(UTC) + timedelta(seconds=left_s)

        def make(tx: Any) -> tuple[str, str]:
            store = IdentityStore(tx, tenant)
            if all(agent.name != who for agent in store.agents()):
                store.create_agent(who, None)
            end_ms = None if ends is None else int(ends.timestamp() * 1000)
            return AccessStore(tx, tenant).create_token(
                "test", store.agent(who).id, "agent", scope.split(), "test", end_ms
            )

        return self.web.platform.database.direct(make, write=True)

    def revoke(self, secret: str) -> None:
        def end(tx: Any) -> None:
            row = tx.one(tokens.select().where(tokens.c.hash == hash_token(secret)))
            AccessStore(tx, row.tenant).revoke_token(row.id)

        self.web.platform.database.direct(end, write=True)


@contextlib.asynccontextmanager
async def gate(make_web: MakeWeb, mode: str, **settings: Any) -> AsyncIterator[Gate]:
    """A server in this mode, with two tenants."""
    chosen: dict[str, Any] = {"auth_mode": mode}
    async with contextlib.AsyncExitStack() as stack:
        if mode == "jwt":
            chosen["auth_secret"] = SECRET
        elif mode == "oauth":
            keys = await stack.enter_async_context(KeyServer())
            keys.publish(rsa_entry("first"))
            chosen |= {"auth_issuer": ISSUER, "auth_audience": AUDIENCE, "auth_jwks_uri": keys.address}
        web = await stack.enter_async_context(make_web(**chosen, **settings))
        web.platform.database.direct(lambda tx: IdentityStore(tx, OTHER_TENANT).set_up(), write=True)
        yield Gate(web, mode)


def tool_error(answer: httpx2.Response) -> str:
    """The code of a refused call, whether the tool or the protocol refused it; empty if it was served."""
    message = answer.json()
    if "error" in message:
        return message["error"]["data"]["code"]
    return message["result"].get("_meta", {}).get("rookery/error", {}).get("code", "")
