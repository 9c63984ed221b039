"""Every field of a component, set alone, changes the rendered objects, is rejected, or gives a warning.

`tests/unit/api/test_every_field_counts.py` checks by their names that a module reads the fields. This test checks
their effect, for each type of component, with Grove and without.
"""

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.api.v1beta1 import parse_component, parse_graph
from dynamo_shared.api.validation import Facts, validate

from tests.building.objects import object_of

ALPHA, BETA = "v1alpha1", "v1beta1"
CONFIG = render.RenderConfig(
    operator_version="1.2.0",
    leader_worker_sets=True,
    device_claims=True,
    inference_pools=True,
    virtual_services=True,
    checkpoints=render.CheckpointDefaults(enabled=True, claim="c", base_path="/c"),
)
PROBE = {"httpGet": {"path": "/x", "port": 1234}}
IDENTITY = {"model": "m", "backendFramework": "vllm"}
PICKER = {"plugins": [{"type": "t"}], "schedulingProfiles": [{"name": "p", "plugins": [{"pluginRef": "t"}]}]}
OVERRIDE = {"apiVersion": "grove.io/v1alpha1", "value": {"topologyConstraint": {"pack": {"required": "rack"}}}}
SHARED = {"enabled": True, "mode": "interPod"}
SCALED = {"enabled": True, "maxReplicas": 5}
REACHED = {"enabled": True, "host": "h"}

