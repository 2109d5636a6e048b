"""How far an agent elsewhere is trusted: by the owner's word, which may name its key, or a little by attestations."""

from typing import Any

from rookery.attest.card import origin_of
from rookery.core.context import Context
from rookery.core.errors import PermissionDenied, RookeryError
from rookery.domains.a2a.cards import place_of
from rookery.settings import Settings

LEVELS = ("untrusted", "low", "medium", "high", "verified")
DEFAULT = "low"
ATTESTED = "low"
"""So far at most attestations go: whoever has a key can sign as many as it likes."""
VERIFIER = "verify_agent_reputation"


async def check_trust(ctx: Context, base: str, asked: str | None) -> None:
    """PermissionDenied unless the agent at `base` is trusted as far as `asked`, and as far as the owner wants."""
    settings: Settings = ctx.platform.facts["settings"]
    wanted = max(asked or DEFAULT, settings.a2a_min_trust, key=_rank)
    said = vouched_for(settings, base)
    best, pinned = said or (LEVELS[0], None)
    if pinned is not None and _rank(best) >= _rank(wanted):
        await _refuse_other_key(ctx, base, pinned)
    # Where the owner has spoken, nothing that the agent says counts.
    if said is None and _rank(best) < _rank(wanted) <= _rank(ATTESTED) and await _shown_key(ctx, base) is not None:
        best = ATTESTED
    if _rank(best) < _rank(wanted):
        raise PermissionDenied(
            f"the remote agent is {best}, and {wanted} is needed",
            hint="the owner can vouch for it with the setting a2a_trust",
            layer="trust",
        )


def vouched_for(settings: Settings, base: str) -> tuple[str, str | None] | None:
    """How far the owner says that the host is to be trusted, and the id of the key that it must have, if any.

    None if the owner says nothing of it.
    """
    said = dict(settings.a2a_trust)
    place = place_of(base)
    for name in (place, place.rpartition(":")[0]):
        if name in said:
            level, *keys = said[name]
            return level, keys[0] if keys else None
    return None


async def _refuse_other_key(ctx: Context, base: str, pinned: str) -> None:
    """PermissionDenied unless the host holds the key that the owner has pinned.

    Without a layer: the owner vouches for the host, so it is no violation of the caller's to ask it.
    """
    if await _shown_key(ctx, base) != pinned:
        raise PermissionDenied(
            "the remote agent does not show the key that the owner has pinned for its host",
            hint=f"{VERIFIER} says what it shows; the owner can change the setting a2a_trust",
        )


async def _shown_key(ctx: Context, base: str) -> str | None:
    """The id of the key with which the agent attests, as far as the caller may find out; None if there is none.

    Only by a log at the agent's own host, which proves that it holds the key: a wallet and another's log can be named
    and copied by whoever likes.
    """
    if VERIFIER not in ctx.platform.registry:
        return None
    try:
        found: dict[str, Any] = (await ctx.call_tool(VERIFIER, {"agent_url": base})).model_dump()
    except RookeryError:
        return None
    own = origin_of(str(found.get("log"))) == origin_of(base)
    return found.get("keyid") if own and found.get("verified") and found.get("proven") else None


def _rank(level: str) -> int:
    return LEVELS.index(level)
