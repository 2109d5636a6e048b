"""How far an agent elsewhere is trusted: by the owner's word, or by the attestations that it shows."""

from typing import Any

from rookery.core.context import Context
from rookery.core.errors import PermissionDenied, RookeryError
from rookery.domains.a2a.cards import place_of
from rookery.settings import Settings

LEVELS = ("untrusted", "low", "medium", "high", "verified")
DEFAULT = "low"
VERIFIER = "verify_agent_reputation"


async def check_trust(ctx: Context, base: str, wanted: str) -> None:
    """PermissionDenied unless the agent at `base` is trusted as far as `wanted`."""
    vouched = vouched_for(ctx.platform.facts["settings"], base)
    if _rank(vouched) >= _rank(wanted):
        return
    shown = await _attested(ctx, base)
    if _rank(shown) >= _rank(wanted):
        return
    best = max(vouched, shown, key=_rank)
    raise PermissionDenied(
        f"the remote agent is {best}, and {wanted} is needed",
        hint="the owner can vouch for it with the setting a2a_trust, or lower min_trust",
        layer="trust",
    )


def vouched_for(settings: Settings, base: str) -> str:
    """How far the owner says that the host is to be trusted."""
    said = dict(settings.a2a_trust)
    place = place_of(base)
    for name in (place, place.rpartition(":")[0]):
        if name in said:
            return said[name][0]
    return LEVELS[0]


async def _attested(ctx: Context, base: str) -> str:
    """What the domain of reputations finds out about the agent, if it is there and the caller may ask it."""
    if VERIFIER not in ctx.platform.registry:
        return LEVELS[0]
    try:
        found: dict[str, Any] = (await ctx.call_tool(VERIFIER, {"agent_url": base})).model_dump()
    except RookeryError:
        return LEVELS[0]
    level = found.get("level")
    return level if level in LEVELS and found.get("verified", True) else LEVELS[0]


def _rank(level: str) -> int:
    return LEVELS.index(level)
