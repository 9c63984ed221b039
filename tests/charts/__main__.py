"""`python -m tests.charts`: every test of the charts, and one last line with the counts. `--update` writes the goldens."""

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
    # The last line with the counts is that of tests/conftest.py.
    return int(pytest.main(["-q", str(Path(__file__).parent), *arguments]))


if __name__ == "__main__":
    sys.exit(main())
