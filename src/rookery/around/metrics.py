"""Counters of every call, by the names that others know, as Prometheus text."""

import time
from collections import defaultdict
from collections.abc import Callable

from rookery.core.context import Call
from rookery.core.errors import RateLimited, RookeryError
from rookery.core.tool import Tool

BUCKETS_MS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 60_000)


class Counts:
    """What is counted of one kind of call. `mcp.tool.calls` is `mcp_tool_calls_total` in Prometheus' spelling."""

    def __init__(self, kind: str, what: str) -> None:
        self.kind, self.what = kind, what
        self.calls: dict[tuple[str, bool], int] = defaultdict(int)
        self.errors: dict[tuple[str, str], int] = defaultdict(int)
        self.bytes: dict[tuple[str, str], int] = defaultdict(int)
        self.duration_ms: dict[str, list[float]] = {}

    def ended(self, call: Call, name: str, error: RookeryError | None) -> None:
        self.calls[name, error is None] += 1
        self.bytes[name, "input"] += call.input_bytes
        self.bytes[name, "output"] += call.output_bytes
        if error is not None:
            self.errors[name, error.code] += 1

    def took(self, name: str, took_ms: float) -> None:
        row = self.duration_ms.setdefault(name, [0.0] * (len(BUCKETS_MS) + 2))
        row[next((i for i, top in enumerate(BUCKETS_MS) if took_ms <= top), len(BUCKETS_MS))] += 1
        row[-1] += took_ms

    def render(self) -> list[str]:
        kind = self.kind
        calls = {self._of(name, success=str(ok).lower()): count for (name, ok), count in self.calls.items()}
        errors = {self._of(name, code=code): count for (name, code), count in self.errors.items()}
        return [
            *_family(f"mcp_{kind}_{self.what}_total", "counter", calls),
            *_family(f"mcp_{kind}_errors_total", "counter", errors),
            *self._sizes("input"),
            *self._sizes("output"),
            *self.durations(f"mcp_{kind}_duration_milliseconds"),
        ]

    def _of(self, name: str, **labels: str) -> str:
        return _labels(**{self.kind: name, **labels})

    def _sizes(self, way: str) -> list[str]:
        rows = {self._of(name): size for (name, which), size in self.bytes.items() if which == way}
        return _family(f"mcp_{self.kind}_{way}_bytes_total", "counter", rows)

    def durations(self, family: str) -> list[str]:
        """The times as a histogram of this name."""
        lines = [f"# TYPE {family} histogram"]
        for name, row in sorted(self.duration_ms.items()):
            total = 0.0
            for top, count in zip((*BUCKETS_MS, "+Inf"), row[:-1], strict=True):
                total += count
                lines.append(f"{family}_bucket{self._of(name, le=str(top))} {total:g}")
            lines.append(f"{family}_sum{self._of(name)} {row[-1]:.3f}")
            lines.append(f"{family}_count{self._of(name)} {total:g}")
        return lines


class Metrics:
    """Kept in this process."""

    def __init__(self) -> None:
        self.active = 0
        self.limited = 0
        self._counted: dict[str, dict[str, int]] = {}
        self._levels: dict[str, Callable[[], int]] = {}
        self.tools = Counts("tool", "calls")
        self._others = {"resource": Counts("resource", "reads"), "prompt": Counts("prompt", "generations")}

    def before(self, call: Call) -> None:
        self.active += 1

    def refused(self, call: Call, error: RookeryError) -> None:
        self.limited += isinstance(error, RateLimited)
        counts, name = self._counts(call.tool)
        if counts is not None:
            counts.ended(call, name, error)

    def after(self, call: Call, error: RookeryError | None) -> None:
        self.active -= 1
        counts, name = self._counts(call.tool)
        if counts is not None:
            counts.ended(call, name, error)
            counts.took(name, (time.monotonic() - call.started) * 1000)

    def count(self, name: str, **labels: str) -> None:
        """Count something that is not a call, such as the opening of a session."""
        rows = self._counted.setdefault(name, {})
        key = _labels(**labels)
        rows[key] = rows.get(key, 0) + 1

    def level(self, name: str, now: Callable[[], int]) -> None:
        """Show a number that goes up and down, asked for when somebody looks."""
        self._levels[name] = now

    def _counts(self, tool: Tool) -> tuple[Counts | None, str]:
        """Where a call is counted, and under which name."""
        if tool.kind == "tool":
            return self.tools, tool.name
        return self._others.get(tool.kind), tool.name.partition(":")[2]

    def render(self) -> str:
        """Everything counted so far. Three families repeat earlier ones under the names of older servers."""
        tools = self.tools
        success = {_labels(tool=name): count for (name, ok), count in tools.calls.items() if ok}
        sizes = {_labels(tool=name, direction=way): size for (name, way), size in tools.bytes.items()}
        lines = [
            *_family("mcp_requests_active", "gauge", {"": self.active}),
            *_family("mcp_ratelimit_rejections_total", "counter", {"": self.limited}),
            *tools.render(),
            *tools.durations("mcp_tool_execution_duration_ms"),
            *_family("mcp_tool_execution_success", "counter", success),
            *_family("mcp_tool_payload_size_bytes", "counter", sizes),
            *(line for counts in self._others.values() for line in counts.render()),
            *(line for name, rows in self._counted.items() for line in _family(name, "counter", rows)),
            *(line for name, now in self._levels.items() for line in _family(name, "gauge", {"": now()})),
        ]
        return "\n".join(lines) + "\n"


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def _family(name: str, kind: str, rows: dict[str, int]) -> list[str]:
    return [f"# TYPE {name} {kind}", *(f"{name}{labels} {value}" for labels, value in sorted(rows.items()))]
