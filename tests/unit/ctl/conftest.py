"""Restores logging after commands that run in the process of the tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from dynamo_ctl import cli
from dynamo_shared.runtime.logging import configure_logging

from tests.unit.ctl.command_line import Dynamoctl, Ran


@pytest.fixture(autouse=True)
def _own_logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = structlog.get_config()

    def configured(*, level: str, style: str) -> None:
        configure_logging(level=level, style=style)
        # A logger that is kept would log, or be silent, as this command's beyond it.
        structlog.configure(cache_logger_on_first_use=False)

    monkeypatch.setattr("dynamo_ctl.settings.configure_logging", configured)
    yield
    structlog.configure(**before)


@pytest.fixture
def dynamoctl(capsys: pytest.CaptureFixture[str]) -> Dynamoctl:
    def run(*arguments: str | Path) -> Ran:
        code = cli.invoke([str(each) for each in arguments])
        return Ran(code, *capsys.readouterr())

    return run
