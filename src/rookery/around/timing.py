"""Spans: what a call did, on the trace of whoever asked for it. Costs nothing unless OpenTelemetry is configured."""

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rookery.core.context import Call

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NOTHING = nullcontext()
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


def span(name: str, call: Call) -> AbstractContextManager[Any]:
    """A span around the block, below the caller's own if it sent one; nothing if spans are not exported."""
    if _tracer is None:
        return _NOTHING
    from rookery.around.otel import open_span

    tool, actor = call.tool, call.actor
    attributes = {
        f"mcp.{tool.kind}.name": tool.name if tool.kind == "tool" else tool.name.partition(":")[2],
        "mcp.request.id": call.id,
        "rookery.operation": tool.operation,
        "rookery.tenant": actor.tenant,
    }
    if actor.session is not None:
        attributes["mcp.session.id"] = actor.session
    if actor.agent is not None:
        attributes["rookery.agent"] = actor.agent
    return open_span(_tracer, name, call.trace, attributes)
