"""The steps of a run as bars on an axis of time: where each stands, how long it is, and what was left out. Pure.

Long stretches in which nothing went on, or only a person was waited for, are drawn short and marked: else a night
would press a morning's work into one line.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 1000
"""The units of the axis; a browser stretches them to whatever room there is."""
LEAST_BAR = 3.0
BREAK = 34.0
"""How wide a stretch without work is drawn."""
SHORTEST_BREAK_MS = 5_000
BREAK_SHARE = 0.15
"""A stretch of this part of the working time is long."""
MOST_BREAKS = 12
TICKS = 6
TICK_ROOM = 90.0
_NICE = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000),
    *(900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 28_800_000, 86_400_000),
)
_FOREVER = 1 << 62
_OF_A_MODEL = ("thinking", "text", "tool")
Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of the axis. `idle` ones are drawn short."""

    start_ms: int
    end_ms: int
    x: float
    width: float
    idle: bool

    @property
    def words(self) -> str:
        return precise(self.end_ms - self.start_ms)


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A step and where it is drawn. From `lead_x` on nothing else went on before it: that is the model's time.

    `waits` if a person was waited for.
    """

    step: Step
    x: float
    width: float
    lead_x: float
    took: str
    since: str
    open: bool
    waits: bool


@dataclass(frozen=True, slots=True)
class Waterfall:
    bars: Sequence[Bar]
    stretches: Sequence[Stretch]
    ticks: Sequence[Tick]
    start_ms: int
    end_ms: int

    @property
    def idle(self) -> list[Stretch]:
        return [each for each in self.stretches if each.idle]


def waterfall(steps: Sequence[Step], start_ms: int | None, end_ms: int | None) -> Waterfall:
    """The bars of these steps, in their order, on the axis from `start_ms` to `end_ms`: of a run that goes on, now."""
    start = min([each["at_ms"] for each in steps], default=start_ms or 0)
    start = start if start_ms is None else min(start, start_ms)
    last = max([each["end_ms"] or each["at_ms"] for each in steps], default=start)
    end = max(last, end_ms or last, start + 1)
    axis = _Axis(_stretches(steps, start, end))
    leads = _leads(steps, start)
    bars = [_bar(axis, each, leads[each["number"]], start, end) for each in steps]
    return Waterfall(bars, axis.stretches, axis.ticks(), start, end)


def precise(ms: int) -> str:
    """A length of time as it is read off a trace: `850 ms`, `4.1 s`, `2 min 5 s`, `1 h 30 min`."""
    if ms < 1000:
        return f"{ms} ms" if ms else "0"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    seconds = ms // 1000
    large, small, names = (seconds, 60, ("min", "s")) if seconds < 3600 else (seconds // 60, 60, ("h", "min"))
    whole, rest = divmod(large, small)
    return f"{whole} {names[0]} {rest} {names[1]}" if rest else f"{whole} {names[0]}"


def clock(ms: int) -> str:
    """A moment after the start: `850 ms`, `4.1 s`, `2:05`, `1:30:14`."""
    if ms < 60_000:
        return precise(ms).replace(".0 s", " s")
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class _Axis:
    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self.stretches = stretches
        self._starts = [each.start_ms for each in stretches]

    def x(self, at_ms: int) -> float:
        part = self.stretches[max(0, bisect_right(self._starts, at_ms) - 1)]
        share = (at_ms - part.start_ms) / max(1, part.end_ms - part.start_ms)
        return part.x + part.width * min(max(share, 0.0), 1.0)

    def ticks(self) -> list[Tick]:
        """Times since the start at round figures, not too close together, and never inside what is left out."""
        start = self.stretches[0].start_ms
        working = [each for each in self.stretches if not each.idle]
        wanted = sum(each.end_ms - each.start_ms for each in working) / TICKS
        step = next((nice for nice in _NICE if nice >= wanted), _NICE[-1])
        ticks: list[Tick] = []
        for part in working:
            first = -(-(part.start_ms - start) // step) * step
            for since in range(first, part.end_ms - start + 1, step):
                x = self.x(start + since)
                if x <= WIDTH - TICK_ROOM / 2 and (not ticks or x - ticks[-1].x >= TICK_ROOM):
                    ticks.append(Tick(round(x, 1), clock(since)))
        return ticks


def _leads(steps: Sequence[Step], start_ms: int) -> dict[int, int]:
    """By number: for what an agent says and does since when nothing else had gone on, for the rest its own time."""
    latest, leads = start_ms, dict[int, int]()
    for each in sorted(steps, key=lambda step: (step["at_ms"], step["number"])):
        at_ms: int = each["at_ms"]
        leads[each["number"]] = min(latest, at_ms) if each["kind"] in _OF_A_MODEL else at_ms
        latest = max(latest, _FOREVER if each["end_ms"] is None else each["end_ms"])
    return leads


def _bar(axis: _Axis, step: Step, lead_ms: int, start_ms: int, end_ms: int) -> Bar:
    ends = step["end_ms"] if step["end_ms"] is not None else end_ms
    x = axis.x(step["at_ms"])
    width = max(LEAST_BAR, axis.x(ends) - x)
    took_ms = max(0, ends - step["at_ms"])
    return Bar(
        step=step,
        x=round(min(x, WIDTH - width), 1),
        width=round(width, 1),
        lead_x=round(min(axis.x(lead_ms), x), 1),
        took=precise(took_ms) if took_ms or step["kind"] in ("tool", "ask") else "",
        since=clock(step["at_ms"] - start_ms),
        open=step["end_ms"] is None,
        waits=step["kind"] == "ask",
    )


def _stretches(steps: Sequence[Step], start: int, end: int) -> list[Stretch]:
    """The axis in pieces: the long stretches without work short, everything else in proportion."""
    free = _free(steps, start, end)
    working_ms = (end - start) - sum(until - since for since, until in free)
    limit = max(SHORTEST_BREAK_MS, working_ms * BREAK_SHARE)
    breaks = sorted(sorted((each for each in free if each[1] - each[0] >= limit), key=_length)[-MOST_BREAKS:])
    worked_ms = max(1, (end - start) - sum(map(_length, breaks)))
    unit = (WIDTH - BREAK * len(breaks)) / worked_ms
    found: list[Stretch] = []
    at, x = start, 0.0
    for since, until in [*breaks, (end, end)]:
        if since > at:
            found.append(Stretch(at, since, round(x, 2), round((since - at) * unit, 2), idle=False))
            x += (since - at) * unit
        if until > since:
            found.append(Stretch(since, until, round(x, 2), BREAK, idle=True))
            x += BREAK
        at = until
    return found


def _free(steps: Sequence[Step], start: int, end: int) -> list[tuple[int, int]]:
    """When no step was under way but one that waits for a person, or a tool that waits for that."""
    waits = sorted((each["at_ms"], _end(each, end)) for each in steps if each["kind"] == "ask")
    busy: list[tuple[int, int]] = []
    for each in steps:
        if each["kind"] != "ask":
            busy += _without(each["at_ms"], _end(each, end), waits)
    free: list[tuple[int, int]] = []
    at = start
    for since, until in sorted(busy):
        if since > at:
            free.append((at, since))
        at = max(at, until)
    return [*free, (at, end)] if end > at else free


def _without(start: int, end: int, waits: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of a time in which nobody was waited for; its first and last moment count in any case."""
    parts: list[tuple[int, int]] = [(start, start), (end, end)]
    for since, until in waits:
        if since >= end or until <= start:
            continue
        if since > start:
            parts.append((start, since))
        start = max(start, until)
    return [*parts, (start, end)] if end > start else parts


def _end(step: Step, now_ms: int) -> int:
    return now_ms if step["end_ms"] is None else step["end_ms"]


def _length(part: tuple[int, int]) -> int:
    return part[1] - part[0]
