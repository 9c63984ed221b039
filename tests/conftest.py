"""Setup for all tests: plain logs as in production, distribution over processes, a summary of times and counts."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import structlog
import uvloop

from tests import compiling, examples
from tests.summary import Times

if TYPE_CHECKING:
    from tests.distribution import FromBothEnds

#: The folder of the charts' tests.
CHARTS = "tests/charts"

examples.load()

# By default every local variable of every frame of an error is printed, which takes seconds.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests run on the same event loop as the platform."""
    return {"uvloop": uvloop.new_event_loop}


def pytest_configure(config: pytest.Config) -> None:
    """Count in the process that the user sees, because it receives the reports of all workers."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Times(), "times")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Processes of `pytest -n` share the work of compiling. Objects that are imported now never become garbage."""
    gc.disable()
    if own := getattr(session.config, "workerinput", None):
        names = [*compiling.modules_of(session.config.args, session.config.rootpath)]
        compiling.import_from(names, int(own["workerid"].removeprefix("gw")), own["workercount"])


def pytest_collection_finish() -> None:
    """Keep the garbage collector from traversing modules and tests: that took a sixth of the tests' processor time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FromBothEnds | None:
    """With `--dist loadfile`, distribute files as tests.distribution says."""
    from tests.distribution import FromBothEnds

    return FromBothEnds(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print times if more than one folder ran, and how many tests of the charts passed."""
    times = config.pluginmanager.get_plugin("times")
    if not isinstance(times, Times):
        return
    if len(times.folders) > 1:
        terminalreporter.section("time by folder (of all processes), slowest files")
        for line in times.lines():
            terminalreporter.write_line(line)
    if ran := times.ran.get(CHARTS):
        terminalreporter.write_line(f"charts {times.passed[CHARTS]}/{ran} ok")
