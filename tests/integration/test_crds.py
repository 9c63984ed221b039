"""The CRDs on a real API server: accepted, and those of graphs and components in v1beta1 holding to what they say."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from dynamo_shared.api import resources
from dynamo_shared.api.crds import crd_manifests
from dynamo_shared.api.manifest import load_manifest
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.api.v1beta1 import parse_component, parse_graph, to_dict
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Invalid, KubeError

GRAPHS = resources.DYNAMO_GRAPH_DEPLOYMENTS
COMPONENTS = resources.DYNAMO_COMPONENT_DEPLOYMENTS

POD_TEMPLATE = {
    "metadata": {"labels": {"team": "a"}, "annotations": {"nvidia.com/deployment-strategy": "Recreate"}},
    "spec": {
        "aFieldOfKubernetes2030": {"a": [1, {"b": "c"}]},
        "containers": [
            {
                "name": "main",
                "image": "example.com/vllm:1",
                "command": ["python3", "-m", "dynamo.vllm"],
                "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "20Gi"}},
                "alsoUnknown": True,
            }
        ],
    },
}
# One with every field, so that nothing is pruned unseen.
EVERYTHING: dict[str, Any] = {
    "backendFramework": "vllm",
    "annotations": {"a": "b"},
    "labels": {"c": "d"},
    "env": [
        {"name": "PLAIN", "value": "x"},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
    ],
    "restart": {"id": "1", "strategy": {"type": "Sequential", "order": ["Decode", "Picker"]}},
    "topologyConstraint": {"clusterTopologyName": "topology", "packDomain": "zone"},
    "components": [
        {
            "name": "Decode",
            "type": "decode",
            "replicas": 2,
            "podTemplate": POD_TEMPLATE,
            "multinode": {"nodeCount": 2},
            "modelRef": {"name": "Qwen/Qwen3-0.6B", "revision": "main"},
            "sharedMemorySize": "16Gi",
            "compilationCache": {"pvcName": "cache", "mountPath": "/root/.cache/vllm"},
            "scalingAdapter": {},
            "frontendSidecar": "sidecar",
            "globalDynamoNamespace": True,
            "topologyConstraint": {"packDomain": "rack"},
            "experimental": {
                "gpuMemoryService": {"mode": "InterPod", "deviceClassName": "gpu.nvidia.com"},
                "failover": {"mode": "InterPod", "numShadows": 1},
                "checkpoint": {
                    "mode": "Manual",
                    "checkpointRef": "checkpoint",
                    "identity": {
                        "model": "m",
                        "backendFramework": "vllm",
                        "dynamoVersion": "1.2.0",
                        "tensorParallelSize": 2,
                        "pipelineParallelSize": 1,
                        "dtype": "fp8",
                        "maxModelLen": 4096,
                        "extraParameters": {"e": "f"},
                    },
                },
            },
        },
        {
            "name": "Picker",
            "type": "epp",
            "sharedMemorySize": 0,
            "eppConfig": {
                "config": {
                    "apiVersion": "inference.networking.x-k8s.io/v1alpha1",
                    "kind": "EndpointPickerConfig",
                    "featureGates": ["f"],
                    "plugins": [{"type": "t", "name": "n", "parameters": {"any": [1, "two", {"three": 3.5}]}}],
                    "schedulingProfiles": [{"name": "p", "plugins": [{"pluginRef": "n", "weight": 2}]}],
                    "saturationDetector": {
                        "queueDepthThreshold": 5,
                        "kvCacheUtilThreshold": 0.8,
                        "metricsStalenessThreshold": "200ms",
                    },
                    "aFieldOfANewerPicker": {"kept": True},
                }
            },
        },
    ],
}
GRAPH_STATUS: dict[str, Any] = {
    "state": "pending",
    "observedGeneration": 1,
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "some_resources_are_not_ready",
            "message": "Decode is starting",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-11-21T05:00:00Z",
        }
    ],
    "components": {
        "Decode": {
            "componentKind": "Deployment",
            "componentNames": ["graph-decode"],
            "replicas": 2,
            "updatedReplicas": 2,
            "readyReplicas": 1,
            "availableReplicas": 1,
        }
    },
    "rollingUpdate": {
        "phase": "Completed",
        "startTime": "2026-11-21T05:00:00Z",
        "endTime": "2026-11-21T05:01:00Z",
        "updatedComponents": ["Decode"],
    },
    "restart": {"observedID": "1", "phase": "Restarting", "inProgress": ["Decode"]},
    "checkpoints": {"Decode": {"checkpointName": "c", "identityHash": "0123456789abcdef", "ready": True}},
}


def graph(namespace: str, spec: dict[str, Any], name: str = "graph") -> dict[str, Any]:
    return _object(GRAPHS, namespace, name, spec)


def component(namespace: str, spec: dict[str, Any], name: str = "component") -> dict[str, Any]:
    return _object(COMPONENTS, namespace, name, spec)


def _object(resource: Resource, namespace: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {**resource.type_meta, "metadata": {"name": name, "namespace": namespace}, "spec": copy.deepcopy(spec)}


@pytest.mark.parametrize("manifest", crd_manifests(), ids=lambda manifest: manifest["spec"]["names"]["kind"])
async def test_a_crd_is_accepted_and_established(kube: KubeClient, manifest: dict[str, Any]) -> None:
    stored = await kube.get(resources.CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", manifest["metadata"]["name"]))
    conditions = {condition["type"]: condition["status"] for condition in stored["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions
    assert len(json.dumps(stored)) < 200_000
    assert stored["spec"]["versions"] == manifest["spec"]["versions"], "or every kubectl apply would find a change"


async def test_a_graph_is_stored_as_written(kube: KubeClient, namespace: str) -> None:
    created = await kube.create(GRAPHS, graph(namespace, EVERYTHING))
    assert created["spec"] == EVERYTHING
    assert to_dict(parse_graph(created))["spec"] == EVERYTHING
    created["metadata"].pop("managedFields", None)
    assert to_dict(load_manifest(created))["spec"] == EVERYTHING


async def test_its_status_is_stored_as_written(kube: KubeClient, namespace: str) -> None:
    created = await kube.create(GRAPHS, graph(namespace, EVERYTHING))
    assert "status" not in created
    stored = await kube.apply_status(GRAPHS, {**graph(namespace, {}), "status": {}})
    assert stored["status"] == {"state": "initializing"}
    stored = await kube.apply_status(GRAPHS, {**graph(namespace, {}), "status": GRAPH_STATUS})
    assert stored["status"] == GRAPH_STATUS
    assert stored["spec"] == EVERYTHING
    assert stored["metadata"]["generation"] == 1, "a status does not change the generation"
    assert to_dict(parse_graph(stored))["status"] == GRAPH_STATUS


async def test_a_component_is_stored_as_written(kube: KubeClient, namespace: str) -> None:
    for each in EVERYTHING["components"]:
        spec = {**each, "backendFramework": "vllm"}
        created = await kube.create(COMPONENTS, component(namespace, spec, each["name"].lower()))
        assert created["spec"] == spec
        assert to_dict(parse_component(created))["spec"] == spec
    status = {
        "observedGeneration": 1,
        "conditions": [{**GRAPH_STATUS["conditions"][0], "type": "Available"}],
        "component": GRAPH_STATUS["components"]["Decode"],
    }
    stored = await kube.apply_status(COMPONENTS, {**component(namespace, {}, "decode"), "status": status})
    assert stored["status"] == status
    assert to_dict(parse_component(stored))["status"] == status


async def test_a_strict_writer_learns_of_unknown_fields_outside_pod_templates(kube: KubeClient, namespace: str) -> None:
    spec = {"wrong": 1, "components": [{"name": "a", "alsoWrong": 2, "podTemplate": {"fine": 3}}]}
    with pytest.raises(KubeError) as refused:
        await kube.create(GRAPHS, graph(namespace, spec))
    assert 'unknown field "spec.wrong"' in str(refused.value)
    assert 'unknown field "spec.components[0].alsoWrong"' in str(refused.value)
    assert "fine" not in str(refused.value)


async def test_a_graph_as_large_as_allowed_is_within_the_cost_of_its_rules(kube: KubeClient, namespace: str) -> None:
    components = [{"name": f"{'n' * 60}{number:03}", "podTemplate": POD_TEMPLATE} for number in range(26)]
    stored = await kube.create(GRAPHS, graph(namespace, {"components": components[:25]}))
    assert len(stored["spec"]["components"]) == 25
    with pytest.raises(Invalid, match="must have at most 25 items"):
        await kube.create(GRAPHS, graph(namespace, {"components": components}, "larger"))


async def test_components_belong_to_the_manager_that_applies_them(kube: KubeClient, namespace: str) -> None:
    one, other = kube.acting_as("one"), kube.acting_as("other")
    await one.apply(GRAPHS, graph(namespace, {"components": [{"name": "A", "replicas": 1}]}))
    await other.apply(GRAPHS, graph(namespace, {"components": [{"name": "B", "replicas": 2}]}))
    stored = await one.apply(GRAPHS, graph(namespace, {"components": [{"name": "A", "replicas": 3}]}))
    assert stored["spec"]["components"] == [{"name": "A", "replicas": 3}, {"name": "B", "replicas": 2}]


async def test_conditions_belong_to_the_manager_that_applies_them(kube: KubeClient, namespace: str) -> None:
    await kube.create(GRAPHS, graph(namespace, {}))
    ready = GRAPH_STATUS["conditions"][0]
    for manager, kind in (("one", "Ready"), ("other", "TopologyLevelsAvailable")):
        status = {"state": "pending", "conditions": [{**ready, "type": kind}]}
        stored = await kube.acting_as(manager).apply_status(GRAPHS, {**graph(namespace, {}), "status": status})
    assert [condition["type"] for condition in stored["status"]["conditions"]] == ["Ready", "TopologyLevelsAvailable"]


async def test_kubectl_get_shows_the_columns(kube: KubeClient, namespace: str) -> None:
    await kube.create(GRAPHS, graph(namespace, EVERYTHING))
    await kube.apply_status(GRAPHS, {**graph(namespace, {}), "status": GRAPH_STATUS})
    table = json.loads(
        await kube.raw_get(GRAPHS.path(namespace), accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    )
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Ready", "State", "Backend", "Age"]
    assert table["rows"][0]["cells"][:4] == ["graph", "False", "pending", "vllm"]
