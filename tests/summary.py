"""Times of a run by folder, printed after the tests."""

from collections import defaultdict
from dataclasses import dataclass, field

import pytest

SLOWEST = 20
"""Number of files that are listed individually."""


@dataclass(slots=True, eq=False)
class Times:
    """Seconds and numbers of tests. With several processes the seconds add up to more than the elapsed time."""

    folders: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    files: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    passed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    ran: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds one part of a test: set-up, call or teardown."""
        file = report.nodeid.split("::")[0]
        folder = "/".join(file.split("/")[:2])
        self.folders[folder] += report.duration
        self.files[file] += report.duration
        if report.when == "call" or (report.when == "setup" and report.failed):
            self.ran[folder] += 1
            self.passed[folder] += report.passed

    def lines(self) -> list[str]:
        """The table: folders, then the slowest files."""
        folders = sorted(self.folders.items(), key=lambda each: -each[1])
        lines = [
            f"{seconds:8.1f} s  {folder:24} {self.passed[folder]}/{self.ran[folder]}" for folder, seconds in folders
        ]
        slowest = sorted(self.files.items(), key=lambda each: -each[1])[:SLOWEST]
        lines += [f"{seconds:8.1f} s  {file}" for file, seconds in slowest]
        return lines
