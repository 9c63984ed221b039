"""The garbage collection of a service."""

import gc
import weakref

from dynamo_shared.runtime.collector import rare_collections


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_objects_from_before_the_start_are_not_traversed_until_the_end() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.set_threshold(pythons := 700, *before[1:])
    try:
        with rare_collections():
            assert gc.get_threshold()[0] > pythons
            assert gc.get_freeze_count() > frozen
        assert gc.get_threshold()[0] == pythons
        assert gc.get_freeze_count() == 0
    finally:
        gc.set_threshold(*before)


def test_cycles_created_after_the_start_are_collected() -> None:
    with rare_collections():
        gone = weakref.ref(Cycle())
        gc.collect()
        assert gone() is None
