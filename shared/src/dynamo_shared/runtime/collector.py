"""Python's garbage collector as fits a service: it works on what was created since the start, and seldom."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: New objects until the first generation is collected. With Python's default of 700 a twentieth of a service's processor
#: time goes there, in pauses of up to a quarter of a second (`make bench-reconcile`, 100 graphs at once).
_COLLECT_AFTER = 10_000


@contextmanager
def rare_collections() -> Iterator[None]:
    """For the whole process, while the block runs: modules and models that are loaded by now are never traversed again."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
