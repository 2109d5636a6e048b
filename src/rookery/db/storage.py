"""Keeps the values of plugins in one table. Every statement names the tenant and the domain."""

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import ConfigurationError, InvalidParams, ValidationFailed
from rookery.core.pages import decode_cursor, encode_cursor
from rookery.core.storage import KeyPage
from rookery.db.migrate import Migration
from rookery.db.schema import metadata, text, whole
from rookery.db.tx import Tx

MAX_KEY = 1024
MAX_PREFIX = 512
MAX_PAGE = 10_000
MAX_MANY = 1000
MAX_VALUE_BYTES = 1 << 20
LONGEST_TTL_S = 1e11
"""Three thousand years: what is kept longer would not fit the column."""
SWEEP = 100
"""How many rows that are over one write removes at most."""
_CHARACTERS = re.compile(r"[A-Za-z0-9_./-]*")

# Pages continue after a key and prefixes are ranges of keys, so both databases have to order them by their bytes.
_key = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
kept = sa.Table(
    "plugin_storage",
    metadata,
    text("tenant", primary_key=True),
    text("domain", primary_key=True),
    sa.Column("key", _key, primary_key=True),
    text("value"),
    whole("expires_ms", null=True),
)
sa.Index("plugin_storage_expires", kept.c.expires_ms)
_CREATE = (
    "CREATE TABLE plugin_storage (tenant TEXT NOT NULL, domain TEXT NOT NULL, key TEXT{} NOT NULL, "
    "value TEXT NOT NULL, expires_ms BIGINT, PRIMARY KEY (tenant, domain, key))"
)
MIGRATIONS = (
    Migration(
        1,
        "plugin_storage",
        [
            {"sqlite": [_CREATE.format("")], "postgresql": [_CREATE.format(' COLLATE "C"')]},
            "CREATE INDEX plugin_storage_expires ON plugin_storage (expires_ms)",
        ],
    ),
)
_SET = sa.text(
    "INSERT INTO plugin_storage (tenant, domain, key, value, expires_ms) "
    "VALUES (:tenant, :domain, :key, :value, :expires_ms) ON CONFLICT (tenant, domain, key) "
    "DO UPDATE SET value = excluded.value, expires_ms = excluded.expires_ms"
)
_HOLD = sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class TableStorage:
    """The storage of one tenant and domain, on an open transaction."""

    def __init__(self, tx: Tx, tenant: str, domain: str, *, writable: bool, clock: Callable[[], int] = now_ms) -> None:
        self._tx = tx
        self._scope = {"tenant": tenant, "domain": domain}
        self._writable = writable
        self._clock = clock
        self._mine = sa.and_(kept.c.tenant == tenant, kept.c.domain == domain)

    def get(self, key: str, default: Any = None) -> Any:
        return self.get_many([key]).get(key, default)

    def set(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        self.set_many({key: value}, ttl_s)

    def delete(self, key: str) -> bool:
        return self.delete_many([key]) > 0

    def list(self, prefix: str = "", limit: int = 1000, cursor: str | None = None) -> KeyPage:
        _check(prefix, MAX_PREFIX, "prefix")
        if not 1 <= limit <= MAX_PAGE:
            raise ValidationFailed(f"the limit {limit} is not between 1 and {MAX_PAGE}", hint="ask for several pages")
        wanted = sa.select(kept.c.key).where(self._mine, self._alive)
        if prefix:
            # No key has a character beyond z, and only a key that begins with the prefix lies between the two.
            wanted = wanted.where(kept.c.key >= prefix, kept.c.key < prefix + "~")
        after = self._after(prefix, cursor)
        if after is not None:
            wanted = wanted.where(kept.c.key > after)
        keys = [row.key for row in self._tx.all(wanted.order_by(kept.c.key).limit(limit + 1))]
        more = len(keys) > limit
        keys = keys[:limit]
        return KeyPage(keys, encode_cursor(f"{self._mark(prefix)}:{keys[-1]}") if more else None)

    def get_many(self, keys: Iterable[str]) -> dict[str, Any]:
        wanted = _checked(keys)
        if self._writable:
            self._hold()
        found = sa.select(kept.c.key, kept.c.value).where(self._mine, self._alive, kept.c.key.in_(wanted))
        return {row.key: json.loads(row.value) for row in self._tx.all(found)} if wanted else {}

    def set_many(self, values: Mapping[str, Any], ttl_s: float | None = None) -> None:
        self._change()
        keys, expires_ms = _checked(values), self._expires_ms(ttl_s)
        if ttl_s == 0:
            self.delete_many(keys)
            return
        rows = [{**self._scope, "key": key, "value": _json(key, values[key]), "expires_ms": expires_ms} for key in keys]
        self._hold()
        if rows:
            self._tx.run(_SET, rows)
        self._sweep()

    def delete_many(self, keys: Iterable[str]) -> int:
        self._change()
        wanted = _checked(keys)
        self._hold()
        mine = sa.delete(kept).where(self._mine, kept.c.key.in_(wanted))
        gone = self._tx.all(mine.returning(kept.c.expires_ms))
        self._sweep()
        now = self._clock()
        return sum(row.expires_ms is None or row.expires_ms > now for row in gone)

    @property
    def _alive(self) -> sa.ColumnElement[bool]:
        return sa.or_(kept.c.expires_ms.is_(None), kept.c.expires_ms > self._clock())

    def _expires_ms(self, ttl_s: float | None) -> int | None:
        if ttl_s is None:
            return None
        if not (math.isfinite(ttl_s) and ttl_s >= 0):
            raise ValidationFailed(f"a time to live of {ttl_s} s is not possible", hint="0 or more; None keeps it")
        return self._clock() + math.ceil(min(ttl_s, LONGEST_TTL_S) * 1000)

    def _change(self) -> None:
        if not self._writable:
            raise ConfigurationError(
                f"{self._scope['domain']} changes its storage in a handler that only reads",
                hint='declare the tool with effect="write"',
            )

    def _hold(self) -> None:
        """Let no other call change this storage until the transaction is over.

        SQLite has one writer anyway. A lock on the row would not do, since two calls could both find none, and with
        a lock for each key two calls that take two keys in different order would stop each other.
        """
        read_only = self._tx.connection.get_execution_options().get("postgresql_readonly", False)
        if self._tx.dialect == "postgresql" and not read_only:
            self._tx.scalar(_HOLD.bindparams(name="\n".join(self._scope.values())))

    def _sweep(self) -> None:
        """Remove some rows that are over, whoever's they are; those that another transaction has in hand are left."""
        over = sa.select(kept.c.tenant, kept.c.domain, kept.c.key).where(kept.c.expires_ms <= self._clock())
        some = over.order_by(kept.c.expires_ms).limit(SWEEP).with_for_update(skip_locked=True)
        rows = sa.tuple_(kept.c.tenant, kept.c.domain, kept.c.key)
        self._tx.run(sa.delete(kept).where(rows.in_(some)))

    def _mark(self, prefix: str) -> str:
        """What ties a cursor to the list that it continues."""
        return hashlib.sha256(json.dumps([*self._scope.values(), prefix]).encode()).hexdigest()[:16]

    def _after(self, prefix: str, cursor: str | None) -> str | None:
        after = decode_cursor(cursor)
        if after is None:
            return None
        mark, _, key = after.partition(":")
        if mark != self._mark(prefix) or not _CHARACTERS.fullmatch(key):
            raise InvalidParams("the cursor belongs to another list", hint="start again without a cursor")
        return key


def _check(key: str, longest: int, what: str) -> None:
    if len(key) > longest or ".." in key or not _CHARACTERS.fullmatch(key):
        raise ValidationFailed(
            f"{key[:80]!r} cannot be a {what}",
            hint=f"at most {longest} characters, each of A-Z a-z 0-9 _ . - /, and never two dots in a row",
        )


def _checked(keys: Iterable[str]) -> list[str]:
    """The keys, each once."""
    wanted = list(dict.fromkeys(keys))
    if len(wanted) > MAX_MANY:
        raise ValidationFailed(f"{len(wanted)} keys are too many at once", hint=f"at most {MAX_MANY}")
    for key in wanted:
        _check(key, MAX_KEY, "key")
        if not key:
            raise ValidationFailed("a key cannot be empty", hint="give it a name")
    return wanted


def _json(key: str, value: Any) -> str:
    try:
        written = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValidationFailed(f"the value of {key[:80]} is not JSON: {error}", hint="store plain JSON") from None
    if len(written) > MAX_VALUE_BYTES:
        raise ValidationFailed(
            f"the value of {key[:80]} has {len(written)} bytes as JSON", hint=f"at most {MAX_VALUE_BYTES}"
        )
    return written
