"""Several autoscalers of one adapter are a problem, as far as the platform can read them."""

from typing import Any

import pytest
from dynamo_scaler.autoscaling import rivals
from dynamo_scaler.autoscaling.autoscalers import KINDS
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS
from dynamo_shared.state import ObjectCache
from dynamo_shared.state.packer import Packer

from tests.unit.scaler.autoscaler_api import ADAPTER, HPA, KEY, TRIGGERS, AutoscalerDesk

BOTH = (
    "HorizontalPodAutoscaler g-w and HorizontalPodAutoscaler mine scale W, and overwrite each other: keep one of "
    "them; to delete HorizontalPodAutoscaler g-w, remove the request for it"
)


async def reported(harness: AutoscalerDesk, rules: Any) -> tuple[bool, str, str] | None:
    """The condition after the scaler has read all stored objects."""
    harness.read()
    condition = (await harness.ask(rules)).condition
    return (condition.status, condition.reason, condition.message) if condition is not None else None


async def test_a_users_autoscaler_next_to_the_platforms_is_a_problem_until_it_is_deleted() -> None:
    harness = AutoscalerDesk()
    await harness.ask(HPA)
    mine = harness.foreign(HORIZONTAL_POD_AUTOSCALERS, "mine")
    assert await reported(harness, HPA) == (False, "SeveralAutoscalers", BOTH)
    # This message says more than the autoscaler's own condition.
    stored = await harness.api.get(HORIZONTAL_POD_AUTOSCALERS, KEY)
    ambiguous = {"type": "ScalingActive", "status": "False", "reason": "AmbiguousSelector", "message": "two"}
    harness.api.put({**stored, "status": {"conditions": [ambiguous]}})
    assert await reported(harness, HPA) == (False, "SeveralAutoscalers", BOTH)
    harness.api.put(stored)
    mine["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    harness.api.put(mine)
    condition = await reported(harness, HPA)
    assert condition is not None
    assert condition[:2] == (True, "HorizontalPodAutoscaler")


async def test_several_autoscalers_of_users_are_a_problem_and_one_is_not() -> None:
    harness = AutoscalerDesk()
    harness.foreign(HORIZONTAL_POD_AUTOSCALERS, "one")
    assert await reported(harness, None) is None
    harness.foreign(SCALED_OBJECTS, "two")
    assert await reported(harness, None) == (
        False,
        "SeveralAutoscalers",
        "HorizontalPodAutoscaler one and ScaledObject two scale W, and overwrite each other: keep one of them",
    )


async def test_large_autoscalers_of_users_are_not_unpacked_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes up to 20 MB unpacked, and anyone may point hundreds at one adapter: all were in memory at once."""
    cache, unpacked, unpack_sized = ObjectCache(), [], Packer.unpack_sized

    def counted(packer: Packer, packed: bytes) -> tuple[KubeObject, int]:
        unpacked.append(packed)
        return unpack_sized(packer, packed)

    cache.pack(*KINDS)
    rivals.index(cache)
    target = {"kind": ADAPTER["kind"], "name": "g-w"}
    for number in range(10):
        spec = {"scaleTargetRef": target, "metrics": ["m" * 1_000_000]}
        metadata = {"name": f"h{number}", "namespace": "n", "uid": str(number), "resourceVersion": "1"}
        cache.put(
            HORIZONTAL_POD_AUTOSCALERS, {**HORIZONTAL_POD_AUTOSCALERS.type_meta, "metadata": metadata, "spec": spec}
        )
    monkeypatch.setattr(Packer, "unpack_sized", counted)
    assert len(rivals.autoscalers_of(cache, KEY)) == 10
    conflict = rivals.autoscaler_conflict(cache, ADAPTER)
    assert conflict is not None
    assert conflict.message.startswith("HorizontalPodAutoscaler h0 and HorizontalPodAutoscaler h1 and ")
    assert not unpacked


async def test_the_hpa_that_keda_creates_belongs_to_its_scaled_object() -> None:
    harness = AutoscalerDesk()
    await harness.kedas(TRIGGERS)
    condition = await reported(harness, TRIGGERS)
    assert condition is not None
    assert condition[:2] == (True, "ScaledObject")


@pytest.mark.parametrize(
    "spec",
    [
        {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "g-w"}},
        {"scaleTargetRef": {"kind": "DynamoGraphDeploymentScalingAdapter", "name": "g-v"}},
        {"scaleTargetRef": None},
        {"scaleTargetRef": "g-w"},
    ],
)
async def test_autoscalers_of_other_targets_do_not_count(spec: dict[str, Any]) -> None:
    harness = AutoscalerDesk()
    await harness.ask(HPA)
    harness.foreign(SCALED_OBJECTS, "other", **spec)
    condition = await reported(harness, HPA)
    assert condition is not None
    assert condition[0] is True
