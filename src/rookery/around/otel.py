"""The OpenTelemetry exporter. Imported only when the environment names a collector."""

# The SDK is an extra: where it is not installed, its types are not known.
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from rookery.core.errors import ConfigurationError, RookeryError
from rookery.core.questions import InputRequired


def make_tracer(service: str) -> Any:
    """A tracer that exports over OTLP/HTTP in batches, or an error that says which extra is missing."""
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigurationError(
            "a collector is configured, but the extra `otel` is not installed",
            hint="pip install 'rookery[otel]'",
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return trace.get_tracer("rookery")


@contextmanager
def open_span(tracer: Any, name: str, trace: str | None, attributes: Mapping[str, str]) -> Generator[Any]:
    """A span below the caller's own, which it named by its W3C trace context.

    Of a failure it tells the kind and not the message, which may repeat what was said in the call.
    """
    from opentelemetry.propagate import extract
    from opentelemetry.trace import StatusCode

    below = extract({"traceparent": trace}) if trace else None
    quiet = {"record_exception": False, "set_status_on_exception": False}
    with tracer.start_as_current_span(name, context=below, attributes=attributes, **quiet) as span:
        try:
            yield span
        except InputRequired:
            raise
        except BaseException as error:
            kind = error.code if isinstance(error, RookeryError) else type(error).__qualname__
            span.set_attribute("error.type", kind)
            span.set_status(StatusCode.ERROR)
            raise
