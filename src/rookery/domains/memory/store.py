"""Keeps what agents and people remember, each for itself, and finds it again."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import NotFound
from rookery.core.ids import new_id
from rookery.db.tx import Tx
from rookery.domains.memory.row_seal import RowSeal
from rookery.domains.memory.search import DAY_MS, Scope, index, search
from rookery.domains.memory.tables import memories, memory_owners, memory_recalls
from rookery.domains.memory.words import Owner, Tokens, repeats, tsvector

Outcome = Literal["created", "updated", "merged"]
SWEEP = 100
"""How many memories whose time is over one write removes at most."""
LOOKED_AT = 20
"""So many memories at most are compared with a new one, to see whether it repeats them."""


def _is(*names: str) -> list[sa.ColumnElement[bool]]:
    return [memories.c[name] == sa.bindparam(f"its_{name}") for name in names]


_MINE = _is("tenant", "owner")
_ALIVE = sa.or_(memories.c.expires_ms.is_(None), memories.c.expires_ms > sa.bindparam("now"))
# Tokens are for the index alone, and longer than what they stand for.
_SHOWN = sa.select(*(column for column in memories.c if column.name != "tokens"))
_BY_KEY = _SHOWN.where(*_MINE, _ALIVE, memories.c.key.in_(sa.bindparam("places", expanding=True)))
# With a condition on the owner SQLite would look through all of the owner's memories.
_BY_SEQ = _SHOWN.where(memories.c.seq.in_(sa.bindparam("seqs", expanding=True)))
_NEWEST = (
    _SHOWN.where(*_MINE, _ALIVE, memories.c.archived.is_(False))
    .order_by(memories.c.updated_ms.desc(), memories.c.seq.desc())
    .limit(sa.bindparam("number"))
)
_INSERT = sa.insert(memories)
_UPDATE = sa.update(memories).where(*_is("seq"))
_SETTLE = sa.update(memories).where(*_is("seq", "revision"))
_GONE = (memories.c.seq, memories.c.words, memories.c.key_version)
_FORGET = sa.delete(memories).where(*_is("seq")).returning(*_GONE)
_OVER = sa.select(memories.c.seq).where(*_MINE, memories.c.expires_ms <= sa.bindparam("now")).limit(SWEEP)
_IN_THE_WAY = (
    sa.delete(memories)
    .where(*_MINE, ~_ALIVE, memories.c.key.in_(sa.bindparam("places", expanding=True)))
    .returning(*_GONE)
)
_SWEEP = sa.delete(memories).where(memories.c.seq.in_(_OVER)).returning(*_GONE)
_UNUSED = (
    sa.select(memories.c.seq, memories.c.words)
    .outerjoin(memory_recalls, memory_recalls.c.memory_seq == memories.c.seq)
    .where(
        *_MINE, _ALIVE, memories.c.archived.is_(False), memories.c.updated_ms < sa.bindparam("before"),
        memory_recalls.c.memory_seq.is_(None),
    )
    .limit(SWEEP)
)  # fmt: skip
_UNCOUNT = sa.text("DELETE FROM memory_recalls WHERE memory_seq = :seq")
_OWNER = sa.select(memory_owners).where(
    memory_owners.c.tenant == sa.bindparam("its_tenant"), memory_owners.c.owner == sa.bindparam("its_owner")
)
_COUNT = sa.text(
    "INSERT INTO memory_owners (tenant, owner, memories, words, plain) "
    "VALUES (:its_tenant, :its_owner, :memories, :words, :plain) ON CONFLICT (tenant, owner) DO UPDATE SET "
    "memories = memory_owners.memories + excluded.memories, words = memory_owners.words + excluded.words, "
    "plain = memory_owners.plain + excluded.plain"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """What is to be remembered, and for how long; without `ttl_days` for good."""

    key: str
    content: str
    ttl_days: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A memory as its owner sees it. `score` says how well it matches a query, from 0 to 1."""

    row: sa.Row[Any]
    key: str
    content: str
    score: float | None = None


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def owner_of(actor: Actor) -> Owner:
    """Whose memories an actor has: an agent's those of the agent, in whatever session it acts."""
    return Owner(actor.tenant, f"{actor.kind}:{actor.agent or actor.subject}")


