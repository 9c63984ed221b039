"""Tunes Python's garbage collector for a service: it collects rarely, and only objects created since the start."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: New objects that trigger a collection of the first generation. Python's default of 700 costs a twentieth of a
#: service's processor time, in pauses of up to a quarter of a second (`make bench-reconcile`, 100 graphs at once).
_COLLECT_AFTER = 10_000


@contextmanager
def rare_collections() -> Iterator[None]:
    """For the whole process, while the block runs: modules and models that are already loaded are not traversed."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
