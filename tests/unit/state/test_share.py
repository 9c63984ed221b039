"""The partitions that a replica reads: the needed ones, and for a while the former ones."""

from dynamo_shared.state.share import FORGET_AFTER, Share

from tests.building.clock import ManualClock


class Kept:
    """The partitions that a replica keeps; the test sets them."""

    def __init__(self) -> None:
        self.partitions: frozenset[int] = frozenset()
        self.clock = ManualClock()
        self.share = Share(lambda: self.partitions, self.clock)

    def keep(self, *partitions: int) -> None:
        self.partitions = frozenset(partitions)

    def read(self) -> None:
        self.share.begin()
        self.share.complete()


def test_a_needed_partition_is_covered_after_it_has_been_read() -> None:
    kept = Kept()
    kept.keep(1, 2)
    assert kept.share.lacks()
    kept.share.begin()
    assert not kept.share.lacks()
    assert not kept.share.is_covered()
    assert kept.share.adds()
    kept.share.complete()
    assert kept.share.is_covered()
    assert not kept.share.adds()


def test_a_lost_partition_is_read_for_a_while() -> None:
    """A lease that is lost for a moment costs no new read."""
    kept = Kept()
    kept.keep(1, 2)
    kept.read()
    kept.keep(1)
    assert kept.share.expire() == frozenset()
    kept.clock.now += FORGET_AFTER - 1
    assert kept.share.expire() == frozenset()
    kept.keep(1, 2)
    assert not kept.share.lacks()
    assert kept.share.is_covered()


def test_afterwards_a_lost_partition_is_forgotten_and_must_be_read_again() -> None:
    kept = Kept()
    kept.keep(1, 2)
    kept.read()
    kept.keep(1)
    kept.share.expire()
    kept.clock.now += FORGET_AFTER
    assert kept.share.expire() == frozenset({2})
    assert kept.share.reading == kept.share.covered == frozenset({1})
    kept.keep(1, 2)
    assert kept.share.lacks()


def test_the_time_of_a_returned_partition_starts_again() -> None:
    kept = Kept()
    kept.keep(1)
    kept.read()
    kept.keep()
    kept.share.expire()
    kept.clock.now += FORGET_AFTER - 1
    kept.keep(1)
    kept.share.expire()
    kept.keep()
    kept.clock.now += FORGET_AFTER - 1
    assert kept.share.expire() == frozenset()
