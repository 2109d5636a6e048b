"""What is added to a role: bundles, grants and tokens of one tenant."""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any, Literal

import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, NotFound
from rookery.core.ids import new_id
from rookery.db.tx import Tx
from rookery.identity.presets import find_preset
from rookery.identity.store import begin_change, now_ms
from rookery.identity.tables import EPOCH, bundle_uses, bundles, grants, tokens

HolderKind = Literal["agent", "project", "person"]
TOKEN_PREFIX = "rk_"
_MINE: sa.BindParameter[str] = sa.bindparam("of_tenant")
_AT = sa.bindparam("at_ms", type_=sa.BigInteger)
# Built once: they are asked whenever somebody's rights are looked up.
_HELD = (
    sa.select(bundle_uses.c.bundle)
    .where(bundle_uses.c.tenant == _MINE, bundle_uses.c.holder == sa.bindparam("of_holder"))
    .order_by(bundle_uses.c.sort_order)
)
_ALL_GRANTS = sa.select(grants).where(grants.c.tenant == _MINE).order_by(grants.c.id)
_OF_AGENT = grants.c.agent == sa.bindparam("of_agent")
_ALIVE = sa.and_(grants.c.revoked_ms.is_(None), sa.or_(grants.c.expires_ms.is_(None), grants.c.expires_ms > _AT))
_GRANTS = {
    (False, False): _ALL_GRANTS,
    (False, True): _ALL_GRANTS.where(_ALIVE),
    (True, False): _ALL_GRANTS.where(_OF_AGENT),
    (True, True): _ALL_GRANTS.where(_OF_AGENT, _ALIVE),
}
"""Those of everybody or of one agent, and all of them or those that are alive."""
_TOKEN = sa.select(tokens).where(
    tokens.c.hash == sa.bindparam("hashed"),
    tokens.c.revoked_ms.is_(None),
    sa.or_(tokens.c.expires_ms.is_(None), tokens.c.expires_ms > _AT),
)


def hash_token(secret: str) -> str:
    """Tokens are 256 random bits, so a plain hash is enough: there is nothing to guess."""
    return hashlib.sha256(secret.encode()).hexdigest()


