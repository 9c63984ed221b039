"""The replicas that a pool gets for its need, and the reason."""

import pytest
from dynamo_planner.core.adaptive.needs import Needs
from dynamo_planner.core.adaptive.reasons import Reason

STEADY = Needs(current=4, least=1, up=4, keep=4, planned=4, enough=4)


def needs(**changed: int) -> Needs:
    return Needs(**{name: changed.get(name, getattr(STEADY, name)) for name in Needs.__slots__})


@pytest.mark.parametrize(
    ("of", "pending", "given", "held"),
    [
        pytest.param(needs(), False, (4, Reason.NO_CHANGE), 0, id="as it is"),
        pytest.param(needs(up=5), False, (5, Reason.SCALE_UP), 0, id="more is worth it"),
        pytest.param(needs(up=9), False, (6, Reason.SCALE_UP), 0, id="more than a step"),
        pytest.param(needs(up=5), True, (4, Reason.HOLD_PENDING), 0, id="no room for more"),
        pytest.param(needs(least=5, up=5), True, (5, Reason.SCALE_UP), 0, id="fewer than the least, room or no room"),
        pytest.param(needs(keep=3, planned=3, enough=3), False, (3, Reason.SCALE_DOWN), 0, id="one can go"),
        pytest.param(needs(keep=1, planned=1, enough=1), False, (2, Reason.SCALE_DOWN), 1, id="one step at a time"),
        pytest.param(needs(keep=3), False, (4, Reason.HOLD_STABILIZING), 0, id="needed not long ago"),
        pytest.param(needs(keep=3, planned=3), False, (4, Reason.HOLD_STABILIZING), 1, id="held"),
        pytest.param(needs(up=5, keep=3, planned=3), True, (4, Reason.HOLD_PENDING), 0, id="what waits is not held"),
    ],
)
def test_a_pool_gets_replicas_for_its_need(of: Needs, pending: bool, given: tuple[int, Reason], held: int) -> None:
    assert of.given(pending=pending, step=2) == given
    assert of.held(given[0]) == held
    assert of.shrinks == (given[1] is Reason.SCALE_DOWN)
