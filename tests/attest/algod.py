"""A node of Algorand on this machine: it checks what it is sent as a real one does, from the bytes up."""

import base64
import contextlib
import hashlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import msgpack
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.outgoing.loopback import Said, Seen, Web, web_server

GENESIS_HASH = base64.b64encode(hashlib.sha256(b"a network of tests").digest()).decode()
MIN_FEE = 1000


@dataclass
class Algod:
    """What the node is and has: the notes in its blocks, by transaction."""

    web: Web
    token: str = "secret-token"
    round: int = 100
    fee: int = 0
    confirm_after: int = 1
    pool_error: str = ""
    blocks: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    waiting: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def url(self) -> str:
        return self.web.url

    async def act(self, seen: Seen) -> Said:
        if seen.headers.get("x-algo-api-token") != self.token:
            return _said(401, message="Invalid API Token")
        path = seen.path.partition("?")[0]
        if (seen.method, path) == ("GET", "/v2/transactions/params"):
            return self._params()
        if (seen.method, path) == ("POST", "/v2/transactions"):
            return self._take(seen)
        if path.startswith("/v2/transactions/pending/"):
            return self._pending(path.rpartition("/")[2])
        if path == "/v2/status" or path == f"/v2/status/wait-for-block-after/{self.round}":
            self.round += path != "/v2/status"
            return _said(200, **{"last-round": self.round})
        return _said(404, message="no such place")

    def _params(self) -> Said:
        told = {"fee": self.fee, "min-fee": MIN_FEE, "last-round": self.round, "genesis-hash": GENESIS_HASH}
        return _said(200, **told, **{"genesis-id": "tests-v1", "consensus-version": "future"})

    def _take(self, seen: Seen) -> Said:
        if seen.headers.get("content-type") != "application/x-binary":
            return _said(400, message="it is not application/x-binary")
        try:
            txid, transaction = checked(seen.body)
        except ValueError as error:
            return _said(400, message=str(error))
        fault = self._fault(transaction)
        if fault:
            return _said(400, message=f"TransactionPool.Remember: {fault}")
        self.blocks[txid] = transaction
        self.waiting[txid] = self.round + self.confirm_after
        return _said(200, txId=txid)

    def _fault(self, transaction: dict[str, Any]) -> str:
        if transaction["gh"] != base64.b64decode(GENESIS_HASH) or transaction["gen"] != "tests-v1":
            return "genesis hash mismatch"
        if not transaction["fv"] <= self.round <= transaction["lv"] <= transaction["fv"] + 1000:
            return "txn dead"
        if transaction["fee"] < MIN_FEE:
            return "fee below the threshold"
        leases = [(each["snd"], each["lx"]) for each in self.blocks.values()]
        return "overlapping lease" if (transaction["snd"], transaction["lx"]) in leases else ""

    def _pending(self, txid: str) -> Said:
        if txid not in self.waiting:
            return _said(404, message="could not find the transaction in the pool")
        confirmed = {"confirmed-round": self.round} if self.round >= self.waiting[txid] and not self.pool_error else {}
        return _said(200, **{"pool-error": self.pool_error}, **confirmed)


def checked(body: bytes) -> tuple[str, dict[str, Any]]:
    """The id of a signed payment and what it says; ValueError if the network would not take it."""
    sent = msgpack.unpackb(body, strict_map_key=False)
    if set(sent) != {"sig", "txn"} or msgpack.packb(sent, use_bin_type=True) != body:
        raise ValueError("it is no canonical signed transaction")
    transaction: dict[str, Any] = sent["txn"]
    if list(transaction) != sorted(transaction) or any(value in (0, b"", "") for value in transaction.values()):
        raise ValueError("its fields are not in order, or there are empty ones")
    if transaction["type"] != "pay" or transaction["rcv"] != transaction["snd"] or "amt" in transaction:
        raise ValueError("it is no payment of nothing to oneself")
    packed: Any = msgpack.packb(transaction, use_bin_type=True)
    signed = b"TX" + packed
    try:
        Ed25519PublicKey.from_public_bytes(transaction["snd"]).verify(sent["sig"], signed)
    except InvalidSignature:
        raise ValueError("At least one signature didn't pass verification") from None
    digest = hashlib.new("sha512_256", signed).digest()
    return base64.b32encode(digest).decode().rstrip("="), transaction


def _said(status: int, **body: Any) -> Said:
    return status, {"content-type": "application/json"}, json.dumps(body).encode()


@contextlib.asynccontextmanager
async def algod() -> AsyncGenerator[Algod]:
    """A node that has stopped when the block ends."""
    async with web_server() as web:
        node = Algod(web)
        web.act = node.act
        yield node
