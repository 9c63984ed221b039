"""What holds for all tests: logs are plain, as they are where the platform runs."""

from __future__ import annotations

import structlog

# The default prints every local variable of every frame of an error, which takes seconds.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)