#: Field -> the other fields that it needs, and its value. A field that only a reconciler reads has none.
ALPHA_FIELDS: dict[str, tuple[dict[str, Any], Any] | None] = {
    "annotations": ({}, {"a.b/c": "d"}),
    "autoscaling.behavior": ({"autoscaling": SCALED}, {"scaleDown": {"stabilizationWindowSeconds": 5}}),
    "autoscaling.enabled": ({"autoscaling": {"maxReplicas": 5}}, True),
    "autoscaling.maxReplicas": ({"autoscaling": SCALED}, 6),
    "autoscaling.metrics": ({"autoscaling": SCALED}, [{"type": "Resource"}]),
    "autoscaling.minReplicas": ({"autoscaling": SCALED}, 2),
    "checkpoint.checkpointRef": None,
    "checkpoint.enabled": None,
    "checkpoint.identity": ({"checkpoint": {"enabled": True, "checkpointRef": "r"}}, IDENTITY),
    "checkpoint.mode": None,
    # test_snapshots.py has the effect of these on a graph.
    "checkpoint.startupPolicy": None,
    "checkpoint.deletionPolicy": ({"checkpoint": {"enabled": True, "identity": IDENTITY}}, "Delete"),
    "checkpoint.targetContainerName": None,
    "checkpoint.job.gmsClientContainers": ({"checkpoint": {"enabled": True}}, ["log"]),
    "checkpoint.job.podTemplate": None,
    "componentType": ({}, "planner"),
    "dynamoNamespace": ({}, "x"),
    "envFromSecret": ({}, "s"),
    "envs": ({}, [{"name": "A", "value": "1"}]),
    "eppConfig.config": ({"eppConfig": {}}, PICKER),
    "eppConfig.configMapRef": ({"eppConfig": {}}, {"name": "c", "key": "k", "optional": True}),
    "extraPodMetadata.annotations": ({}, {"a.b/c": "d"}),
    "extraPodMetadata.labels": ({}, {"a.b/c": "d"}),
    "extraPodSpec": ({}, {"nodeSelector": {"a": "b"}, "mainContainer": {"image": "i"}}),
    "failover.enabled": ({"gpuMemoryService": SHARED, "failover": {"mode": "interPod"}}, True),
    "failover.mode": ({"gpuMemoryService": SHARED, "failover": {"enabled": True}}, "interPod"),
    "failover.numShadows": ({"gpuMemoryService": SHARED, "failover": SHARED}, 2),
    "frontendSidecar.args": ({"frontendSidecar": {"image": "f"}}, ["x"]),
    "frontendSidecar.envFromSecret": ({"frontendSidecar": {"image": "f"}}, "s"),
    "frontendSidecar.envs": ({"frontendSidecar": {"image": "f"}}, [{"name": "A", "value": "1"}]),
    "frontendSidecar.image": ({"frontendSidecar": {"image": "f"}}, "g"),
    "globalDynamoNamespace": ({}, True),
    "gpuMemoryService.deviceClassName": ({"gpuMemoryService": {"enabled": True}}, "x"),
    "gpuMemoryService.enabled": ({"gpuMemoryService": {}}, True),
    "gpuMemoryService.extraClientContainers": (
        {"gpuMemoryService": {"enabled": True}, "extraPodSpec": {"containers": [{"name": "log", "image": "l"}]}},
        ["log"],
    ),
    "gpuMemoryService.mode": ({"gpuMemoryService": {"enabled": True}}, "interPod"),
    "ingress.annotations": ({"ingress": REACHED}, {"a": "b"}),
    "ingress.enabled": ({"ingress": {"host": "h"}}, True),
    "ingress.host": ({"ingress": REACHED}, "i"),
    "ingress.hostPrefix": ({"ingress": REACHED}, "p"),
    "ingress.hostSuffix": ({"ingress": REACHED}, "s"),
    "ingress.ingressControllerClassName": ({"ingress": REACHED}, "c"),
    "ingress.labels": ({"ingress": REACHED}, {"a": "b"}),
    "ingress.tls.secretName": ({"ingress": REACHED}, "s"),
    "ingress.useVirtualService": ({"ingress": {**REACHED, "virtualServiceGateway": "g"}}, True),
    "ingress.virtualServiceGateway": ({"ingress": REACHED}, "g"),
    "labels": ({}, {"a.b/c": "d"}),
    "livenessProbe": ({}, PROBE),
    "minAvailable": ({"replicas": 3}, 2),
    "modelRef.name": ({"modelRef": {"name": "m"}}, "n"),
    "modelRef.revision": ({"modelRef": {"name": "m"}}, "r"),
    "multinode.nodeCount": ({}, 3),
    "providerOverride.apiVersion": ({"providerOverride": OVERRIDE}, "grove.io/v2"),
    "providerOverride.target": ({"providerOverride": OVERRIDE}, "PodCliqueSet"),
    "providerOverride.value": ({"providerOverride": OVERRIDE}, {"topologyConstraint": {"pack": {"required": "zone"}}}),
    "readinessProbe": ({}, PROBE),
    "replicas": ({}, 0),
    "roles": ({"multinode": {"nodeCount": 2}}, [{"name": "leader"}, {"name": "worker"}]),
    "runtimeVersionOverride": ({}, "1.5.0"),
    "resources.claims": ({}, [{"name": "c"}]),
    **{
        f"resources.{side}.{name}": ({}, value)
        for side in ("limits", "requests")
        for name, value in {"cpu": "7", "custom": {"rdma/ib": "1"}, "gpu": "7", "gpuType": "x", "memory": "7Gi"}.items()
    },
    "scalingAdapter.enabled": ({}, True),
    "serviceName": ({}, "other"),
    "sharedMemory.disabled": ({"sharedMemory": {"size": "1Gi"}}, True),
    "sharedMemory.size": ({"sharedMemory": {"disabled": True}}, "1Gi"),
    "subComponentType": ({}, "encode"),
    "topologyConstraint.packDomain": ({}, "rack"),
    "volumeMounts": ({"volumeMounts": []}, [{"name": "v", "mountPoint": "/v"}]),
}
BETA_FIELDS: dict[str, tuple[dict[str, Any], Any] | None] = {
    "compilationCache.mountPath": ({"compilationCache": {"pvcName": "p", "mountPath": "/c"}}, "/d"),
    "compilationCache.subPath": ({"compilationCache": {"pvcName": "p", "mountPath": "/c"}}, "s"),
    "compilationCache.pvcName": ({"compilationCache": {"pvcName": "p", "mountPath": "/c"}}, "q"),
    "eppConfig.config": ({"eppConfig": {}}, PICKER),
    "eppConfig.configMapRef": ({"eppConfig": {}}, {"name": "c", "key": "k", "optional": True}),
    "experimental.checkpoint.checkpointRef": None,
    "experimental.checkpoint.identity": ({"experimental": {"checkpoint": {"checkpointRef": "r"}}}, IDENTITY),
    "experimental.checkpoint.mode": None,
    "experimental.checkpoint.enabled": None,
    "experimental.checkpoint.startupPolicy": None,
    "experimental.checkpoint.deletionPolicy": ({"experimental": {"checkpoint": {"identity": IDENTITY}}}, "Delete"),
    "experimental.checkpoint.targetContainerName": None,
    "experimental.checkpoint.job.gmsClientContainers": ({"experimental": {"checkpoint": {"enabled": True}}}, ["log"]),
    "experimental.checkpoint.job.podTemplate": None,
    "experimental.failover.mode": ({"experimental": {"gpuMemoryService": {"mode": "InterPod"}}}, "InterPod"),
    # The only allowed number is the default.
    "experimental.failover.numShadows": None,
    "experimental.gpuMemoryService.deviceClassName": ({}, "x"),
    "experimental.gpuMemoryService.extraClientContainers": ({"experimental": {"gpuMemoryService": {}}}, ["log"]),
    "experimental.gpuMemoryService.mode": ({}, "InterPod"),
    "experimental.grove.forceScalingGroup": ({}, True),
    "frontendSidecar": ({}, "log"),
    "globalDynamoNamespace": ({}, True),
    "minAvailable": ({"replicas": 3}, 2),
    "modelRef.name": ({"modelRef": {"name": "m"}}, "n"),
    "modelRef.revision": ({"modelRef": {"name": "m"}}, "r"),
    "multinode.nodeCount": ({}, 3),
    "name": ({}, "other"),
    "podTemplate": ({}, {"spec": {"nodeSelector": {"a": "b"}, "containers": [{"name": "main", "image": "i"}]}}),
    "providerOverride.apiVersion": ({"providerOverride": OVERRIDE}, "grove.io/v2"),
    "providerOverride.target": ({"providerOverride": OVERRIDE}, "PodCliqueSet"),
    "providerOverride.value": ({"providerOverride": OVERRIDE}, {"topologyConstraint": {"pack": {"required": "zone"}}}),
    "replicas": ({}, 0),
    "roles": ({"multinode": {"nodeCount": 2}}, [{"name": "leader"}, {"name": "worker"}]),
    "runtimeVersionOverride": ({}, "1.5.0"),
    "scalingAdapter": ({}, {}),
    "sharedMemorySize": ({}, "1Gi"),
    "topologyConstraint.packDomain": ({}, "rack"),
    "type": ({}, "planner"),
}
FIELDS = {ALPHA: ALPHA_FIELDS, BETA: BETA_FIELDS}
TYPES = ("frontend", "worker", "epp", "")
#: Fields that describe a component. If the pods do not differ, the description is harmless, and not an error.
STATED: dict[str, tuple[str, ...]] = {"runtimeVersionOverride": ("worker", "epp"), "roles": ()}


