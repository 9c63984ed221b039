"""Every process of `pytest -n` begins to import at another place, so that each module is compiled by one, and not by all at once.

pytest rewrites assertions as it imports, and keeps the result as bytecode. With none yet, as in a fresh clone, that is two thirds
of what collecting takes, and all processes would do it for the same files at the same time.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest


def modules_of(arguments: Sequence[str], root: Path) -> Iterator[str]:
    """Names of the test modules that arguments of pytest ask for, sorted in each."""
    for argument in arguments:
        path = root / argument.split("::", 1)[0]
        for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path]:
            yield ".".join(file.relative_to(root).with_suffix("").parts)


def import_from(names: Sequence[str], worker: int, workers: int) -> None:
    """Import all, beginning with the share of this worker. What cannot be imported is reported when it is collected."""
    first = len(names) * worker // workers
    for name in (*names[first:], *names[:first]):
        with suppress(Exception, pytest.skip.Exception):
            import_module(name)
