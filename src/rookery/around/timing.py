"""Timing: spans and metrics by the names that others know. Costs next to nothing unless OpenTelemetry is configured."""

import contextlib
import os
import time
from collections import defaultdict
from collections.abc import Generator
from typing import Any

from rookery.core.context import Call
from rookery.core.errors import RookeryError

BUCKETS_MS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 60_000)
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_tracer: Any = None


def configure_tracing(service: str) -> bool:
    """Export spans if the environment names a collector and the extra `otel` is there. Says whether it does."""
    global _tracer
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return False
    from rookery.around.otel import make_tracer

    _tracer = make_tracer(service)
    return True


def tracing() -> bool:
    """Whether spans are exported."""
    return _tracer is not None


@contextlib.contextmanager
def span(name: str, **attributes: str | int) -> Generator[None]:
    """A span around the block, if spans are exported at all."""
    if _tracer is None:
        yield
        return
    with _tracer.start_as_current_span(name, attributes=attributes):
        yield


class Metrics:
    """Counters of every call, kept in this process; `render` gives them as Prometheus text."""

    def __init__(self) -> None:
        self.active = 0
        self.calls: dict[tuple[str, str], int] = defaultdict(int)
        self.errors: dict[tuple[str, str], int] = defaultdict(int)
        self.duration_ms: dict[str, list[float]] = {}

    def before(self, call: Call) -> None:
        self.active += 1

    def after(self, call: Call, error: RookeryError | None) -> None:
        self.active -= 1
        tool = call.tool.name
        self.calls[tool, "false" if error else "true"] += 1
        if error is not None:
            self.errors[tool, error.code] += 1
        took_ms = (time.monotonic() - call.started) * 1000
        row = self.duration_ms.setdefault(tool, [0.0] * (len(BUCKETS_MS) + 2))
        row[next((i for i, top in enumerate(BUCKETS_MS) if took_ms <= top), len(BUCKETS_MS))] += 1
        row[-1] += took_ms

    def render(self) -> str:
        """Everything counted so far. `mcp.tool.calls` is `mcp_tool_calls_total` in Prometheus' spelling."""
        lines = ["# TYPE mcp_requests_active gauge", f"mcp_requests_active {self.active}"]
        lines.append("# TYPE mcp_tool_calls_total counter")
        lines += [
            f'mcp_tool_calls_total{{tool="{tool}",success="{ok}"}} {count}'
            for (tool, ok), count in sorted(self.calls.items())
        ]
        lines.append("# TYPE mcp_tool_errors_total counter")
        lines += [
            f'mcp_tool_errors_total{{tool="{tool}",code="{code}"}} {count}'
            for (tool, code), count in sorted(self.errors.items())
        ]
        lines.append("# TYPE mcp_tool_duration_milliseconds histogram")
        for tool, row in sorted(self.duration_ms.items()):
            total = 0.0
            for top, count in zip((*BUCKETS_MS, "+Inf"), row[:-1], strict=True):
                total += count
                lines.append(f'mcp_tool_duration_milliseconds_bucket{{tool="{tool}",le="{top}"}} {total:g}')
            lines.append(f'mcp_tool_duration_milliseconds_sum{{tool="{tool}"}} {row[-1]:.3f}')
            lines.append(f'mcp_tool_duration_milliseconds_count{{tool="{tool}"}} {total:g}')
        return "\n".join(lines) + "\n"
