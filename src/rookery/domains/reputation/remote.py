"""Finds out what an agent elsewhere attests: its card, its key and its log, or the notes of its wallet."""

from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from rookery.attest.card import attestations_of, card_address, origin_of, wallet_of_card
from rookery.attest.indexer import wallet_notes
from rookery.attest.keys import address_of, is_address, keyid_of
from rookery.attest.proof import new_nonce, refuse_unproven
from rookery.attest.verify import SHOWN, Broken, Fault, Verified, checked_key, compared, level_of, verify_log
from rookery.core.context import Context
from rookery.core.errors import RookeryError, ValidationFailed
from rookery.domains.reputation.attesters import Attesters
from rookery.outgoing.agents_client import agents_client, reason
from rookery.outgoing.client import Answer
from rookery.outgoing.threads import in_thread
from rookery.settings import Settings

CARD_BYTES, LOG_BYTES = 256 * 1024, 8 * 1024 * 1024
FETCH_S = 10.0
MAX_REDIRECTS = 3
REDIRECTS = frozenset({301, 302, 303, 307, 308})
NOTE = "level counts the attestations that it made itself; that is no proof that they are true"
UNPROVEN = "Nor does its host prove that it holds the key: the log may be a copy of another agent's"
Json = dict[str, Any]


async def verify_remote(ctx: Context, address: str) -> Json:
    """What is known of the agent at an address, or of a wallet. What does not hold is told, not raised."""
    if is_address(address):
        return await _of_wallet(ctx, address)
    _refuse_no_address(address)
    try:
        return await _Visit(ctx).to(address)
    except Broken as broken:
        return failed(broken.fault, broken.why)


def failed(fault: Fault, why: str) -> Json:
    """The answer about an agent of which nothing can be relied on."""
    return {
        "verified": False, "level": level_of(0), "meets_minimum": False, "count": 0, "attestations": [],
        "fault": fault, "why": why,
    }  # fmt: skip


def _refuse_no_address(address: str) -> None:
    try:
        parts = urlsplit(address)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        sound = False
    if not sound:
        raise ValidationFailed(
            "agent_url: is neither an address nor a wallet",
            hint="such as https://agent.example.org, or an Algorand address of 58 characters",
        )


async def _of_wallet(ctx: Context, wallet: str) -> Json:
    settings: Settings = ctx.platform.facts["settings"]
    try:
        notes = await wallet_notes(settings.algorand_indexer_url, wallet)
    except RookeryError as error:
        return failed("unreachable", f"the indexer: {error.message}") | {"wallet": wallet}
    return {
        "verified": bool(notes),
        "wallet": wallet,
        "level": level_of(len(notes)),
        "meets_minimum": bool(notes),
        "count": len(notes),
        "attestations": notes[:SHOWN],
        **({"note": NOTE} if notes else {"why": "the wallet has written no attestations"}),
    }