class AccessStore:
    """Bundles, grants and tokens. Every change is seen by every process with its next call."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    # Bundles

    def custom_bundles(self) -> Sequence[sa.Row[Any]]:
        return self.tx.all(sa.select(bundles).where(bundles.c.tenant == self.tenant).order_by(bundles.c.name))

    def bundle_id(self, name_or_id: str) -> str:
        """The id of a preset or custom bundle."""
        preset = find_preset(name_or_id)
        if preset is not None:
            return preset
        same = sa.or_(bundles.c.id == name_or_id, bundles.c.name == name_or_id)
        row = self.tx.one(sa.select(bundles.c.id).where(bundles.c.tenant == self.tenant, same))
        if row is None:
            raise NotFound(f"there is no bundle {name_or_id}", hint="list_bundles shows them")
        return row.id

    def save_bundle(self, name: str, tools: list[str], description: str, prompt: str) -> str:
        """Create the custom bundle of that name, or replace what it holds. Presets cannot be replaced."""
        if find_preset(name) is not None:
            raise Conflict(f"{name} is a preset", hint="choose another name")
        begin_change(self.tx)
        values = {"tools": tools, "description": description, "prompt": prompt}
        mine = (bundles.c.tenant == self.tenant, bundles.c.name == name)
        row = self.tx.one(sa.update(bundles).where(*mine).values(**values).returning(bundles.c.id))
        if row is None:
            fresh = sa.insert(bundles).values(
                id=new_id("bun"), tenant=self.tenant, name=name, created_ms=now_ms(), **values
            )
            row = self.tx.one(fresh.returning(bundles.c.id))
        assert row is not None
        return row.id

    def delete_bundle(self, name_or_id: str) -> str:
        begin_change(self.tx)
        bundle = self.bundle_id(name_or_id)
        if find_preset(bundle) is not None:
            raise Conflict("presets cannot be deleted", hint="take it away from its holders with assign_bundle")
        self.tx.run(sa.delete(bundle_uses).where(bundle_uses.c.tenant == self.tenant, bundle_uses.c.bundle == bundle))
        self.tx.run(sa.delete(bundles).where(bundles.c.tenant == self.tenant, bundles.c.id == bundle))
        return bundle

    def use_bundle(self, bundle: str, holder: str, kind: HolderKind, *, remove: bool = False) -> None:
        """Give a bundle to an agent or project, or take it away. Giving twice changes nothing."""
        begin_change(self.tx)
        mine = (bundle_uses.c.tenant == self.tenant, bundle_uses.c.holder == holder)
        if remove:
            self.tx.run(sa.delete(bundle_uses).where(*mine, bundle_uses.c.bundle == bundle))
        elif bundle not in self.held_bundles(holder):
            last = self.tx.scalar(sa.select(sa.func.max(bundle_uses.c.sort_order)).where(*mine))
            row = {"bundle": bundle, "holder": holder, "holder_kind": kind}
            place = 0 if last is None else last + 1
            self.tx.run(sa.insert(bundle_uses).values(tenant=self.tenant, sort_order=place, **row))

    def held_bundles(self, holder: str) -> list[str]:
        """The bundles of an agent or project, in their order."""
        return [row.bundle for row in self.tx.all(_HELD, {"of_tenant": self.tenant, "of_holder": holder})]

    def holders(self) -> dict[str, list[str]]:
        """The bundles of everybody who holds some, in their order, by the id of the holder."""
        rows = self.tx.all(
            sa.select(bundle_uses).where(bundle_uses.c.tenant == self.tenant).order_by(bundle_uses.c.sort_order)
        )
        found: dict[str, list[str]] = {}
        for row in rows:
            found.setdefault(row.holder, []).append(row.bundle)
        return found

    def bundle_rows(self, ids: Sequence[str]) -> dict[str, sa.Row[Any]]:
        """The custom ones among `ids`."""
        mine = (bundles.c.tenant == self.tenant, bundles.c.id.in_(list(ids)))
        return {row.id: row for row in self.tx.all(sa.select(bundles).where(*mine))} if ids else {}

    # Grants

    def grant(
        self,
        agent: str,
        tool: str,
        reason: str,
        by: str,
        expires_ms: int | None,
        *,
        without_approval: bool = False,
        standing: bool = False,
    ) -> str:
        """Give one agent one tool, until `expires_ms` or until revoked; `standing`: only spare it the approvals."""
        if expires_ms is not None and expires_ms <= now_ms():
            raise InvalidParams("the grant would already be over", hint="give a time in the future")
        grant = new_id("grt")
        row = {"agent": agent, "tool": tool, "reason": reason, "granted_by": by, "expires_ms": expires_ms}
        row |= {"without_approval": without_approval, "standing": standing}
        self.tx.run(sa.insert(grants).values(id=grant, tenant=self.tenant, created_ms=now_ms(), revoked_ms=None, **row))
        self.tx.bump(EPOCH)
        return grant

    def revoke_grant(self, grant: str) -> None:
        mine = (grants.c.tenant == self.tenant, grants.c.id == grant, grants.c.revoked_ms.is_(None))
        if not self.tx.run(sa.update(grants).where(*mine).values(revoked_ms=now_ms())):
            raise NotFound(f"there is no live grant {grant}", hint="list_grants shows them")
        self.tx.bump(EPOCH)

    def grants(self, agent: str | None = None, *, live_only: bool = False) -> Sequence[sa.Row[Any]]:
        values = {"of_tenant": self.tenant, "of_agent": agent, "at_ms": now_ms()}
        return self.tx.all(_GRANTS[agent is not None, live_only], values)

    # Tokens

    def create_token(
        self,
        name: str,
        holder: str,
        kind: HolderKind,
        scopes: list[str],
        by: str,
        expires_ms: int | None,
        *,
        profile: str | None = None,
        project: str | None = None,
    ) -> tuple[str, str]:
        """The id and the secret of a new token. The secret is shown this once; only its hash is kept.

        Sessions of the token have its `profile`, and are in its `project`.
        """
        if expires_ms is not None and expires_ms <= now_ms():
            raise InvalidParams("the token would already be over", hint="give a time in the future")
        token, secret = new_id("tok"), TOKEN_PREFIX + secrets.token_urlsafe(32)
        row = {
            "name": name,
            "hash": hash_token(secret),
            "holder": holder,
            "holder_kind": kind,
            "scopes": scopes,
            "profile": profile,
            "project": project,
        }
        self.tx.run(
            sa.insert(tokens).values(
                id=token,
                tenant=self.tenant,
                created_by=by,
                created_ms=now_ms(),
                expires_ms=expires_ms,
                revoked_ms=None,
                **row,
            )
        )
        self.tx.bump(EPOCH)
        return token, secret

    def tokens(self) -> Sequence[sa.Row[Any]]:
        return self.tx.all(sa.select(tokens).where(tokens.c.tenant == self.tenant).order_by(tokens.c.id))

    def revoke_token(self, token: str) -> None:
        mine = (tokens.c.tenant == self.tenant, tokens.c.id == token, tokens.c.revoked_ms.is_(None))
        if not self.tx.run(sa.update(tokens).where(*mine).values(revoked_ms=now_ms())):
            raise NotFound(f"there is no live token {token}", hint="list_tokens shows them")
        self.tx.bump(EPOCH)


def token_row(tx: Tx, secret: str) -> sa.Row[Any] | None:
    """The live token with that secret, of whatever tenant, or None."""
    return tx.one(_TOKEN, {"hashed": hash_token(secret), "at_ms": now_ms()})
