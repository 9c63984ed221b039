"""`python -m tests.charts`: run all chart tests; the last line has the counts. `--update` writes the golden files."""

import os
import sys
from pathlib import Path

import pytest


def main() -> int:
    """Command line; the exit code."""
    arguments = sys.argv[1:]
    if "--update" in arguments:
        arguments.remove("--update")
        os.environ["UPDATE_GOLDENS"] = "1"
    # tests/conftest.py prints the last line with the counts.
    return int(pytest.main(["-q", str(Path(__file__).parent), *arguments]))


if __name__ == "__main__":
    sys.exit(main())
