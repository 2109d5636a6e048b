"""Spans: nothing unless a collector is configured, and then one a call, on the caller's own trace."""

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rookery.around.timing import ENDPOINTS, configure_tracing, span, tracing
from rookery.core.errors import ConfigurationError
from tests.around.test_rate import make_call

ROOT = Path(__file__).parents[2]
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
MARKER = "mauve-heron-7731"


class Collector(http.server.HTTPServer):
    """A collector on the loopback that keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Keep)
        self.kept: list[tuple[str, bytes]] = []
        self.thread = threading.Thread(target=self.serve_forever)


class _Keep(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Collector)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.kept.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        return None


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    made.thread.start()
    yield made
    made.shutdown()
    made.thread.join()
    made.server_close()


def run_traced(home: Path, **environ: str) -> list[str]:
    command = [sys.executable, "-m", "tests.around.traced", str(home), f"00-{TRACE}-{PARENT}-01", MARKER]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        command, cwd=ROOT, env={**plain, **environ}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_without_a_collector_nothing_is_loaded_and_a_call_makes_no_span(tmp_path: Path) -> None:
    assert run_traced(tmp_path) == ["False", "False", "False"]


def test_a_span_that_nobody_collects_is_one_and_the_same_nothing() -> None:
    assert not tracing()
    call = make_call()
    assert span("tool_execution:a", call) is span("tool_execution:b", call)
    with span("tool_execution:a", call), span("tool_execution:b", call):
        pass


def test_a_call_is_a_span_below_the_callers_own(collector: Collector, tmp_path: Path) -> None:
    service = "opentelemetry.proto.collector.trace.v1.trace_service_pb2"
    protocol = pytest.importorskip(service, reason="the extra otel is not installed")
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    assert run_traced(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint) == ["True", "True", "True"]
    [(path, body)] = collector.kept
    assert path == "/v1/traces"
    assert MARKER.encode() not in body
    [sent] = protocol.ExportTraceServiceRequest.FromString(body).resource_spans
    assert "rookery-test" in str(sent.resource)
    [made] = [made for scope in sent.scope_spans for made in scope.spans]
    assert made.name == "tool_execution:add_pair"
    assert (made.trace_id.hex(), made.parent_span_id.hex()) == (TRACE, PARENT)
    attributes = {attribute.key: attribute.value.string_value for attribute in made.attributes}
    assert attributes.pop("rookery.agent").startswith("agt-")
    assert attributes == {
        "mcp.tool.name": "add_pair",
        "mcp.request.id": "req-1",
        "rookery.operation": "tools/call add_pair",
        "rookery.tenant": "default",
    }


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_collector_without_the_extra_is_a_clear_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    # Python's own way to say that a module cannot be imported.
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigurationError, match="the extra `otel` is not installed") as caught:
        configure_tracing("rookery")
    assert caught.value.hint == "pip install 'rookery[otel]'"
    assert not tracing()
