"""What holds for all tests: logs are plain, as where the platform runs; who runs which; at the end stand times and counts."""

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

#: Where the charts' tests are.
CHARTS = "tests/charts"

examples.load()

# The default prints every local variable of every frame of an error, which takes seconds.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests run on the event loop on which the platform runs."""
    return {"uvloop": uvloop.new_event_loop}


def pytest_configure(config: pytest.Config) -> None:
    """Counts in the process that the user sees, which hears of every test of every worker."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Times(), "times")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Processes of `pytest -n` share the work of compiling. Nothing that is imported now becomes garbage."""
    gc.disable()
    if own := getattr(session.config, "workerinput", None):
        names = [*compiling.modules_of(session.config.args, session.config.rootpath)]
        compiling.import_from(names, int(own["workerid"].removeprefix("gw")), own["workercount"])


def pytest_collection_finish() -> None:
    """The garbage collector never traverses modules and tests again: doing so took a sixth of the processor time of the tests."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FromBothEnds | None:
    """With `--dist loadfile`, files are dealt out as tests.distribution says."""
    from tests.distribution import FromBothEnds

    return FromBothEnds(config, log) if config.getvalue("dist") == "loadfile" else None


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
