"""Spans of a real server: they reach a collector below the client's own span, or the start says what is missing."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.around.test_timing import PARENT, TRACE, Collector
from tests.around.test_timing import collector as collector
from tests.server.conftest import Place
from tests.server.conftest import plugin as plugin
from tests.server.processes import PATIENCE_S, Process
from tests.server.trials import SECRET

HIDING = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name == "opentelemetry.sdk" or name.startswith("opentelemetry.sdk."):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hide())
"""


@pytest.fixture
def place(plugin: Path) -> Iterator[Place]:
    made = Place(plugin)
    yield made
    made.close()


def exported(collector: Collector) -> list[Any]:
    """Every span that the collector was sent."""
    service = "opentelemetry.proto.collector.trace.v1.trace_service_pb2"
    protocol = pytest.importorskip(service, reason="the extra otel is not installed")
    requests = [protocol.ExportTraceServiceRequest.FromString(body) for _, body in collector.kept]
    return [
        span
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def test_the_calls_of_a_client_are_spans_below_its_own(place: Place, collector: Collector) -> None:
    pytest.importorskip("opentelemetry.sdk.trace", reason="the extra otel is not installed")
    place.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{collector.server_port}"
    server, sampled = place.server(), f"00-{TRACE}-{PARENT}-01"
    client = place.session("--session-id", "ses-1")
    client.request("tools/call", name="ping", arguments={}, _meta={"traceparent": sampled})
    client.request("tools/call", name="fail_reading", arguments={}, _meta={"traceparent": sampled})
    client.request("tools/call", name="list_notes", arguments={}, _meta={"traceparent": sampled[:-1] + "0"})
    client.request("tools/call", name="measure_text", arguments={"text": SECRET}, _meta={"traceparent": "no trace"})
    # What is not exported yet is exported when the process ends.
    assert server.stop() == 0
    found = {span.name: span for span in exported(collector) if span.name.startswith("tool_execution:")}
    assert set(found) == {f"tool_execution:{name}" for name in ("ping", "fail_reading", "measure_text")}
    for name in ("ping", "fail_reading"):
        span = found[f"tool_execution:{name}"]
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
        assert span.end_time_unix_nano > span.start_time_unix_nano
    failed = found["tool_execution:fail_reading"]
    keys = {"mcp.tool.name", "mcp.request.id", "mcp.session.id"}
    keys |= {"rookery.operation", "rookery.tenant", "rookery.agent"}
    assert {each.key for each in found["tool_execution:ping"].attributes} == keys
    assert {each.key: each.value.string_value for each in failed.attributes if each.key not in keys} == {
        "error.type": "ValueError"
    }
    assert failed.status.code == 2
    assert found["tool_execution:measure_text"].trace_id.hex() != TRACE
    assert not any(SECRET.encode() in body for _, body in collector.kept)


def test_a_collector_that_is_not_there_disturbs_no_call(place: Place, collector: Collector) -> None:
    pytest.importorskip("opentelemetry.sdk.trace", reason="the extra otel is not installed")
    place.env |= {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    server = place.server()
    assert place.session().call("ping")["status"] == "pong"
    assert server.stop() == 0


def test_a_server_without_a_collector_does_not_load_the_sdk(place: Place, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDING)
    place.env["PYTHONPATH"] = f"{tmp_path}:{place.environment()['PYTHONPATH']}"
    place.server()
    assert place.session().call("ping")["status"] == "pong"


def test_a_collector_without_the_extra_stops_the_start_with_one_sentence(place: Place, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDING)
    place.env["PYTHONPATH"] = f"{tmp_path}:{place.environment()['PYTHONPATH']}"
    place.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:1"
    up = Process([sys.executable, "-m", "rookery.entry", "up"], tmp_path / "up.log", place.environment(), tmp_path)
    try:
        assert up.process.wait(PATIENCE_S) == 1
        assert up.lines.raw() == b""
    finally:
        up.close()
    assert up.errors.splitlines() == [
        "rookery: a collector is configured, but the extra `otel` is not installed",
        "  pip install 'rookery[otel]'",
    ]
