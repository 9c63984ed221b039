"""`python -m tests.charts`: every test of the charts, and one last line with the counts. `--update` writes the goldens."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


class _Counts:
    """How many tests there were, and how many held."""

    def __init__(self) -> None:
        self.ran = self.held = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count each test once: by its call, or by a set-up that failed."""
        if report.when == "call" or (report.when == "setup" and report.failed):
            self.ran += 1
            self.held += report.passed


def main() -> int:
    """Command line; the exit code."""
    arguments = sys.argv[1:]
    if "--update" in arguments:
        arguments.remove("--update")
        os.environ["UPDATE_GOLDENS"] = "1"
    counts = _Counts()
    code = pytest.main(["-q", str(Path(__file__).parent), *arguments], plugins=[counts])
    print(f"charts {counts.held}/{counts.ran} ok")
    return int(code) if counts.ran else 1


if __name__ == "__main__":
    sys.exit(main())
