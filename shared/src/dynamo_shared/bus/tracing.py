"""Trace context over NATS headers (W3C `traceparent`): one change of an object is one trace through all services."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from opentelemetry import context, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

TRACEPARENT = "traceparent"

_propagator = TraceContextTextMapPropagator()
_NO_TRACE = nullcontext()


def is_traced() -> bool:
    """Whether this process exports spans. If not, omit a span that continues no trace: it takes time, too."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def traceparent() -> str:
    """The current span as a traceparent; "" if no span is recording."""
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return ""
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"


def inject(headers: dict[str, str]) -> None:
    """Add the current span to the headers of a message before it is sent."""
    value = traceparent()
    if value:
        headers[TRACEPARENT] = value


def continued(headers: Mapping[str, str]) -> AbstractContextManager[None]:
    """Run the block, and the listeners that it calls, in the trace of a received message."""
    return _continued(headers) if TRACEPARENT in headers else _NO_TRACE


@contextmanager
def _continued(headers: Mapping[str, str]) -> Iterator[None]:
    token = context.attach(extract(headers))
    try:
        yield
    finally:
        context.detach(token)


def extract(headers: Mapping[str, str]) -> context.Context:
    """The trace context of a received message; start spans with it as their parent."""
    value = headers.get(TRACEPARENT)
    return _propagator.extract({TRACEPARENT: value} if value else {})
