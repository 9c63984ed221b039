"""Shares of places: who has all of them leaves one to others."""

from contextlib import ExitStack

from dynamo_shared.aio import Shares


def test_a_client_alone_may_have_all_places_and_others_still_get_their_share() -> None:
    shares = Shares()
    with ExitStack() as held:
        for _ in range(4):
            assert not shares.is_full("many", 4)
            held.enter_context(shares.taken("many"))
        assert shares.is_full("many", 4)
        for count in range(2):
            assert (shares.count("other"), shares.is_full("other", 4)) == (count, False)
            held.enter_context(shares.taken("other"))
        assert shares.is_full("other", 4)
        assert shares.total == 6
    assert shares.total == 0
    assert not shares.is_full("many", 1)