class _Visit:
    """One look at an agent elsewhere."""

    def __init__(self, ctx: Context) -> None:
        settings: Settings = ctx.platform.facts["settings"]
        self._ctx = ctx
        self._client = agents_client(settings)

    async def to(self, address: str) -> Json:
        at = card_address(address)
        card = await self._card(at)
        places = attestations_of(card, at)
        if places is None:
            return await self._by_wallet(card, at)
        if any(origin_of(place) != origin_of(at) for place in places.all):
            # A log that holds is somebody's: without this anybody could name it as its own.
            raise Broken("other_agent", "its card names another host's log")
        key = (await self._get(places.key, CARD_BYTES, "its key")).json()
        agent_id = str(cast(Json, key).get("agentId")) if isinstance(key, dict) else ""
        if places.agent_id not in (None, agent_id):
            raise Broken("other_agent", "its card and its key are of two agents")
        public = checked_key(key, agent_id)
        proven = await self._proven(places.proof, public, agent_id)
        log = await self._get(places.log, LOG_BYTES, "its log")
        found = await self._checked((at, places.log), log.body, agent_id, keyid_of(public))
        whose = {"agent_id": agent_id, "card": at, "log": places.log}
        if found.fault is not None:
            return failed(found.fault, found.why or "") | whose
        told_of = whose | {"wallet": address_of(public), "proven": proven}
        return told(found) | told_of | ({} if proven else {"note": f"{NOTE}. {UNPROVEN}"})

    async def _proven(self, place: str | None, public: Ed25519PublicKey, agent_id: str) -> bool:
        """Whether the host shows that it holds the key. Broken if what it shows proves that it does not."""
        origin = None if place is None else origin_of(place)
        if place is None or origin is None:
            return False
        nonce = new_nonce()
        try:
            shown = await self._get(f"{place}?nonce={nonce}", CARD_BYTES, "its proof")
        except Broken:
            # Such as a server that does not know by which address others reach it.
            return False
        refuse_unproven(shown.json(), public, agent_id, nonce, origin)
        return True

    async def _by_wallet(self, card: Json, at: str) -> Json:
        """What the wallet says that the card names. That it is the agent's own is the card's word alone."""
        tenant = self._ctx.actor.tenant
        if await self._ctx.read(lambda tx: Attesters(tx, tenant).seen(at)):
            raise Broken("cut", "the log was cut: its card named one before, and names none now")
        wallet = wallet_of_card(card)
        if wallet is None:
            raise Broken("unreachable", "its card names neither attestations nor a wallet")
        return await _of_wallet(self._ctx, wallet) | {"card": at, "claimed_by_card": True}

    async def _card(self, at: str) -> Json:
        card = (await self._get(at, CARD_BYTES, "its card")).json()
        if not isinstance(card, dict):
            raise Broken("unreachable", "its card is no JSON object")
        for part in ("name", "version"):
            if not isinstance(cast(Json, card).get(part), str):
                raise Broken("unreachable", f"its card has no {part}")
        return cast(Json, card)

    async def _checked(self, places: tuple[str, str], log: bytes, agent_id: str, keyid: str) -> Verified:
        """What the log is, compared with what was last in order at its address and its card's. Then that is kept."""
        tenant = self._ctx.actor.tenant
        known = await self._ctx.read(lambda tx: Attesters(tx, tenant).seen(*places))
        for each in known:
            if each.keyid != keyid:
                why = f"the key was replaced: it is {keyid[:16]}…, and was {each.keyid[:16]}…"
                return Verified(agent_id=agent_id, fault="key_replaced", why=why)
        # Seconds for the largest log, which nobody else may wait for.
        found = await in_thread(lambda: verify_log(log, keyid=keyid))
        for each in known:
            found = compared(found, each.head)
        if found.fault is None and found.agent_id != agent_id:
            return Verified(fault="other_agent", why="its key and its log are of two agents")
        if found.head is not None:
            await self._ctx.write(lambda tx: Attesters(tx, tenant).keep(places, found))
        return found

    async def _get(self, address: str, most: int, what: str) -> Answer:
        """What is at the address. Redirects are followed within its host: what another has is not its own."""
        origin = origin_of(address)
        answer = await self._ask(address, most, what)
        for _ in range(MAX_REDIRECTS):
            if answer.status not in REDIRECTS or "location" not in answer.headers:
                break
            address = _joined(address, answer.headers["location"])
            if origin_of(address) != origin:
                raise Broken("unreachable", f"{what} cannot be fetched: the host sends on to another; ask that one")
            answer = await self._ask(address, most, what)
        if not answer.ok:
            raise Broken("unreachable", f"{what} cannot be fetched: the host answered with {answer.status}")
        return answer

    async def _ask(self, address: str, most: int, what: str) -> Answer:
        try:
            return await self._client.request(
                "GET",
                address,
                headers={"accept": "application/json"},
                timeout_s=min(FETCH_S, max(self._ctx.remaining_s, 0.1)),
                max_bytes=most,
                follow=False,
            )
        except RookeryError as error:
            raise Broken("unreachable", f"{what} cannot be fetched: {reason(error)}") from None


def _joined(address: str, location: str) -> str:
    try:
        return urljoin(address, location)
    except ValueError:
        return ""


def told(found: Verified) -> Json:
    """The answer about a log that holds."""
    return {
        "verified": found.count > 0,
        "agent_id": found.agent_id,
        "keyid": found.keyid,
        "level": found.level,
        "meets_minimum": found.count > 0,
        "count": found.count,
        "attestations": found.newest,
        "note": NOTE,
    }
