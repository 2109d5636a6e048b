"""How far an agent elsewhere is trusted: by the owner's word, or a little by the attestations that it shows."""

from typing import Any
from urllib.parse import urlsplit

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
    best = vouched_for(settings, base)
    if _rank(best) < _rank(wanted) <= _rank(ATTESTED):
        best = max(best, await _attested(ctx, base), key=_rank)
    if _rank(best) < _rank(wanted):
        raise PermissionDenied(
            f"the remote agent is {best}, and {wanted} is needed",
            hint="the owner can vouch for it with the setting a2a_trust",
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
    """What the domain of reputations finds out about the agent, if it is there and the caller may ask it.

    Only by a log of the agent's own host: a wallet and another's log can be named by whoever likes.
    """
    if VERIFIER not in ctx.platform.registry:
        return LEVELS[0]
    try:
        found: dict[str, Any] = (await ctx.call_tool(VERIFIER, {"agent_url": base})).model_dump()
    except RookeryError:
        return LEVELS[0]
    level = found.get("level")
    if level not in LEVELS or not found.get("verified") or not _at(found.get("log"), base):
        return LEVELS[0]
    return min(level, ATTESTED, key=_rank)


def _at(place: Any, base: str) -> bool:
    """Whether an address is at the host of `base`."""
    if not isinstance(place, str):
        return False
    there, here = urlsplit(place), urlsplit(base)
    return (there.scheme, there.netloc.lower()) == (here.scheme, here.netloc)


def _rank(level: str) -> int:
    return LEVELS.index(level)
