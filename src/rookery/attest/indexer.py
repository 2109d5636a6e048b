"""Reads the notes of a wallet from an Algorand indexer. Needs nothing but HTTP."""

import base64
import binascii
from typing import Any, cast
from urllib.parse import quote, urlsplit

from rookery.attest.notes import PREFIX, read_note
from rookery.core.errors import ServiceUnavailable
from rookery.outgoing.client import GuardedClient

TIMEOUT_S = 15.0
MAX_BYTES = 4 * 1024 * 1024
AT_MOST = 50


async def wallet_notes(indexer_url: str, wallet: str) -> list[dict[str, Any]]:
    """What the wallet has attested, newest first, at most 50: agent, hash, transaction and round of each.

    Only notes that the wallet wrote to itself count: anybody can send a note to anybody.
    """
    prefix = quote(base64.b64encode(PREFIX.encode()).decode(), safe="")
    address = f"{indexer_url.rstrip('/')}/v2/accounts/{wallet}/transactions?note-prefix={prefix}&limit={AT_MOST}"
    # The owner has named this host in the settings, so it may be wherever it likes; no other may.
    client = GuardedClient((urlsplit(indexer_url).netloc,))
    answer = await client.request("GET", address, timeout_s=TIMEOUT_S, max_bytes=MAX_BYTES, plain=True)
    found = answer.json()
    listed = cast("dict[str, Any]", found).get("transactions") if isinstance(found, dict) else None
    if not answer.ok or not isinstance(listed, list):
        raise ServiceUnavailable(f"the indexer answered with {answer.status} and no transactions")
    notes = [_note(each, wallet) for each in cast("list[Any]", listed)]
    kept = {note["txid"]: note for note in notes if note is not None}
    return sorted(kept.values(), key=lambda note: note["round"], reverse=True)[:AT_MOST]


def _note(found: Any, wallet: str) -> dict[str, Any] | None:
    if not isinstance(found, dict):
        return None
    transaction = cast("dict[str, Any]", found)
    payment = transaction.get("payment-transaction")
    receiver = cast("dict[str, Any]", payment).get("receiver") if isinstance(payment, dict) else None
    if transaction.get("tx-type") != "pay" or (transaction.get("sender"), receiver) != (wallet, wallet):
        return None
    try:
        said = read_note(base64.b64decode(transaction.get("note", ""), validate=True))
    except (binascii.Error, TypeError, ValueError):
        return None
    txid, at = transaction.get("id"), transaction.get("confirmed-round")
    if said is None or not isinstance(txid, str) or type(at) is not int:
        return None
    return {"agentId": said[0], "hash": said[1], "txid": txid, "round": at}
