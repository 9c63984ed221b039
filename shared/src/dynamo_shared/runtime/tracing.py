"""OpenTelemetry traces. Off unless an OTLP endpoint is configured: a span then costs 32 us, and the exporter 18 MiB."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opentelemetry import trace

from dynamo_shared.runtime.settings import Platform

#: Limit for sending the remaining spans at the end if the collector answers slowly or not at all. Seconds.
LAST_EXPORT_WITHIN = 3.0

tracer = trace.get_tracer("dynamo_platform")


def traces_url(endpoint: str) -> str:
    """Where a collector receives traces over HTTP. An endpoint without a scheme, `host:4318`, is one without TLS."""
    scheme = "" if "://" in endpoint else "http://"
    return f"{scheme}{endpoint.rstrip('/')}/v1/traces"


@asynccontextmanager
async def tracing(service: str, settings: Platform) -> AsyncIterator[None]:
    """Export spans while the block runs, if an endpoint is configured; the remaining ones are sent at its end."""
    if not settings.tracing.otlp_endpoint:
        yield
        return
    # Imported here: without tracing it costs nothing.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased  # noqa: PLC0415

    provider = TracerProvider(
        resource=Resource.create({"service.name": service, "service.namespace": "dynamo-platform"}),
        sampler=ParentBased(TraceIdRatioBased(settings.tracing.sample_ratio)),
    )
    exporter = OTLPSpanExporter(endpoint=traces_url(settings.tracing.otlp_endpoint), timeout=10)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        # In a thread: it waits for the collector, and other tasks may still use the loop.
        ending = asyncio.create_task(asyncio.to_thread(provider.shutdown))
        await asyncio.wait({ending}, timeout=LAST_EXPORT_WITHIN)
        if not ending.done():
            # The current request is the last one: its own timeout ends it.
            exporter.shutdown()  # type: ignore[no-untyped-call]
        await ending
