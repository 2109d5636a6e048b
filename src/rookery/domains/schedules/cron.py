"""When a schedule is due: a cron expression in a time zone, or an interval. Pure: no clock, no database.

An expression has the five classic fields. Day-of-month and day-of-week are alternatives if both are restricted (one
that begins with `*` is not). Times are local to the schedule's zone, and clocks that are put forward or back change
them so:

- A time that does not exist comes as much later as the clock is put forward: 02:30 at 03:30.
- A time that comes twice is due the first time only, unless the schedule is for every hour: then it goes on
  through both.
"""

import functools
import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from rookery.core.errors import ValidationFailed

MINUTE_MS = 60_000
MIN_GAP_MS = 5 * MINUTE_MS
MAX_INTERVAL_MINUTES = 366 * 24 * 60
LOOKED_AT_FIRES, LOOKED_AT_MS = 200, 8 * 24 * 60 * MINUTE_MS
MAX_LOOK_MS = 60 * 366 * 24 * 60 * MINUTE_MS
"""The least gap is looked for over so many due times and this time, whichever is more, but not over centuries."""
PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FIELDS = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L",
    "month": "1-12, JAN-DEC",
    "day-of-week": "0-7, SUN-SAT, such as MON#1 or 5L",
}
_FIELD = re.compile(r"[0-9A-Za-z*,/#-]{1,100}")
_ZONE = re.compile(r"(?!posix/|right/)[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}")
# No clock was ever put forward or back by more, but for the islands that changed the date.
_MOST = timedelta(hours=3)
# An acceptance must not depend on the day on which it is asked for.
_REFERENCE_MS = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class Timing:
    """Either an expression or an interval. An interval counts from `anchor_ms`."""

    cron: str | None
    interval_ms: int | None
    zone: str = "UTC"
    anchor_ms: int = 0


@dataclass(frozen=True, slots=True)
class Cron:
    """A checked expression in its zone."""

    expression: str
    zone: ZoneInfo
    every_hour: bool

    def due_after(self, after_ms: int) -> Iterator[int]:
        """Every due time after this one, in order. Ends if nothing is due for 50 years."""
        last = after_ms
        start = self._local(after_ms).replace(second=0, microsecond=0)
        if self._calm(start):
            # The library's own handling of zones takes `*/30 2 * * *` for a schedule of every hour: it gets none.
            for local in CronSim(self.expression, start):
                if not self._calm(local):
                    break
                at_ms = int(local.replace(tzinfo=self.zone).timestamp()) * 1000
                if at_ms > last:
                    yield (last := at_ms)
            else:
                return
        yield from self._sorted_after(last)

    def _calm(self, local: datetime) -> bool:
        """Whether no clock changes near this time, so that local times come one after the other."""
        if self.zone.key == "UTC":
            return True
        before, after = ((local + away).replace(tzinfo=self.zone).utcoffset() for away in (-_MOST, _MOST))
        return before == after

    def _sorted_after(self, after_ms: int) -> Iterator[int]:
        """The same where clocks change: each is held back until nothing earlier can follow."""
        waiting: list[int] = []
        last = after_ms
        start = self._local(after_ms).replace(second=0, microsecond=0) - _MOST
        for local in CronSim(self.expression, start):
            while waiting and self._local(waiting[0]) <= local - _MOST:
                if (at_ms := heapq.heappop(waiting)) > last:
                    yield (last := at_ms)
            for at_ms in self._moments(local):
                heapq.heappush(waiting, at_ms)
        for at_ms in sorted(set(waiting)):
            if at_ms > last:
                yield at_ms

    def _local(self, at_ms: int) -> datetime:
        return datetime.fromtimestamp(at_ms / 1000, self.zone).replace(tzinfo=None)

    def _moments(self, local: datetime) -> list[int]:
        """When a local time is: once, twice, or never and so later."""
        first, second = (local.replace(tzinfo=self.zone, fold=fold) for fold in (0, 1))
        before, after = (moment.utcoffset() or timedelta() for moment in (first, second))
        moments = [first] if before == after or not self.every_hour else [first, second] if before > after else []
        return [int(moment.timestamp()) * 1000 for moment in moments]


@functools.lru_cache(maxsize=512)
def parse(expression: str, zone: str) -> Cron:
    """The expression in its zone. What is wrong with it is refused by the name of the field."""
    words = expression.split()
    if len(words) == 1 and words[0].startswith("@"):
        if words[0].lower() not in PRESETS:
            raise ValidationFailed(f"cron_expression: there is no {words[0][:40]}", hint=f"known: {', '.join(PRESETS)}")
        words = PRESETS[words[0].lower()].split()
    if len(words) != len(FIELDS):
        raise ValidationFailed(
            f"cron_expression: has {len(words)} fields, not {len(FIELDS)}", hint=f"they are {', '.join(FIELDS)}"
        )
    for name, word in zip(FIELDS, words, strict=True):
        if not _FIELD.fullmatch(word):
            raise _bad(name, word)
    text = " ".join(words)
    try:
        hours = CronSim(text, datetime(2024, 1, 1)).hours  # noqa: DTZ001 local times have no zone here
        return Cron(text, zone_of(zone), every_hour=len(hours) == 24)
    except CronSimError as error:
        name = str(error).removeprefix("Bad ")
        raise _bad(name, dict(zip(FIELDS, words, strict=True)).get(name, text)) from None


