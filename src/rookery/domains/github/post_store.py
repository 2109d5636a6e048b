"""Who is posting what: so that the same is not posted twice, whoever dies or gives up in between."""

import secrets
from dataclasses import dataclass

import sqlalchemy as sa

from rookery.core.errors import Conflict
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.github.tables import posts

REPEAT_MS = 600_000
"""For so long the same post is taken for the same wish, of somebody who did not hear that it was fulfilled."""
KEEP_MS = 7 * 86_400_000
AT_ONCE = 20

_MINE = posts.c.tenant == sa.bindparam("of_tenant")
_THIS = (_MINE, posts.c.digest == sa.bindparam("of_digest"))
_ADD = sa.text(
    "INSERT INTO github_posts (tenant, digest, marker, holder, begun_ms, until_ms) "
    "VALUES (:tenant, :digest, :marker, :holder, :begun_ms, :until_ms) ON CONFLICT (tenant, digest) DO NOTHING"
)
_RENEW = (
    sa.update(posts)
    .where(*_THIS, posts.c.done_ms <= sa.bindparam("old_ms"))
    .values(
        marker=sa.bindparam("new_marker"),
        holder=sa.bindparam("new_holder"),
        begun_ms=sa.bindparam("at_ms"),
        until_ms=sa.bindparam("new_until_ms"),
        done_ms=None,
        url=None,
        number=None,
    )
)
_TAKE_OVER = (
    sa.update(posts)
    .where(
        *_THIS, posts.c.done_ms.is_(None), sa.or_(posts.c.holder.is_(None), posts.c.until_ms <= sa.bindparam("at_ms"))
    )
    .values(holder=sa.bindparam("new_holder"), until_ms=sa.bindparam("new_until_ms"))
)
_FIND = sa.select(posts).where(*_THIS)
_HELD = (*_THIS, posts.c.holder == sa.bindparam("of_holder"), posts.c.done_ms.is_(None))
_FINISH = (
    sa.update(posts)
    .where(*_HELD)
    .values(
        holder=None,
        done_ms=sa.bindparam("at_ms"),
        url=sa.bindparam("new_url"),
        number=sa.bindparam("new_number"),
    )
)
_LEAVE = sa.update(posts).where(*_HELD).values(holder=None, until_ms=sa.bindparam("at_ms"))
_WITHDRAW = sa.delete(posts).where(*_HELD)
_FORGET = sa.delete(posts).where(
    _MINE,
    posts.c.digest.in_(
        sa.select(posts.c.digest)
        .where(_MINE, posts.c.begun_ms < sa.bindparam("old_ms"))
        .order_by(posts.c.begun_ms)
        .limit(AT_ONCE)
        .with_for_update(skip_locked=True)
    ),
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A post that this call is at. `url` is there if it was posted already; `doubtful`: it may have been.

    `tried_ms`: until then an earlier call may have sent it, which is `quiet_s` ago.
    """

    digest: str
    marker: str
    holder: str
    begun_ms: int
    doubtful: bool = False
    url: str | None = None
    number: int | None = None
    tried_ms: int = 0
    quiet_s: float = 0.0


class Posts:
    """The posts of one tenant, on an open transaction."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self._tx = tx
        self._tenant = tenant

    def claim(self, digest: str, holder: str, hold_s: float) -> Claim:
        """The post with this digest is now this call's; Conflict while another call is at it."""
        at_ms = now_ms(self._tx)
        until_ms = at_ms + round(hold_s * 1000)
        marker = f"{digest[:16]}-{secrets.token_hex(6)}"
        self._tx.run(_FORGET, [{"of_tenant": self._tenant, "old_ms": at_ms - KEEP_MS}])
        new = {"tenant": self._tenant, "digest": digest, "marker": marker, "holder": holder, "begun_ms": at_ms}
        this = {"of_tenant": self._tenant, "of_digest": digest}
        taken = {**this, "new_holder": holder, "new_until_ms": until_ms, "at_ms": at_ms}
        again = {**taken, "old_ms": at_ms - REPEAT_MS, "new_marker": marker}
        if self._tx.run(_ADD, [{**new, "until_ms": until_ms}]) or self._tx.run(_RENEW, [again]):
            return Claim(digest, marker, holder, at_ms)
        last = self._tx.one(_FIND, this)
        mine = self._tx.run(_TAKE_OVER, [taken])
        row = self._tx.one(_FIND, this)
        if row is None or (row.done_ms is None and not mine):
            raise Conflict("the same is being posted by another call right now", hint="wait for it, or try again")
        tried_ms = at_ms if last is None else min(at_ms, last.until_ms)
        return Claim(
            digest, row.marker, holder, row.begun_ms, row.done_ms is None, row.url, row.number,
            tried_ms, (at_ms - tried_ms) / 1000,
        )  # fmt: skip

    def finish(self, claim: Claim, url: str, number: int | None) -> None:
        """It is posted, and at this address."""
        self._tx.run(_FINISH, [{**self._held(claim), "at_ms": now_ms(self._tx), "new_url": url, "new_number": number}])

    def leave(self, claim: Claim, *, tried: bool) -> None:
        """It is not known whether it was posted; whoever comes next has to look. `tried`: this call may have."""
        at_ms = now_ms(self._tx) if tried else claim.tried_ms
        self._tx.run(_LEAVE, [{**self._held(claim), "at_ms": at_ms}])

    def withdraw(self, claim: Claim) -> None:
        """It was not posted."""
        self._tx.run(_WITHDRAW, [self._held(claim)])

    def _held(self, claim: Claim) -> dict[str, str]:
        return {"of_tenant": self._tenant, "of_digest": claim.digest, "of_holder": claim.holder}
