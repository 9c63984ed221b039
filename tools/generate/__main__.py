"""Generates files from the code: `python -m tools.generate`.

With `--check`, nothing is written: prints the names of files that differ, with exit code 1.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.generate import api, configuration, rest, services, wire
from tools.generate.files import Generator, run

ROOT = Path(__file__).resolve().parents[2]

GENERATORS = (
    Generator("api", api.outputs, api.FOLDERS),
    Generator("wire", wire.outputs, wire.FOLDERS),
    Generator("configuration", configuration.outputs),
    Generator("rest", rest.outputs),
    Generator("services", services.outputs),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a file differs")
    parser.add_argument("--root", type=Path, default=ROOT, help="checkout (default: the one of this file)")
    options = parser.parse_args(arguments)
    if not (options.root / "shared" / "pyproject.toml").is_file():
        parser.error(f"{options.root} is not a checkout of the platform; set --root")
    return run(GENERATORS, options.root, check=options.check)


if __name__ == "__main__":
    sys.exit(main())
