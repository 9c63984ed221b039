"""Step `take_checkpoints`: the checkpoints that a graph creates for its components."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder.reconcilers.graph.carry_out import CarryOutResult
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.reconcilers.graph.report import conclude
from dynamo_pod_builder.reconcilers.graph.steps.checkpoints import take_checkpoints
from dynamo_pod_builder.reconcilers.graph.steps.desired import desire
from dynamo_pod_builder.render import CheckpointDefaults
from dynamo_pod_builder.render.checkpoint.identity import identity_hash
from dynamo_pod_builder.starts import Catalogue, KnownCheckpoint
from dynamo_pod_builder.status.graph import graph_status
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import WORKLOAD_PROVIDER
from dynamo_shared.api.v1beta1 import parse_graph

from tests.unit.render.building import CONFIG, component

from .building import NOW, observed, stored_graph

ON = replace(CONFIG, checkpoints=CheckpointDefaults(enabled=True))
IDENTITY = {"model": "m", "backendFramework": "vllm"}
ENGINE = {"command": ["python3", "-m", "dynamo.vllm"], "args": ["--model", "m"]}


def starting(**checkpoint: Any) -> KubeObject:
    return component("One", main=ENGINE, experimental={"checkpoint": checkpoint})


def hash_of(graph: KubeObject) -> str:
    experimental = parse_graph(graph).spec.components[0].experimental
    assert experimental is not None
    assert experimental.checkpoint is not None
    assert experimental.checkpoint.identity is not None
    return identity_hash(experimental.checkpoint.identity)


AUTO = {"mode": "Auto", "identity": IDENTITY}
DIGEST = hash_of(stored_graph(starting(**AUTO)))
THERE = {"metadata": {"name": "there", "namespace": "ns", "uid": "c"}, "spec": {"identity": IDENTITY}}


@pytest.mark.parametrize(
    ("of", "config", "catalogue", "names"),
    [
        pytest.param(component("One"), ON, Catalogue(), [], id="not asked for"),
        pytest.param(starting(**AUTO), ON, Catalogue(), [f"checkpoint-{DIGEST}"], id="of an identity, automatically"),
        pytest.param(
            starting(**AUTO), ON, Catalogue(by_identity={DIGEST: KnownCheckpoint.of(THERE)}), [], id="exists already"
        ),
        pytest.param(starting(mode="Manual", identity=IDENTITY), ON, Catalogue(), [], id="not automatically"),
        pytest.param(starting(**AUTO, checkpointRef="named"), ON, Catalogue(), [], id="named: the user creates it"),
    ],
)
@pytest.mark.parametrize("grove", [False, True])
def test_checkpoints_are_created_only_for_components_that_request_a_new_one(of, config, catalogue, names, grove):
    world = observed(of=stored_graph(of), config=replace(config, grove=grove), checkpoints=catalogue)
    plan = take_checkpoints(desire(Plan(), world), world)
    assert plan.failure is None
    assert [each["metadata"]["name"] for each in plan.checkpoints] == names
    assert all("ownerReferences" not in each["metadata"] for each in plan.checkpoints), (
        "others may start from them, too"
    )


def test_a_graph_that_requests_grove_gets_a_checkpoint():
    graph = stored_graph(starting(**AUTO))
    graph["metadata"]["annotations"] = {WORKLOAD_PROVIDER: "grove"}
    world = observed(of=graph, config=replace(ON, grove=True), checkpoints=Catalogue())
    plan = take_checkpoints(desire(Plan(), world), world)
    assert [each["metadata"]["name"] for each in plan.checkpoints] == [f"checkpoint-{hash_of(graph)}"]


@pytest.mark.parametrize(
    ("policy", "phase", "ready"),
    [
        pytest.param(
            "WaitForCheckpoint",
            "Failed",
            (
                "failed",
                "component One: CheckpointFailed: DynamoCheckpoint there has failed: the engine did not load in time",
            ),
            id="failed",
        ),
        pytest.param(
            "WaitForCheckpoint", "Creating", ("pending", "Waiting for checkpoints: One (there)"), id="on its way"
        ),
        pytest.param(
            "Immediate",
            "Failed",
            ("pending", "Resources not ready: One: its workload does not exist yet"),
            id="no wait",
        ),
    ],
)
def test_a_graph_fails_if_its_pods_wait_for_a_failed_checkpoint(policy, phase, ready):
    failed = {**THERE, "status": {"phase": phase, "message": "the engine did not load in time"}}
    of = stored_graph(starting(**AUTO, startupPolicy=policy))
    world = observed(of=of, config=ON, checkpoints=Catalogue(by_identity={DIGEST: KnownCheckpoint.of(failed)}))
    status = graph_status(of, conclude(desire(Plan(), world), CarryOutResult(world, complete=True)), NOW)
    assert (status["state"], status["conditions"][0]["message"]) == ready


def test_a_graph_that_was_not_rendered_creates_no_checkpoint():
    assert take_checkpoints(Plan(), observed()) == Plan()
