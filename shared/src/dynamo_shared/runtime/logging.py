"""Structured log lines on standard error, JSON for programs or console for people, of our code and of libraries alike.

Lines carry what is bound (`key`, `service`) and the trace id. Values of fields that sound like secrets, and user names
and passwords in URLs, are masked, whoever logs them.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog
from opentelemetry import trace
from structlog.typing import Processor, WrappedLogger

MASK = "***"

_SECRET_FIELD = re.compile(r"passw|secret_value|token|authorization|credential|private_?key|api_?key", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")


def configure_logging(*, level: str = "info", style: str = "json") -> None:
    """Set up structlog and the standard library's logging; call once, first."""
    threshold = getattr(logging, level.upper())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _trace_id,
        mask_secrets,
    ]
    if style == "console":
        final: list[Processor] = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    else:
        final = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[*shared, *final],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *final]
        )
    )
    # Libraries speak of each reconnect and retry in their own way; ours says it once, so theirs start at warnings.
    logging.basicConfig(handlers=[handler], level=max(threshold, logging.WARNING), force=True)


def mask_secrets(_: WrappedLogger, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Processor: nothing secret reaches a line."""
    for name, value in fields.items():
        if _SECRET_FIELD.search(name):
            fields[name] = MASK
        elif isinstance(value, str) and "://" in value:
            fields[name] = _USERINFO.sub(f"{MASK}@", value)
    return fields


def _trace_id(_: WrappedLogger, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        fields["trace_id"] = f"{context.trace_id:032x}"
    return fields
