"""The local log of attestations: one chain for each agent, signed with the agent's key, which can only grow."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from rookery.attest.canonical import canonical, sha256
from rookery.attest.card import Origin
from rookery.attest.dsse import signed
from rookery.attest.keys import agent_key, held_key
from rookery.attest.proof import proof_of
from rookery.attest.tables import attestation_notes, reputation_attestations
from rookery.attest.verify import GENESIS, HEAD, STATEMENT, key_page
from rookery.db.clock import now_ms
from rookery.db.tx import Tx

Row = sa.Row[Any]
_a, _n = reputation_attestations.c, attestation_notes.c
_MINE = (_a.tenant == sa.bindparam("of_tenant"), _a.agent_id == sa.bindparam("of_agent"))
_LAST = sa.select(reputation_attestations).where(*_MINE).order_by(_a.number.desc()).limit(1)
_ALL = sa.select(reputation_attestations).where(*_MINE).order_by(_a.number)
_PUBLIC = sa.select(_a.tenant).where(_a.agent_id == sa.bindparam("of_agent")).limit(1)
_NOTE = sa.select(_n.txid).where(
    _n.tenant == sa.bindparam("of_tenant"),
    _n.agent_id == sa.bindparam("of_agent"),
    _n.number == sa.bindparam("of_number"),
)
_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")


class AttestationLog:
    """The log of one agent."""

    def __init__(self, tx: Tx, tenant: str, agent_id: str) -> None:
        self.tx = tx
        self.tenant = tenant
        self.agent_id = agent_id
        self._mine = {"of_tenant": tenant, "of_agent": agent_id}

    def append(self, statement: Mapping[str, Any], *, unless_same_since_ms: int | None = None) -> tuple[Row, bool]:
        """Sign the statement, add it, and return its entry and whether it is new.

        The same statement as in the newest entry, made since `unless_same_since_ms`, is that entry.
        """
        if self.tx.dialect == "postgresql":
            self.tx.scalar(_LOCK, {"name": f"attestations:{self.tenant}:{self.agent_id}"})
        last, said = self.last(), sha256(canonical(dict(statement)))
        if last is not None and self._same(last, said, unless_same_since_ms):
            return last, False
        return self._sign(last, statement, said), True

    @staticmethod
    def _same(last: Row, said: str, since_ms: int | None) -> bool:
        return since_ms is not None and last.created_ms > since_ms and last.said == said

    def _sign(self, last: Row | None, statement: Mapping[str, Any], said: str) -> Row:
        key = agent_key(self.tx, self.tenant, self.agent_id)
        # A clock that was set back must not spoil the log: no entry is older than the one before it.
        at_ms = now_ms(self.tx) if last is None else max(now_ms(self.tx), last.created_ms)
        number = 1 if last is None else last.number + 1
        moment = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        payload = canonical({
            **statement,
            "agentId": self.agent_id,
            "computedAt": moment,
            "number": number,
            "previous": GENESIS if last is None else last.hash,
        })  # fmt: skip
        digest = sha256(payload)
        head = canonical({"agentId": self.agent_id, "count": number, "hash": digest})
        row = self.tx.one(
            sa.insert(reputation_attestations)
            .values(
                tenant=self.tenant,
                agent_id=self.agent_id,
                number=number,
                hash=digest,
                said=said,
                envelope=canonical(signed(key, STATEMENT, payload)).decode(),
                head=canonical(signed(key, HEAD, head)).decode(),
                public_key=key.public_key().public_bytes_raw().hex(),
                created_ms=at_ms,
            )
            .returning(*_a)
        )
        assert row is not None
        return row

    def last(self) -> Row | None:
        """The newest entry, or None."""
        return self.tx.one(_LAST, self._mine)

    def txid(self, number: int) -> str | None:
        """The transaction that took the entry to a ledger of the outside world, or None."""
        return self.tx.scalar(_NOTE, {**self._mine, "of_number": number})

    def note(self, number: int, txid: str) -> None:
        """The entry is in that ledger now, if it was not before."""
        if self.txid(number) is None:
            row = {"tenant": self.tenant, "agent_id": self.agent_id, "number": number}
            self.tx.run(sa.insert(attestation_notes).values(**row, txid=txid, created_ms=now_ms(self.tx)))

    def key_page(self) -> bytes | None:
        """What is published of the agent's key, as it signed last; None if it never signed."""
        last = self.last()
        return None if last is None else canonical(key_page(self.agent_id, last.public_key))

    def proof_page(self, nonce: str, origin: Origin) -> bytes | None:
        """The proof that the host at `origin` holds the agent's key; None if it does not."""
        key = held_key(self.tx, self.tenant, self.agent_id)
        return None if key is None else canonical(proof_of(key, self.agent_id, nonce, origin))

    def document(self) -> bytes | None:
        """The whole log with its key, as it is published; None if it has no entries."""
        rows: Sequence[Row] = self.tx.all(_ALL, self._mine)
        if not rows:
            return None
        return canonical({
            "agentId": self.agent_id,
            "key": key_page(self.agent_id, rows[-1].public_key),
            "attestations": [json.loads(row.envelope) for row in rows],
            "head": json.loads(rows[-1].head),
        })  # fmt: skip


def published_log(tx: Tx, agent_id: str) -> AttestationLog | None:
    """The log of whatever agent has this id, in whatever tenant, if it has published anything."""
    tenant = tx.scalar(_PUBLIC, {"of_agent": agent_id})
    return None if tenant is None else AttestationLog(tx, tenant, agent_id)