class Memories:
    """The memories of one owner. Nobody else's can be reached from here."""

    def __init__(self, tx: Tx, owner: Owner, seal: RowSeal) -> None:
        self.tx = tx
        self.owner = owner
        self.seal = seal
        self._now = now_ms()
        self._mine = {"its_tenant": owner.tenant, "its_owner": owner.name}
        self._tokens = Tokens(owner, seal.keyring)

    def save(self, new: NewMemory, actor: Actor) -> tuple[Outcome, str]:
        """Remember it under its key, instead of what was there; says under which key it is now.

        What repeats a memory with another key in nearly the same words takes that one's place.
        """
        self._hold()
        self._sweep(new.key)
        known = self._row(new.key)
        twin = None if known is not None else self._twin(new)
        if known is None and twin is None:
            self._insert(new, actor)
            return "created", new.key
        row = known or twin
        assert row is not None
        key = self.seal.key_of(row)
        self._replace(row, key, new, actor)
        return ("updated" if known is not None else "merged"), key

    def _insert(self, new: NewMemory, actor: Actor) -> None:
        memory_id = new_id("mem")
        values = self._columns(memory_id, new.key, new, actor)
        values |= {"id": memory_id, "tenant": self.owner.tenant, "owner": self.owner.name, "created_ms": self._now}
        self.tx.run(_INSERT, [{**values, "revision": 1, "status": "none", "txid": None}])
        self._count(memories=1, words=values["words"], plain=values["key_version"] is None)

    def _replace(self, row: sa.Row[Any], key: str, new: NewMemory, actor: Actor) -> None:
        values = self._columns(row.id, key, new, actor)
        # A copy in the ledger is one of what was said then.
        if self.seal.content_of(row) != new.content:
            values |= {"revision": row.revision + 1, "status": "none", "txid": None}
        self.tx.run(_UPDATE, [{"its_seq": row.seq, **values}])
        plain = (values["key_version"] is None) - (row.key_version is None)
        self._count(memories=0, words=values["words"] - row.words, plain=plain)

    def _columns(self, memory_id: str, key: str, new: NewMemory, actor: Actor) -> dict[str, Any]:
        tokens = self._tokens.of(key, new.content)
        return {
            **self.seal.columns(self.tx, self.owner, memory_id, key, new.content),
            "updated_ms": self._now,
            "expires_ms": None if new.ttl_days is None else self._now + new.ttl_days * DAY_MS,
            "archived": False,
            "words": len(tokens),
            "tokens": as_column(self.tx, tokens),
            "run_id": actor.run,
            "issue_id": actor.issue,
        }

    def _twin(self, new: NewMemory) -> sa.Row[Any] | None:
        """The newest memory that the new one repeats."""
        groups = self._tokens.telling_groups(new.content)
        if not groups or not groups[0]:
            return None
        for row in index(self.tx, self._scope(self._counts())).holding(groups, LOOKED_AT):
            if repeats(new.key, new.content, self.seal.key_of(row), self.seal.content_of(row)):
                return row
        return None

    def get(self, key: str) -> Found | None:
        """The memory with this key, archived or not; None if there is none or its time is over."""
        row = self._row(key)
        return None if row is None else self._found(row)

    def find(self, key: str) -> Found:
        """The same, or NotFound."""
        found = self.get(key)
        if found is None:
            raise NotFound(f"there is no memory {key}", hint="recall_memory without a key lists the newest")
        return found

    def newest(self, number: int) -> list[Found]:
        """The memories that were saved last, without archived ones."""
        rows = self.tx.all(_NEWEST, {**self._mine, "now": self._now, "number": number})
        return [self._found(row) for row in rows]

    def search(self, query: str, limit: int) -> list[Found]:
        """What matches best, without archived memories."""
        counts = self._counts()
        if counts is None:
            return []
        sought = self._tokens.sought(query, plain=counts.plain > 0)
        scores = search(self.tx, self._scope(counts), sought, limit)
        if not scores:
            return []
        rows = {row.seq: row for row in self.tx.all(_BY_SEQ, {"seqs": list(scores)})}
        # Tokens are nobody else's, but two tags may be the same by chance.
        mine = [(rows[seq], score) for seq, score in scores.items() if self._owns(rows[seq])]
        return [self._found(row, score) for row, score in mine]

    def forget(self, key: str) -> None:
        """Remove the memory for good; NotFound if there is none."""
        self._hold()
        seq = self.find(key).row.seq
        self._take_out(self.tx.all(_FORGET, {"its_seq": seq}))

    def archive(self, key: str) -> None:
        """Keep the memory but out of searches and lists. Saving it again brings it back."""
        self._hold()
        self._put_away([self.find(key).row])

    def sweep(self) -> int:
        """Remove memories whose time is over, up to a hundred; says how many."""
        self._hold()
        gone = self.tx.all(_SWEEP, {**self._mine, "now": self._now})
        self._take_out(gone)
        return len(gone)

    def archive_unused(self, before_ms: int) -> int:
        """Archive memories that were saved before then and never found since, up to a hundred; says how many."""
        self._hold()
        unused = self.tx.all(_UNUSED, {**self._mine, "now": self._now, "before": before_ms})
        self._put_away(unused)
        return len(unused)

    def _put_away(self, rows: Sequence[sa.Row[Any]]) -> None:
        if rows:
            values = {"archived": True, "tokens": as_column(self.tx, []), "words": 0}
            self.tx.run(_UPDATE, [{"its_seq": row.seq, **values} for row in rows])
            self._count(memories=0, words=-sum(row.words for row in rows), plain=0)

    def settle(self, found: Found, status: str, txid: str | None = None) -> bool:
        """Say how far the copy in the ledger is, unless the memory has changed meanwhile."""
        same = {"its_seq": found.row.seq, "its_revision": found.row.revision}
        return self.tx.run(_SETTLE, [{**same, "status": status, "txid": txid}]) > 0

    def _row(self, key: str) -> sa.Row[Any] | None:
        places = self.seal.places(self.owner, key)
        rows = self.tx.all(_BY_KEY, {**self._mine, "now": self._now, "places": places})
        # Whether keys are hidden may have changed between two memories, but both are not there for long.
        return min(rows, key=lambda row: places.index(row.key), default=None)

    def _owns(self, row: sa.Row[Any]) -> bool:
        return (row.tenant, row.owner) == (self.owner.tenant, self.owner.name)

    def _found(self, row: sa.Row[Any], score: float | None = None) -> Found:
        return Found(row, self.seal.key_of(row), self.seal.content_of(row), score)

    def _counts(self) -> sa.Row[Any] | None:
        return self.tx.one(_OWNER, self._mine)

    def _scope(self, counts: sa.Row[Any] | None) -> Scope:
        memories_and_words = (counts.memories, counts.words) if counts is not None else (0, 0)
        return Scope(self.owner, self._now, *memories_and_words)

    def _hold(self) -> None:
        """Let no other call change this owner's memories until the transaction is over. SQLite has one writer."""
        if self.tx.dialect == "postgresql":
            self._count(memories=0, words=0, plain=0)

    def _sweep(self, key: str) -> None:
        """Remove some memories whose time is over, in any case the one with this key: it would be in the way."""
        places = self.seal.places(self.owner, key)
        self._take_out(self.tx.all(_IN_THE_WAY, {**self._mine, "now": self._now, "places": places}))
        self._take_out(self.tx.all(_SWEEP, {**self._mine, "now": self._now}))

    def _take_out(self, gone: Sequence[sa.Row[Any]]) -> None:
        if not gone:
            return
        self.tx.run(_UNCOUNT, [{"seq": row.seq} for row in gone])
        plain = sum(row.key_version is None for row in gone)
        self._count(memories=-len(gone), words=-sum(row.words for row in gone), plain=-plain)

    def _count(self, **by: int) -> None:
        values: Mapping[str, Any] = {**self._mine, **{name: int(number) for name, number in by.items()}}
        self.tx.run(_COUNT, [values])


def as_column(tx: Tx, tokens: Sequence[str]) -> str:
    """Tokens as this database keeps them."""
    return " ".join(tokens) if tx.dialect == "sqlite" else tsvector(tokens)
