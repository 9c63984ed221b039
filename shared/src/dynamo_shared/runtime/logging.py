"""Structured log lines on standard error, as JSON or for a console, from this project and from libraries.

Lines have the bound values (`key`, `service`) and the trace id. Values of fields whose names suggest secrets, and user
names and passwords in URLs, are masked in every line.
"""

import io
import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import msgspec
import structlog
from opentelemetry import trace
from structlog.typing import Processor, WrappedLogger

from dynamo_shared.api.untrusted.words import MASK, escaped, redacted

_SECRET_FIELD = re.compile(
    r"passw|secret_value|token|authorization(?!\.k8s\.io)|credential|private_?key|api_?key", re.IGNORECASE
)


class _StandardError(io.StringIO):
    """Standard error at the time of a write: loggers outlive the stream that existed when they were created."""

    def write(self, text: str) -> int:
        """Write to the current standard error."""
        return sys.stderr.write(text)

    def flush(self) -> None:
        """Flush the current standard error."""
        sys.stderr.flush()


def configure_logging(*, level: str = "info", style: str = "json") -> None:
    """Set up structlog and the standard library's logging; call once, first."""
    threshold = getattr(logging, level.upper())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _trace_id,
        # Before masking, because errors quote addresses; plain, because the pretty format prints local variables.
        structlog.processors.format_exc_info,
        mask_secrets,
    ]
    renderer: Processor = structlog.processors.JSONRenderer(serializer=_json)
    if style == "console":
        shared.append(escape_controls)
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(_StandardError()),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(_StandardError())
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
        )
    )
    # Libraries log each reconnect and retry; this project logs them once, so libraries log only from warnings on.
    logging.basicConfig(handlers=[handler], level=max(threshold, logging.WARNING), force=True)
    logging.getLogger("aiohttp.server").addFilter(_is_own_fault)


def _is_own_fault(record: logging.LogRecord) -> bool:
    """Whether a server's error is a fault of this process. Undecodable bodies are not: anyone may send them."""
    error = record.exc_info[1] if record.exc_info else None
    return type(error).__name__ != "RequestPayloadError"


def mask_secrets(_: WrappedLogger, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Processor: masks secrets in a line."""
    for name, value in fields.items():
        if _SECRET_FIELD.search(name):
            fields[name] = MASK
        elif not isinstance(value, (int, float)):
            fields[name] = _masked(value)
    return fields


def escape_controls(_: WrappedLogger, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Processor for consoles: no value adds a line or controls the terminal. Tracebacks keep their lines."""
    for name, value in fields.items():
        if isinstance(value, str):
            fields[name] = escaped(value if name == "exception" else value.replace("\n", "\\n"))
    return fields


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {name: MASK if _SECRET_FIELD.search(str(name)) else _masked(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_masked(part) for part in value]
    return value


def _json(fields: MutableMapping[str, Any], **_: Any) -> str:
    return escaped(msgspec.json.encode(fields, enc_hook=str).decode())


def _trace_id(_: WrappedLogger, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        fields["trace_id"] = f"{context.trace_id:032x}"
    return fields
