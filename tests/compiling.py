"""Each process of `pytest -n` starts to import at another place, so that only one of them compiles each module.

pytest rewrites assertions on import and caches the bytecode. In a fresh clone the cache is empty; compiling then takes
two thirds of the collection time, and all processes would compile the same files at the same time.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest


def modules_of(arguments: Sequence[str], root: Path) -> Iterator[str]:
    """Names of the test modules that pytest's arguments select, sorted within each argument."""
    for argument in arguments:
        path = root / argument.split("::", 1)[0]
        for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path]:
            yield ".".join(file.relative_to(root).with_suffix("").parts)


def import_from(names: Sequence[str], worker: int, workers: int) -> None:
    """Import all, beginning with this worker's share. Collection reports import errors later."""
    first = len(names) * worker // workers
    for name in (*names[first:], *names[:first]):
        with suppress(Exception, pytest.skip.Exception):
            import_module(name)
