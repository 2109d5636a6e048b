"""Cards of agents elsewhere: fetched behind the address guard, kept for five minutes, and found again by words."""

from collections.abc import Sequence
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.context import Context
from rookery.core.errors import RookeryError, ValidationFailed
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.a2a import sdk
from rookery.domains.a2a.tables import cards
from rookery.outgoing.agents_client import agents_client, reason
from rookery.outgoing.threads import in_thread

CARD_PATH = "/.well-known/agent-card.json"
AGENT = "Rookery/A2A-Client"
FRESH_MS = 300_000
TIMEOUT_S = 10.0
MAX_CARD_BYTES = 256 * 1024
KEPT = 500
MAX_URL = 1_000
MAX_WORDS = 20
Json = dict[str, Any]

_MINE = cards.c.tenant == sa.bindparam("of_tenant")
_FRESH = sa.select(cards.c.card).where(
    _MINE, cards.c.url == sa.bindparam("the_url"), cards.c.fetched_ms > sa.bindparam("since_ms")
)
_KNOWN = sa.select(cards.c.url, cards.c.card).where(_MINE).order_by(cards.c.fetched_ms.desc(), cards.c.url).limit(KEPT)
_VALUES = {
    name: sa.bindparam(name, type_=sa.JSON if name == "card" else None)
    for name in ("tenant", "url", "name", "card", "fetched_ms")
}
_KEEP = {
    name: dialect.insert(cards)
    .values(_VALUES)
    .on_conflict_do_update(
        index_elements=["tenant", "url"], set_={part: _VALUES[part] for part in ("name", "card", "fetched_ms")}
    )
    .returning(cards.c.url)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}
_OLDEST_KEPT = sa.select(cards.c.fetched_ms).where(_MINE).order_by(cards.c.fetched_ms.desc()).offset(KEPT).limit(1)
_FORGET = sa.delete(cards).where(_MINE, cards.c.fetched_ms <= sa.bindparam("until_ms")).returning(cards.c.url)


class NoCard(Exception):
    """There is none at the address, and the text says why."""


def base_of(url: str) -> str:
    """The address of an agent in the one form that is compared; ValidationFailed if it is none."""
    text = url.strip()
    try:
        parts = urlsplit(text)
        sound = parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound, parts = False, urlsplit("")
    if not sound or parts.query or parts.fragment or "@" in parts.netloc or len(text) > MAX_URL:
        raise ValidationFailed(
            "this is no address of an agent", hint="http or https and a host, such as https://agent.example.org"
        )
    path = parts.path.removesuffix(CARD_PATH).rstrip("/")
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{path}"


def place_of(base: str) -> str:
    """The host of an address, with its port if it names one: what settings call it by."""
    return urlsplit(base).netloc


async def card_of(ctx: Context, base: str) -> Json:
    """The card at an address, if need be fetched; NoCard says why there is none."""
    await sdk.load("rookery.domains.a2a.card_reading")
    tenant = ctx.actor.tenant
    kept = await ctx.read(lambda tx: _fresh(tx, tenant, base))
    if kept is not None:
        return kept
    card = await _fetched(ctx, base)
    await ctx.write(lambda tx: _keep(tx, tenant, base, card))
    return card


async def known_cards(ctx: Context, words: str, limit: int) -> list[Json]:
    """The cards seen before in which every one of the words occurs, the newest first."""
    wanted = list(dict.fromkeys(words.lower().split()))[:MAX_WORDS]

    def search(tx: Tx) -> list[Json]:
        """In the thread of the read: cards are long, and others have written them."""
        rows = tx.all(_KNOWN, {"of_tenant": ctx.actor.tenant})
        found = ({**row.card, "at": row.url} for row in rows if _has(row.card, wanted))
        return list(islice(found, limit))

    return await ctx.read(search)


def _has(card: Json, wanted: Sequence[str]) -> bool:
    text = _words(card)
    return all(word in text for word in wanted)


def _words(card: Json) -> str:
    parts = [card["name"], card["description"], card["provider"]]
    for skill in card["skills"]:
        parts += [skill["id"], skill["name"], skill["description"], *skill["tags"]]
    return " ".join(parts).lower()


async def _fetched(ctx: Context, base: str) -> Json:
    from rookery.domains.a2a.card_reading import Unreadable, read_card

    client = agents_client(ctx.platform.facts["settings"])
    try:
        answer = await client.request(
            "GET",
            f"{base}{CARD_PATH}",
            headers={"accept": "application/json", "user-agent": AGENT},
            timeout_s=min(TIMEOUT_S, max(ctx.remaining_s, 0.1)),
            max_bytes=MAX_CARD_BYTES,
        )
    except RookeryError as error:
        raise NoCard(reason(error)) from error
    if not answer.ok:
        raise NoCard(f"the host answered with {answer.status}")
    try:
        # In a thread: a card may have been made to take long.
        return await in_thread(lambda: read_card(answer.json(), base))
    except Unreadable as error:
        raise NoCard(str(error)) from error


def _fresh(tx: Tx, tenant: str, base: str) -> Json | None:
    return tx.scalar(_FRESH, {"of_tenant": tenant, "the_url": base, "since_ms": now_ms(tx) - FRESH_MS})


def _keep(tx: Tx, tenant: str, base: str, card: Json) -> None:
    at = now_ms(tx)
    tx.one(_KEEP[tx.dialect], {"tenant": tenant, "url": base, "name": card["name"], "card": card, "fetched_ms": at})
    until_ms = tx.scalar(_OLDEST_KEPT, {"of_tenant": tenant})
    if until_ms is not None:
        tx.all(_FORGET, {"of_tenant": tenant, "until_ms": until_ms})
