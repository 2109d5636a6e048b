"""Keeps answers with their ETags, so that asking again costs nothing of the limit, and the limits that GitHub told."""

from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from rookery.db.clock import DbNow, now_ms
from rookery.db.tx import Tx
from rookery.domains.github.tables import answers, limits

MAX_BODY = 512 * 1024
MAX_KEPT = 1000
MAX_KEPT_BYTES = 32 * 1024 * 1024
"""For each tenant; what was not used for longest goes first."""
TOUCH_MS = 60_000

_MINE = answers.c.tenant == sa.bindparam("of_tenant")
_LOOK = sa.select(answers, (DbNow() - answers.c.used_ms).label("unused_ms")).where(
    _MINE, answers.c.key == sa.bindparam("of_key")
)
_KEEP = sa.text(
    "INSERT INTO github_answers (tenant, key, etag, link, kind, size, used_ms, body) "
    "VALUES (:tenant, :key, :etag, :link, :kind, :size, :used_ms, :body) ON CONFLICT (tenant, key) DO UPDATE SET "
    "etag = excluded.etag, link = excluded.link, kind = excluded.kind, size = excluded.size, "
    "used_ms = excluded.used_ms, body = excluded.body"
)
_NEWEST = answers.c.used_ms.desc(), answers.c.key
_RANKED = (
    sa.select(
        answers.c.key,
        sa.func.sum(answers.c.size).over(order_by=_NEWEST).label("together"),
        sa.func.row_number().over(order_by=_NEWEST).label("place"),
    )
    .where(_MINE)
    .subquery()
)
_FORGET = sa.delete(answers).where(
    _MINE,
    answers.c.key.in_(
        sa.select(_RANKED.c.key).where(sa.or_(_RANKED.c.together > MAX_KEPT_BYTES, _RANKED.c.place > MAX_KEPT))
    ),
)
_TOUCH = sa.update(answers).where(_MINE, answers.c.key == sa.bindparam("of_key")).values(used_ms=DbNow())
_LIMIT = sa.select(limits.c.kind, (limits.c.until_ms - DbNow()).label("left_ms")).where(
    limits.c.tenant == sa.bindparam("of_tenant"), limits.c.credential == sa.bindparam("of_credential")
)
_HOLD_BACK = sa.text(
    "INSERT INTO github_limits (tenant, credential, kind, until_ms) VALUES (:tenant, :credential, :kind, :until_ms) "
    "ON CONFLICT (tenant, credential) DO UPDATE SET kind = excluded.kind, until_ms = excluded.until_ms "
    "WHERE excluded.until_ms > github_limits.until_ms"
)


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer as it was kept."""

    etag: str
    link: str
    kind: str
    body: bytes = field(repr=False)
    stale: bool = False
    """Whether its last use is old enough to be noted anew."""


class Answers:
    """The answers of one tenant, on an open transaction."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self._tx = tx
        self._tenant = tenant

    def look(self, key: str) -> Kept | None:
        row = self._tx.one(_LOOK, {"of_tenant": self._tenant, "of_key": key})
        if row is None:
            return None
        return Kept(row.etag, row.link, row.kind, bytes(row.body), row.unused_ms > TOUCH_MS)

    def keep(self, key: str, kept: Kept) -> None:
        """Keep an answer, and forget what is too much now."""
        row: dict[str, Any] = {
            "tenant": self._tenant,
            "key": key,
            "etag": kept.etag,
            "link": kept.link,
            "kind": kept.kind,
            "size": len(kept.body),
            "used_ms": now_ms(self._tx),
            "body": kept.body,
        }
        self._tx.run(_KEEP, [row])
        self._tx.run(_FORGET, [{"of_tenant": self._tenant}])

    def touch(self, key: str) -> None:
        self._tx.run(_TOUCH, [{"of_tenant": self._tenant, "of_key": key}])

    def held_back(self, credential: str) -> tuple[str, float] | None:
        """The kind of limit that holds the credential back, and for how many seconds; None if none does."""
        row = self._tx.one(_LIMIT, {"of_tenant": self._tenant, "of_credential": credential})
        return (row.kind, row.left_ms / 1000) if row is not None and row.left_ms > 0 else None

    def hold_back(self, credential: str, kind: str, wait_s: float) -> None:
        until_ms = now_ms(self._tx) + round(wait_s * 1000)
        row = {"tenant": self._tenant, "credential": credential, "kind": kind, "until_ms": until_ms}
        self._tx.run(_HOLD_BACK, [row])
