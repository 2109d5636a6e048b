"""Writes notes to Algorand: a payment of nothing to oneself that carries the note, signed with the owner's key."""

import base64
import hashlib
import importlib
from collections.abc import Awaitable, Callable
from typing import Any, cast
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rookery.attest.keys import address_of, seed_of
from rookery.attest.notes import Written
from rookery.core.errors import ConfigurationError, ServiceUnavailable, ValidationFailed
from rookery.db.database import Database
from rookery.outgoing.client import GuardedClient
from rookery.outgoing.threads import in_thread
from rookery.settings import Settings

MAX_NOTE = 1024
MAX_FEE_MICROS = 100_000
"""A tenth of an Algo: what asks for more is a mistake or a trap."""
TIMEOUT_S = 15.0
ROUNDS = 5
"""So many blocks are waited for; a transaction is in the next one or two."""
LEASED = "the same note was sent within the last hour and may be in a block by now: look at the wallet first"
Seeds = Callable[[str, str], Awaitable[bytes]]
Json = dict[str, Any]


class AlgorandLedger:
    """A ledger of the outside world, by an algod node. `seeds` gives the secret of an owner of a tenant."""

    def __init__(self, url: str, token: str, seeds: Seeds) -> None:
        self._url = url.rstrip("/")
        self._headers = {"x-algo-api-token": token} if token else {}
        self._seeds = seeds
        # The owner has named this host in the settings, so it may be wherever it likes; no other may.
        self._client = GuardedClient((urlsplit(url).netloc,))

    async def put(self, entry: Written) -> str:
        """Write the entry's payload as a note and return the transaction's id, once a block has it.

        The same payload again within an hour is refused by the network, so a repeated call does not pay twice.
        """
        if len(entry.payload) > MAX_NOTE:
            raise ValidationFailed(
                f"a note on Algorand has at most {MAX_NOTE} bytes, and this has {len(entry.payload)}",
                hint="shorten it",
            )
        seed = await self._seeds(entry.tenant, entry.owner)
        params = await self._ask("GET", "/v2/transactions/params")
        txid, packed = await in_thread(lambda: signed_note(seed, params, entry.payload))
        sent = await self._ask("POST", "/v2/transactions", packed)
        if sent.get("txId") != txid:
            raise ServiceUnavailable("the node took another transaction than it was sent", hint="is it an algod node?")
        await self._confirmed(txid)
        return txid

    async def _confirmed(self, txid: str) -> None:
        """Wait until a block has the transaction, or the node says why none will."""
        for _ in range(ROUNDS):
            state = await self._ask("GET", f"/v2/transactions/pending/{txid}?format=json")
            if state.get("pool-error"):
                raise ServiceUnavailable(f"the network refused it: {str(state['pool-error'])[:200]}")
            if state.get("confirmed-round"):
                return
            now = (await self._ask("GET", "/v2/status")).get("last-round")
            if type(now) is not int:
                break
            await self._ask("GET", f"/v2/status/wait-for-block-after/{now}")
        raise ServiceUnavailable(f"no block has the transaction {txid} yet", hint="look at it before you try again")

    async def _ask(self, method: str, path: str, content: bytes = b"") -> Json:
        headers = self._headers | ({"content-type": "application/x-binary"} if content else {})
        answer = await self._client.request(
            method, f"{self._url}{path}", content=content, headers=headers, timeout_s=TIMEOUT_S, follow=False
        )  # fmt: skip
        found = answer.json()
        if not isinstance(found, dict):
            raise ServiceUnavailable(f"the node answered with {answer.status} and no JSON", hint="is it an algod node?")
        if not answer.ok:
            said = str(cast(Json, found).get("message", ""))[:200]
            hint = LEASED if "lease" in said else "has the wallet funds?"
            raise ServiceUnavailable(f"the node refused it ({answer.status}): {said}", hint=hint)
        return cast(Json, found)


def signed_note(seed: bytes, params: Json, note: bytes) -> tuple[str, bytes]:
    """The id and the bytes of a signed transaction that carries the note. Blocks; the library is slow to import."""
    # Its parts are untyped; what is made with them is checked by the tests, byte by byte.
    transaction, encoding = _library("transaction"), _library("encoding")
    key = Ed25519PrivateKey.from_private_bytes(seed)
    suggested, wallet = _suggested(params, transaction), address_of(key.public_key())
    # The lease: while this transaction can still be in a block, no second one with the same note can.
    lease = hashlib.sha256(note).digest()
    try:
        made = transaction.PaymentTxn(wallet, suggested, wallet, 0, note=note, lease=lease)
        to_sign = base64.b64decode(encoding.msgpack_encode(made))
    except Exception:
        # Its errors have no base of their own, and what the node said is all that can be wrong here.
        raise ServiceUnavailable("the node does not say how to send something", hint="is it an algod node?") from None
    if made.fee > MAX_FEE_MICROS:
        raise ValidationFailed(f"the node asks for {made.fee} millionths of an Algo", hint="ask another node")
    # Signed here, so that the secret stays here.
    signature = key.sign(b"TX" + to_sign)
    signed = transaction.SignedTransaction(made, base64.b64encode(signature).decode())
    return str(made.get_txid()), base64.b64decode(encoding.msgpack_encode(signed))


def _library(part: str) -> Any:
    try:
        return importlib.import_module(f"algosdk.{part}")
    except ImportError:
        raise ConfigurationError(
            "notes on Algorand need the library of Algorand", hint="pip install 'rookery[algorand]'"
        ) from None


def _suggested(params: Json, transaction: Any) -> Any:
    try:
        return transaction.SuggestedParams(
            fee=int(params["fee"]),
            first=int(params["last-round"]),
            last=int(params["last-round"]) + 1000,
            gh=str(params["genesis-hash"]),
            gen=str(params["genesis-id"]),
            min_fee=int(params["min-fee"]),
        )
    except (KeyError, TypeError, ValueError):
        raise ServiceUnavailable("the node does not say how to send something", hint="is it an algod node?") from None


def ledger_of(settings: Settings, database: Database) -> AlgorandLedger | None:
    """The ledger that the settings name, or None."""
    if not settings.algorand_algod_url:
        return None

    async def seeds(tenant: str, owner: str) -> bytes:
        return await database.change(lambda tx: seed_of(tx, tenant, owner))

    return AlgorandLedger(settings.algorand_algod_url, settings.algorand_algod_token, seeds)
