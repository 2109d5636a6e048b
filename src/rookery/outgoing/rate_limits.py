"""The rate limits of services that are asked: a short one is waited for, a long one is told with the time."""

import asyncio
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from rookery.core.context import Context
from rookery.core.errors import RateLimited

PATIENCE_S = 20.0
"""So long a call waits. Who has to wait for longer is told so instead."""
RESERVE_S = 5.0
"""So much of the call's time is kept for what comes after the wait."""
TICK_S = 1.0
LONGEST_S = 366 * 86_400.0
"""Who says more than that has not meant it, and no calendar need reach so far."""


def patience_s(ctx: Context) -> float:
    """The longest that this call can wait for a limit now."""
    return max(0.0, min(PATIENCE_S, ctx.remaining_s - RESERVE_S))


async def sit_out(ctx: Context, whose: str, wait_s: float) -> None:
    """Wait for a limit such as `GitHub's primary rate limit`. RateLimited if that would take too long."""
    if wait_s > patience_s(ctx):
        raise used_up(whose, wait_s)
    await wait_shown(ctx, whose, wait_s)


async def wait_shown(ctx: Context, whose: str, wait_s: float) -> None:
    """Wait, and show it each second."""
    ends = time.monotonic() + wait_s
    while (left_s := ends - time.monotonic()) > 0:
        if left_s > TICK_S / 2:
            show(ctx, f"waiting for {whose}: {left_s:.0f} s left")
        await asyncio.sleep(min(TICK_S, left_s))
        ctx.check()


def used_up(whose: str, wait_s: float) -> RateLimited:
    """What is told to whoever would have to wait for long, with the time."""
    wait_s = min(wait_s, LONGEST_S)
    until = datetime.now(UTC) + timedelta(seconds=wait_s)
    left = f"{wait_s / 60:.0f} min" if wait_s >= 90 else f"{wait_s:.0f} s"
    return RateLimited(
        f"{whose} is used up until {until:%Y-%m-%d %H:%M:%S} UTC (in {left})",
        hint="do something else until then: the same call works afterwards",
    )


def show(ctx: Context, text: str) -> None:
    """Tell the client how long the call has run, which only ever grows, and what it is at."""
    ctx.progress(round(time.monotonic() - ctx.call.started, 4), None, text)


def told_wait_s(headers: Mapping[str, str]) -> float | None:
    """The seconds that `Retry-After` asks for, by a number or a date; None if it is absent or cannot be read."""
    said = headers.get("retry-after")
    seconds = whole(said)
    if seconds is not None:
        return float(seconds)
    moment = None if said is None else _moment(said)
    return None if moment is None else max(0.0, moment - their_time(headers))


def their_time(headers: Mapping[str, str]) -> float:
    """What their clock shows: ours may be wrong, and the times in an answer are theirs."""
    moment = _moment(headers.get("date", ""))
    return time.time() if moment is None else moment


def whole(text: str | None) -> int | None:
    """A header's whole number; None if it is none, or one that no clock reaches."""
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,12}", text) else None


def _moment(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