_HINT = "such as 0 9 * * MON-FRI"


def _bad(name: str, word: str) -> ValidationFailed:
    return ValidationFailed(
        f"cron_expression: bad {name} {word[:40]!r}", hint=f"{name} takes {FIELDS.get(name, '')}; {_HINT}"
    )


def zone_of(name: str) -> ZoneInfo:
    """The IANA time zone of that name."""
    if _ZONE.fullmatch(name) and name not in ("Factory",):
        try:
            return ZoneInfo(name)
        except (LookupError, ValueError, OSError):
            pass
    raise ValidationFailed(f"timezone: there is no {name[:60]!r}", hint="a name such as Europe/Berlin or UTC")


def check_timing(cron: str | None, interval_minutes: int | None, zone: str, anchor_ms: int) -> Timing:
    """The timing, if it is one or the other and never due more often than every five minutes."""
    if (cron is None) == (interval_minutes is None):
        raise ValidationFailed(
            "give either cron_expression or interval_minutes", hint=f"cron_expression {_HINT}, or interval_minutes 60"
        )
    zone_of(zone)
    if cron is not None:
        parsed = parse(cron, zone)
        _check_gap(parsed)
        return Timing(parsed.expression, None, zone, anchor_ms)
    assert interval_minutes is not None
    if interval_minutes * MINUTE_MS < MIN_GAP_MS or interval_minutes > MAX_INTERVAL_MINUTES:
        raise ValidationFailed(
            f"interval_minutes: {interval_minutes} is not from {MIN_GAP_MS // MINUTE_MS} to {MAX_INTERVAL_MINUTES}",
            hint="five minutes is the shortest",
        )
    return Timing(None, interval_minutes * MINUTE_MS, zone, anchor_ms)


@functools.lru_cache(maxsize=512)
def min_gap(expression: str) -> int | None:
    """The least time between two due times, seen over many of them; None if it is due once or never.

    Looks no further once a gap is too short.
    """
    first = last = least = None
    for count, at_ms in enumerate(parse(expression, "UTC").due_after(_REFERENCE_MS), start=1):
        first = at_ms if first is None else first
        if last is not None:
            least = min(at_ms - last, least or at_ms - last)
        last = at_ms
        enough = count > LOOKED_AT_FIRES and last - first >= LOOKED_AT_MS
        if enough or last - first > MAX_LOOK_MS or (least or MIN_GAP_MS) < MIN_GAP_MS:
            break
    return least


def _check_gap(cron: Cron) -> None:
    least = min_gap(cron.expression)
    if least is None:
        raise ValidationFailed(f"cron_expression: {cron.expression} is never due", hint=_HINT)
    if least < MIN_GAP_MS:
        raise ValidationFailed(
            f"cron_expression: {cron.expression} is due again after {least // MINUTE_MS} min, "
            f"the shortest is {MIN_GAP_MS // MINUTE_MS}",
            hint="leave at least five minutes between any two due times",
        )


def next_due(timing: Timing, after_ms: int) -> int | None:
    """The first due time after this one; None if there is none within 50 years."""
    if timing.cron is not None:
        return next(parse(timing.cron, timing.zone).due_after(after_ms), None)
    assert timing.interval_ms is not None
    whole = max(0, (after_ms - timing.anchor_ms) // timing.interval_ms)
    return timing.anchor_ms + (whole + 1) * timing.interval_ms


def latest_due(timing: Timing, due_ms: int, now_ms: int) -> int:
    """The last due time until now, at least `due_ms`: what is left of those that were missed."""
    if timing.interval_ms is not None:
        return max(due_ms, timing.anchor_ms + (now_ms - timing.anchor_ms) // timing.interval_ms * timing.interval_ms)
    assert timing.cron is not None
    # Nobody waits for a walk through months of five minutes: from a while ago there is one due time or all are rare.
    latest = due_ms
    for span_ms in (60 * MINUTE_MS, 25 * 60 * MINUTE_MS, 32 * 24 * 60 * MINUTE_MS, now_ms):
        for at_ms in parse(timing.cron, timing.zone).due_after(max(due_ms, now_ms - span_ms)):
            if at_ms > now_ms:
                break
            latest = at_ms
        if latest > due_ms or now_ms - span_ms <= due_ms:
            return latest
    return latest
