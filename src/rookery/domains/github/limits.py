"""The limits that GitHub tells of in its answers, and how they are obeyed. How it tells is in its documentation."""

import asyncio
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from rookery.core.context import Context
from rookery.core.errors import RateLimited
from rookery.outgoing.client import Answer

SHORT_S = 20.0
"""So long a call waits. Who has to wait for longer is told so instead."""
RESERVE_S = 5.0
UNTOLD_S = 60.0
"""What GitHub wants to be left alone for if it does not say for how long."""
LONGEST_S = 24 * 3600.0
TICK_S = 1.0
_SECONDARY = re.compile(rb"secondary rate limit|abuse detection", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Limit:
    """That nothing more should be asked for so many seconds."""

    kind: str
    wait_s: float


def limit_told(answer: Answer) -> Limit | None:
    """The limit that this answer is a refusal by; None if it is none. What was refused so was not done."""
    if answer.status not in (403, 429):
        return None
    after = _seconds_after(answer)
    if after is not None:
        return Limit("secondary", after)
    spent = limit_reached(answer)
    if spent is not None:
        return spent
    if answer.status == 429 or _SECONDARY.search(answer.body[:10_000]):
        return Limit("secondary", UNTOLD_S)
    return None


def limit_reached(answer: Answer) -> Limit | None:
    """The limit that is used up with this answer, whatever else it says."""
    if answer.headers.get("x-ratelimit-remaining") != "0":
        return None
    reset = _whole(answer.headers.get("x-ratelimit-reset"))
    if reset is None:
        return Limit("primary", UNTOLD_S) if answer.status in (403, 429) else None
    return Limit("primary", _within(reset - _their_time(answer)))


async def sit_out(ctx: Context, limit: Limit) -> None:
    """Wait for a short limit, and show it. A long one, or one that would take the call's time, is RateLimited."""
    if limit.wait_s > min(SHORT_S, ctx.remaining_s - RESERVE_S):
        raise refusal(limit)
    begun = time.monotonic()
    while (waited := time.monotonic() - begun) < limit.wait_s:
        ctx.progress(round(waited, 1), round(limit.wait_s, 1), f"waiting for GitHub's {limit.kind} rate limit")
        await asyncio.sleep(min(TICK_S, limit.wait_s - waited))
        ctx.check()


def refusal(limit: Limit) -> RateLimited:
    """What is told to whoever would have to wait for long, with the time."""
    until = datetime.now(UTC) + timedelta(seconds=limit.wait_s)
    minutes = f"{limit.wait_s / 60:.0f} min" if limit.wait_s >= 90 else f"{limit.wait_s:.0f} s"
    return RateLimited(
        f"GitHub's {limit.kind} rate limit is used up until {until:%Y-%m-%d %H:%M:%S} UTC (in {minutes})",
        hint="do something else until then; the same call works afterwards",
    )


def _seconds_after(answer: Answer) -> float | None:
    said = answer.headers.get("retry-after")
    if said is None:
        return None
    seconds = _whole(said)
    if seconds is not None:
        return _within(seconds)
    moment = _moment(said)
    return UNTOLD_S if moment is None else _within(moment - _their_time(answer))


def _their_time(answer: Answer) -> float:
    """What their clock shows: ours may be wrong, and the times in the answer are theirs."""
    moment = _moment(answer.headers.get("date", ""))
    return time.time() if moment is None else moment


def _moment(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,12}", text) else None


def _within(seconds: float) -> float:
    # Their clock shows whole seconds, and what is asked a moment too early counts against us.
    return min(max(seconds, 0.0) + 0.1, LONGEST_S)
