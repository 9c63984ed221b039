"""`python -m tools.step [--packages FILE] STEP COMMAND...`: run a command of the Makefile, and report its progress.

`--packages` counts the packages in the environment of COMMAND, of at most those that FILE pins (some are for other platforms).

`make setup` runs this before it has installed anything. So it loads the lines that report the progress of programs
(`dynamo_devcluster.progress`) from their file, and needs only Python's own library.
"""

import argparse
import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_PROGRESS = ROOT / "services/devcluster/src/dynamo_devcluster/progress.py"
#: Seconds between two counts.
_COUNTED_EVERY = 1.0


class StepFailedError(Exception):
    """The command ended with this exit code. It has printed why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def run(name: str, command: Sequence[str], packages: Path | None = None) -> None:
    """Run a command as a step. Raises StepFailedError; a failed step is not reported as done."""
    reporting = _reporting()
    progress = reporting.LineProgress()
    pinned = _pinned(packages) if packages is not None else 0
    with reporting.step(progress, name), subprocess.Popen(command) as process:
        while (code := _ended(process)) is None:
            if packages is not None:
                folders = Path(command[0]).parents[1].glob("lib/python*/site-packages/*.dist-info")
                progress.advanced(name, min(len([*folders]), pinned), pinned, "packages installed, of at most")
        if code:
            raise StepFailedError(code)


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(_COUNTED_EVERY)
    except subprocess.TimeoutExpired:
        return None


def _pinned(requirements: Path) -> int:
    return sum("==" in line and not line.startswith(" ") for line in requirements.read_text().splitlines())


def _reporting() -> Any:
    specification = importlib.util.spec_from_file_location("progress", _PROGRESS)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.step", description=__doc__)
    parser.add_argument("--packages", type=Path, metavar="FILE")
    parser.add_argument("step", metavar="STEP")
    parser.add_argument("command", metavar="COMMAND", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    try:
        run(arguments.step, arguments.command, arguments.packages)
    except StepFailedError as error:
        return error.code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(_main())
