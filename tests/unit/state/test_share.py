"""Which partitions are read: those that are needed, and for a while those that were."""

from dynamo_shared.state.share import FORGET_AFTER, Share

from tests.building.clock import ManualClock


class Kept:
    """What a replica keeps, as the test says."""

    def __init__(self) -> None:
        self.partitions: frozenset[int] = frozenset()
        self.clock = ManualClock()
        self.share = Share(lambda: self.partitions, self.clock)

    def keep(self, *partitions: int) -> None:
        self.partitions = frozenset(partitions)

    def read(self) -> None:
        self.share.begin()
        self.share.complete()


def test_what_is_needed_is_covered_once_it_has_been_read() -> None:
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


def test_what_is_given_away_is_read_on_for_a_while() -> None:
    """A lease that is lost for a moment costs no reading."""
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


def test_after_that_it_is_forgotten_and_has_to_be_read_again() -> None:
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


def test_a_partition_that_came_back_begins_its_time_again() -> None:
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
