"""The OpenTelemetry exporter. Imported only when the environment names a collector."""

# The SDK is an extra: where it is not installed, its types are not known.
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from typing import Any

from rookery.core.errors import ConfigurationError


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


def parent(trace: str | None) -> Any:
    """The caller's own span, from its W3C trace context."""
    from opentelemetry.propagate import extract

    return extract({"traceparent": trace}) if trace else None