def leaves(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Fields without subfields; the single entry of a table counts as one, too."""
    for name, child in schema.get("properties", {}).items():
        here = f"{path}.{name}".strip(".")
        inner = child.get("properties") if "x-dynamo-embedded" not in child else None
        if inner and not here.endswith((".identity", "eppConfig.config", "eppConfig.configMapRef")):
            yield from leaves(child, here)
        else:
            yield here


def of_component(version: str) -> dict[str, Any]:
    spec: Any = schema_of(DYNAMO_GRAPH_DEPLOYMENTS.at(version))["properties"]["spec"]["properties"]
    shape: dict[str, Any] = (
        spec["services"]["additionalProperties"] if version == ALPHA else spec["components"]["items"]
    )
    return shape


@pytest.mark.parametrize("version", [ALPHA, BETA])
def test_the_tables_have_every_field(version: str) -> None:
    assert set(FIELDS[version]) == set(leaves(of_component(version)))


def graph(version: str, kind: str, fields: KubeObject, *, constrained: bool) -> KubeObject:
    """A graph with one component of a type; `fields` override those that the type needs."""
    command = {"command": ["python3", "-m", "dynamo.vllm"], "args": ["--tensor-parallel-size", "8"]}
    main = {"image": "i", **(command if kind == "worker" else {"command": ["run"]})}
    picker = {"eppConfig": {"configMapRef": {"name": "n", "key": "l"}}} if kind == "epp" else {}
    if version == ALPHA:
        gpus = {"resources": {"limits": {"gpu": "8"}}} if kind == "worker" else {}
        made = {"componentType": kind or "default", **gpus, "extraPodSpec": {"mainContainer": main}, **picker}
        spec: KubeObject = {"services": {"Part": over(made, fields)}}
        constraint = {"topologyProfile": "t", "packDomain": "zone"}
    else:
        gpus = {"resources": {"limits": {"nvidia.com/gpu": "8"}}} if kind == "worker" else {}
        containers = [{"name": "main", **main, **gpus}, {"name": "log", "image": "l"}]
        typed = {"type": kind} if kind else {}
        made = {"name": "Part", **typed, "podTemplate": {"spec": {"containers": containers}}, **picker}
        spec = {"components": [over(made, fields)]}
        constraint = {"clusterTopologyName": "t", "packDomain": "zone"}
    if constrained:
        spec["topologyConstraint"] = constraint
    annotations = {"nvidia.com/dynamo-kube-discovery-mode": "container"}
    spec["backendFramework"] = "vllm"
    return object_of(DYNAMO_GRAPH_DEPLOYMENTS.at(version), "g", "n", annotations=annotations, spec=spec)


def over(base: KubeObject, fields: KubeObject) -> KubeObject:
    merged = copy.deepcopy(base)
    for name, value in fields.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = over(merged[name], value) if both else copy.deepcopy(value)
    return merged


def nested(path: str, value: Any) -> KubeObject:
    for name in reversed(path.split(".")):
        value = {name: value}
    made: KubeObject = value
    return made


def objects(obj: KubeObject, config: render.RenderConfig) -> str:
    """All rendered objects of a graph without the names that contain hashes; or why it cannot be rendered."""
    stored = convert(obj, DYNAMO_COMPONENT_DEPLOYMENTS.api_version)
    try:
        made = render.graph_children(parse_graph({**stored, "metadata": {**stored["metadata"], "uid": "u"}}), config)
        for child in list(made):
            if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
                made.remove(child)
                owner = {**child, "metadata": {**child["metadata"], "uid": "c"}}
                made += render.component_children(parse_component(owner), config)
    except render.RenderError as error:
        return str(error)
    return re.sub(r'(?<=[-"])[0-9a-f]{8}(?=[-"])', "", json.dumps(made, sort_keys=True))


CASES = [
    (version, path, kind)
    for version, table in FIELDS.items()
    for path, given in table.items()
    if given
    for kind in STATED.get(path, TYPES)
]


@pytest.mark.parametrize("grove", [False, True], ids=["alone", "grove"])
@pytest.mark.parametrize(("version", "path", "kind"), CASES, ids=lambda each: each or "none")
def test_a_field_has_an_effect_or_gives_a_warning(version: str, path: str, kind: str, *, grove: bool) -> None:
    needed, value = FIELDS[version][path] or ({}, None)
    constrained = path.startswith("topologyConstraint")
    before = graph(version, kind, needed, constrained=constrained)
    after = graph(version, kind, over(needed, nested(path, value)), constrained=constrained)
    facts = Facts(grove=grove, inference_pools=True, topologies={"t": ("zone", "rack")})
    findings, known = validate(after, None, facts), validate(before, None, facts)
    if schema_errors(after) or findings.errors:
        return  # rejected
    config = replace(CONFIG, grove=grove)
    warned = set(findings.warnings) - set(known.warnings)
    deprecated = any(path.partition(".")[0] in each for each in findings.warnings)
    assert warned or deprecated or objects(after, config) != objects(before, config)
