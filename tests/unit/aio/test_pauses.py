from dynamo_shared.aio import Pauses


def test_a_pause_is_due_after_each_share_of_work():
    pauses = Pauses(3)
    assert [pauses.due() for _ in range(7)] == [False, False, True, False, False, True, False]


def test_one_large_piece_of_work_needs_one_pause():
    pauses = Pauses(3)
    assert [pauses.due(size) for size in (10, 2, 1, 2)] == [True, False, True, False]
