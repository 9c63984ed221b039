"""Replica counts of managed rolling updates: the margins hold at every step, and every roll-out ends."""

import pytest
from dynamo_pod_builder.render import RenderError
from dynamo_pod_builder.rollout import Replicas, RolloutStep, margins, replace_all, scaled, step
from dynamo_shared.api.registry.annotations import DEPLOYMENT_MAX_SURGE, DEPLOYMENT_MAX_UNAVAILABLE
from hypothesis import example, given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("desired", "surge", "unavailable", "expected"),
    [
        (4, None, None, (1, 1)),
        (1, None, None, (1, 0)),
        (10, "30%", "0", (3, 0)),
        (3, "0", "1", (0, 1)),
        (5, "0", "0%", (1, 0)),
        (0, None, None, (1, 0)),
        (4, "", "", (1, 1)),
    ],
)
def test_margins_round_in_favour_of_movement_and_of_service(desired, surge, unavailable, expected):
    given_annotations = {
        key: value
        for key, value in ((DEPLOYMENT_MAX_SURGE, surge), (DEPLOYMENT_MAX_UNAVAILABLE, unavailable))
        if value is not None
    }
    assert margins("Worker", desired, given_annotations) == expected


@pytest.mark.parametrize("value", ["half", "-1", "25 %", "%", "9" * 400 + "%", "9" * 5000])
def test_a_margin_that_is_not_a_number_is_rejected(value):
    with pytest.raises(RenderError, match="neither a number of pods nor a percentage"):
        margins("Worker", 4, {DEPLOYMENT_MAX_SURGE: value})


@pytest.mark.parametrize(
    ("serving", "surge", "expected"),
    [
        pytest.param(0, 1, (1, 2), id="the group that serves would go"),
        pytest.param(0, 0, (1, 2), id="also where no other one was to come before"),
        pytest.param(1, 1, (1, 1), id="a new one serves in its place"),
    ],
)
def test_a_failing_group_is_not_removed_before_a_serving_one(serving, surge, expected):
    """A LeaderWorkerSet removes its last group first, and here the first one fails."""
    new, old = Replicas("new", serving, serving, serving), Replicas("old", 2, 1, 1, behind=1)
    result = step(2, new, [old], surge=surge, unavailable=1)
    assert (result.new, result.old["old"]) == expected


def test_the_newest_old_generation_is_drained_last():
    old = [Replicas("older", 2, 2, 2, "2026-01-01T00:00:00Z"), Replicas("newer", 2, 2, 2, "2026-01-02T00:00:00Z")]
    result = step(4, Replicas("new", 2, 2, 2), old, surge=1, unavailable=1)
    assert result.old["newer"] >= result.old["older"]
    assert sum(result.old.values()) < 4


def generations(working: int, broken: int) -> list[Replicas]:
    """An old generation whose pods all serve, and a later one without serving pods."""
    return [
        Replicas("working", working, working, working, "2026-01-01T00:00:00Z"),
        Replicas("broken", broken, 0, 0, "2026-01-02T00:00:00Z"),
    ]


@pytest.mark.parametrize(
    ("desired", "working", "broken", "expected"),
    [
        pytest.param(1, 1, 1, {"working": 1, "broken": 0}, id="the only pod that serves"),
        pytest.param(4, 3, 2, {"working": 3, "broken": 0}, id="as many as have to serve"),
        pytest.param(4, 4, 2, {"working": 3, "broken": 0}, id="one more than has to serve"),
        pytest.param(4, 3, 0, {"working": 3, "broken": 0}, id="no pod that does not serve"),
        pytest.param(
            4, 4, 0, {"working": 3, "broken": 0}, id="one that may be unavailable, since new ones may find no room"
        ),
    ],
)
def test_pods_that_do_not_serve_are_removed_before_older_ones_that_do(desired, working, broken, expected):
    """An update that never served is followed by its correction: the generation that served before goes on serving."""
    new, old = Replicas("new", 0, 0, 0), generations(working, broken)
    assert step(desired, new, old, *margins("Worker", desired, {})).old == expected


@pytest.mark.parametrize(
    ("desired", "working", "broken", "expected"),
    [
        pytest.param(5, 3, 2, {"working": 3, "broken": 2}, id="as many as there are"),
        pytest.param(6, 3, 2, {"working": 4, "broken": 2}, id="more of what serves"),
        pytest.param(2, 3, 2, {"working": 2, "broken": 0}, id="fewer, and first of what does not serve"),
        pytest.param(3, 0, 2, {"working": 0, "broken": 2}, id="no more of what does not serve"),
        pytest.param(1, 0, 0, {"working": 0, "broken": 1}, id="from none, the newest"),
        pytest.param(-1, 1, 0, {"working": 0, "broken": 0}, id="none, where new ones are enough"),
    ],
)
def test_held_old_generations_have_the_desired_replicas(desired, working, broken, expected):
    assert scaled(generations(working, broken), desired) == expected


MARGINS = st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(any)
#: For each existing pod or group, whether it serves: usually all do.
SERVES = st.lists(st.just(True), max_size=12) | st.lists(st.booleans(), min_size=1, max_size=8)


@given(desired=st.integers(0, 12), serves=SERVES, margins=MARGINS)
@example(desired=2, serves=[False, True], margins=(1, 0))
@example(desired=1, serves=[False, True], margins=(1, 0))
def test_an_update_ends_even_if_some_groups_fail_for_good(desired, serves, margins):
    """It always serves with as many as at its start, except those that may be unavailable or exceed what is desired."""
    surge, unavailable = margins
    floor = min(sum(serves), desired - unavailable) if len(serves) <= desired else 0
    most = max(desired, len(serves)) + max(surge, 1)
    new = 0
    for _ in range(100):
        available = sum(serves)
        last = max((number for number, each in enumerate(serves, 1) if each), default=0)
        old = Replicas("old", len(serves), available, available, behind=last - available)
        move = step(desired, Replicas("new", new, new, new), [old], surge, unavailable)
        if move.done:
            break
        serves = serves[: move.old["old"]]
        assert new + sum(serves) >= floor
        new = move.new
        assert new + len(serves) <= most
    else:
        pytest.fail(f"no end: {new} {serves}")
    assert (new, serves) == (desired, [])


def test_recreate_never_runs_two_generations_side_by_side():
    def old(desired, left):
        return Replicas("old", desired, left, left, left=left)

    assert replace_all(2, Replicas("new", 0, 0, 0), [old(2, 2)]) == RolloutStep(0, {"old": 0}, False)
    assert replace_all(2, Replicas("new", 0, 0, 0), [old(0, 1)]) == RolloutStep(0, {"old": 0}, False)
    assert replace_all(2, Replicas("new", 0, 0, 0), [old(0, 0)]) == RolloutStep(2, {"old": 0}, False)
    assert replace_all(2, Replicas("new", 2, 2, 2), [old(0, 0)]) == RolloutStep(2, {"old": 0}, True)
    assert replace_all(0, Replicas("new", 0, 0, 0), [old(0, 0)]) == RolloutStep(0, {"old": 0}, True)
