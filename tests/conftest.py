"""What holds for all tests: logs are plain, as they are where the platform runs; at the end stand times and the charts' count."""

from __future__ import annotations

import pytest
import structlog

from tests.summary import Times

#: Where the charts' tests are.
CHARTS = "tests/charts"

# The default prints every local variable of every frame of an error, which takes seconds.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)


def pytest_configure(config: pytest.Config) -> None:
    """Counts in the process that the user sees, which hears of every test of every worker."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Times(), "times")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints what took how long, where more than one folder ran, and how many tests of the charts held."""
    times = config.pluginmanager.get_plugin("times")
    if not isinstance(times, Times):
        return
    if len(times.folders) > 1:
        terminalreporter.section("time by folder (of all processes), slowest files")
        for line in times.lines():
            terminalreporter.write_line(line)
    if ran := times.ran.get(CHARTS):
        terminalreporter.write_line(f"charts {times.passed[CHARTS]}/{ran} ok")
