"""The components that a command targets."""

import pytest
from dynamo_scaler.budgets.pools import DesiredPool, PoolKey
from dynamo_scaler.commands.targets import resolve
from dynamo_shared.bus.commands import CommandRefusedError
from dynamo_shared.wire.specifications.scaling import ScaleTarget

FRONTEND, PREFILL, FIRST, SECOND = (PoolKey("n", "g", name) for name in ("Frontend", "Prefill", "Short", "Long"))
POOLS = [
    DesiredPool(FRONTEND, "frontend", 1, 0),
    DesiredPool(PREFILL, "prefill", 1, 1),
    DesiredPool(FIRST, "decode", 1, 1),
    DesiredPool(SECOND, "decode", 1, 1),
]


def test_a_target_is_a_name_or_the_only_component_of_a_type() -> None:
    targets = [
        ScaleTarget(component="short", replicas=2),
        ScaleTarget(sub_component_type="Prefill", replicas=3),
        ScaleTarget(component="Long", sub_component_type="decode", replicas=4),
    ]
    assert resolve(targets, POOLS) == {FIRST: 2, PREFILL: 3, SECOND: 4}


def test_an_unknown_component_name_may_be_a_type() -> None:
    pools = [DesiredPool(PREFILL, "decode", 1, 1), DesiredPool(FIRST, "prefill", 1, 1)]
    assert resolve([ScaleTarget(component="decode", replicas=2)], pools) == {PREFILL: 2}
    # A name has precedence.
    assert resolve([ScaleTarget(component="prefill", replicas=2)], pools) == {PREFILL: 2}


@pytest.mark.parametrize(
    ("targets", "reason", "words"),
    [
        ([], "InvalidCommand", "targets is empty"),
        ([ScaleTarget(replicas=1)], "InvalidCommand", "targets[0]: needs component or subComponentType"),
        ([ScaleTarget(component="Medium")], "UnknownComponent", "there are: Frontend, Prefill, Short, Long"),
        ([ScaleTarget(component="Decode")], "AmbiguousTarget", "decode matches Short, Long; name the component"),
        ([ScaleTarget(sub_component_type="decode")], "AmbiguousTarget", "decode matches Short, Long"),
        (
            [ScaleTarget(sub_component_type="worker")],
            "UnknownComponent",
            "of type worker; there are: Frontend (frontend)",
        ),
        (
            [ScaleTarget(component="Prefill", sub_component_type="decode")],
            "UnknownComponent",
            "no component Prefill of type decode",
        ),
        (
            [ScaleTarget(component="Prefill"), ScaleTarget(sub_component_type="prefill")],
            "InvalidCommand",
            "targets[1]: Prefill is already a target",
        ),
    ],
)
def test_a_target_that_does_not_match_exactly_one_component_is_rejected(
    targets: list[ScaleTarget], reason: str, words: str
) -> None:
    with pytest.raises(CommandRefusedError) as caught:
        resolve(targets, POOLS)
    assert caught.value.reason == reason
    assert words in str(caught.value)
