"""CheckpointReconciler: what stands in the way of a checkpoint, and what is reported of it."""

from __future__ import annotations

from typing import Any

import pytest
from dynamo_pod_builder import checkpoints
from dynamo_pod_builder.reconcilers.checkpoint import CheckpointReconciler
from dynamo_pod_builder.render import CheckpointDefaults, RenderConfig
from dynamo_pod_builder.render.checkpoint.identity import identity_hash
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.labels import CHECKPOINT_ID
from dynamo_shared.api.resources import DYNAMO_CHECKPOINTS, ObjectKey
from dynamo_shared.api.v1alpha1 import identity_of
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.tasks import Task

from tests.unit.announced import Announced
from tests.unit.routed import tasks_of
from tests.unit.written import Written

from .graph.building import NOW
from .indexed import indexed

IDENTITY = {"model": "m", "backendFramework": "vllm"}
POD = {"containers": [{"name": "main", "image": "i", "command": ["python3", "-m", "dynamo.vllm"]}]}
SPEC = {"identity": IDENTITY, "job": {"podTemplateSpec": {"spec": POD}}}
PARSED = identity_of({"spec": SPEC})
assert PARSED is not None
DIGEST = identity_hash(PARSED)
STORED = CheckpointDefaults(enabled=True, claim="claim", base_path="/checkpoints")


def checkpoint(
    name: str = "one", created: str = "2026-01-02T00:00:00Z", spec: KubeObject | None = SPEC, **metadata: Any
) -> KubeObject:
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoCheckpoint",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "resourceVersion": "1",
            "creationTimestamp": created,
            "labels": {CHECKPOINT_ID: DIGEST},
            **metadata,
        },
        **({"spec": spec} if spec is not None else {}),
    }


async def reconciled(config: CheckpointDefaults, *observed: KubeObject) -> tuple[list[KubeObject], list[str]]:
    cache = indexed(*observed, of=DYNAMO_CHECKPOINTS)
    writer, announced = Written(), Announced()
    reconciler = CheckpointReconciler(
        None,  # type: ignore[arg-type]
        cache,
        None,  # type: ignore[arg-type]
        writer,
        announced,
        lambda: RenderConfig(checkpoints=config),
        lambda: NOW,
    )
    assert await reconciler.reconcile(ObjectKey("ns", "one")) == Result()
    assert all(writer.urgent)
    return writer.statuses, announced.lines


def leaving(obj: KubeObject) -> KubeObject:
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


OLDER = checkpoint("older", "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("config", "observed", "phase", "reason"),
    [
        pytest.param(STORED, [checkpoint(spec=None)], "Failed", "InvalidSpec", id="no spec"),
        pytest.param(
            STORED, [checkpoint(spec={**SPEC, "identity": {"model": 3}})], "Failed", "InvalidSpec", id="not to be read"
        ),
        pytest.param(CheckpointDefaults(), [checkpoint()], "Failed", "CheckpointsDisabled", id="switched off"),
        pytest.param(CheckpointDefaults(enabled=True), [checkpoint()], "Pending", "NoStorage", id="nowhere to keep it"),
        pytest.param(STORED, [checkpoint(), OLDER], "Failed", "AlreadyOwned", id="another one has its identity"),
    ],
)
async def test_what_is_in_the_way(config, observed, phase, reason):
    (status,), (event,) = await reconciled(config, *observed)
    assert (status["phase"], status["conditions"][0]["reason"]) == (phase, reason)
    assert event.startswith(f"Warning Checkpoint{'Failed' if phase == 'Failed' else 'Waiting'} Checkpoint: {reason}: ")


async def test_one_that_is_said_to_be_under_way_without_a_job_begins():
    creating = {**checkpoint(), "status": {"phase": "Creating"}}
    (status,), _ = await reconciled(CheckpointDefaults(enabled=True), creating)
    assert (status["phase"], status["conditions"][0]["reason"]) == ("Pending", "NoStorage")


@pytest.mark.parametrize("observed", [[], [leaving(checkpoint())]], ids=["gone", "leaving"])
async def test_what_is_gone_is_left_alone(observed):
    assert await reconciled(STORED, *observed) == ([], [])


async def test_one_that_is_leaving_keeps_no_identity():
    (status,), _ = await reconciled(CheckpointDefaults(enabled=True), checkpoint(), leaving(OLDER))
    assert status["conditions"][0]["reason"] == "NoStorage"


@pytest.mark.parametrize("how", ["gone", "another identity"])
def test_others_of_an_identity_that_becomes_free_are_reconciled(how):
    other = checkpoint("older", spec={**SPEC, "identity": {**IDENTITY, "model": "other"}})
    new = {"gone": None, "another identity": other}
    cache = indexed(checkpoint(), of=DYNAMO_CHECKPOINTS)
    asked = tasks_of(checkpoints.routes(cache), DYNAMO_CHECKPOINTS, ObjectKey("ns", "older"), OLDER, new[how])
    assert Task.of(DYNAMO_CHECKPOINTS, ObjectKey("ns", "one")) in asked
