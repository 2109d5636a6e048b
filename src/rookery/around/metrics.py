"""Counters of every call, by the names that others know, as Prometheus text."""

import time
from collections import defaultdict

from rookery.core.context import Call
from rookery.core.errors import RateLimited, RookeryError

BUCKETS_MS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 60_000)


class Metrics:
    """Kept in this process. `mcp.tool.calls` is `mcp_tool_calls_total` in Prometheus' spelling."""

    def __init__(self) -> None:
        self.active = 0
        self.calls: dict[tuple[str, bool], int] = defaultdict(int)
        self.errors: dict[tuple[str, str], int] = defaultdict(int)
        self.bytes: dict[tuple[str, str], int] = defaultdict(int)
        self.limited = 0
        self.duration_ms: dict[str, list[float]] = {}

    def before(self, call: Call) -> None:
        self.active += 1

    def refused(self, call: Call, error: RookeryError) -> None:
        self._count(call, error)
        self.limited += isinstance(error, RateLimited)

    def after(self, call: Call, error: RookeryError | None) -> None:
        self.active -= 1
        self._count(call, error)
        took_ms = (time.monotonic() - call.started) * 1000
        row = self.duration_ms.setdefault(call.tool.name, [0.0] * (len(BUCKETS_MS) + 2))
        row[next((i for i, top in enumerate(BUCKETS_MS) if took_ms <= top), len(BUCKETS_MS))] += 1
        row[-1] += took_ms

    def _count(self, call: Call, error: RookeryError | None) -> None:
        tool = call.tool.name
        self.calls[tool, error is None] += 1
        self.bytes[tool, "input"] += call.input_bytes
        self.bytes[tool, "output"] += call.output_bytes
        if error is not None:
            self.errors[tool, error.code] += 1

    def render(self) -> str:
        """Everything counted so far. The last three families repeat earlier ones under the names of older servers."""
        success = {tool: count for (tool, ok), count in self.calls.items() if ok}
        lines = [
            *_family("mcp_requests_active", "gauge", {"": self.active}),
            *_family("mcp_ratelimit_rejections_total", "counter", {"": self.limited}),
            *_family(
                "mcp_tool_calls_total",
                "counter",
                {_labels(tool=tool, success=str(ok).lower()): count for (tool, ok), count in self.calls.items()},
            ),
            *_family(
                "mcp_tool_errors_total",
                "counter",
                {_labels(tool=tool, code=code): count for (tool, code), count in self.errors.items()},
            ),
            *self._sizes("input"),
            *self._sizes("output"),
            *self._durations("mcp_tool_duration_milliseconds"),
            *self._durations("mcp_tool_execution_duration_ms"),
            *_family(
                "mcp_tool_execution_success", "counter", {_labels(tool=tool): count for tool, count in success.items()}
            ),
            *_family(
                "mcp_tool_payload_size_bytes",
                "counter",
                {_labels(tool=tool, direction=way): size for (tool, way), size in self.bytes.items()},
            ),
        ]
        return "\n".join(lines) + "\n"

    def _sizes(self, way: str) -> list[str]:
        rows = {_labels(tool=tool): size for (tool, which), size in self.bytes.items() if which == way}
        return _family(f"mcp_tool_{way}_bytes_total", "counter", rows)

    def _durations(self, name: str) -> list[str]:
        lines = [f"# TYPE {name} histogram"]
        for tool, row in sorted(self.duration_ms.items()):
            total = 0.0
            for top, count in zip((*BUCKETS_MS, "+Inf"), row[:-1], strict=True):
                total += count
                lines.append(f"{name}_bucket{_labels(tool=tool, le=str(top))} {total:g}")
            lines.append(f"{name}_sum{_labels(tool=tool)} {row[-1]:.3f}")
            lines.append(f"{name}_count{_labels(tool=tool)} {total:g}")
        return lines


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def _family(name: str, kind: str, rows: dict[str, int]) -> list[str]:
    return [f"# TYPE {name} {kind}", *(f"{name}{labels} {value}" for labels, value in sorted(rows.items()))]
