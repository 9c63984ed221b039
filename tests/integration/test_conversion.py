"""Both API versions on a real API server: objects written in one and changed in the other stay complete."""

import copy
from collections.abc import AsyncIterator

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.kube import KubeClient

from .admission import Admission

GRAPHS = resources.DYNAMO_GRAPH_DEPLOYMENTS
COMPONENTS = resources.DYNAMO_COMPONENT_DEPLOYMENTS
ADAPTERS = resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
REQUESTS = resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS

SERVICE = {
    "componentType": "worker",
    "subComponentType": "decode",
    "replicas": 1,
    "dynamoNamespace": "mine",
    "ingress": {"enabled": True, "host": "h"},
    "labels": {"team": "a"},
    "sharedMemory": {"size": "8Gi"},
    "volumeMounts": [{"name": "models", "mountPoint": "/models"}, {"name": "c", "useAsCompilationCache": True}],
    "gpuMemoryService": {"enabled": False},
    "resources": {"limits": {"gpu": "1", "gpuType": "amd.com/gpu"}},
    "extraPodSpec": {
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "mainContainer": {"image": "engine", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 1}]},
    },
}
COMPONENT = {
    "type": "worker",
    "replicas": 1,
    "sharedMemorySize": 1073741824,
    "podTemplate": {
        "metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/keep"]},
        "spec": {
            "containers": [
                {"name": "log", "image": "log"},
                {"name": "main", "image": "engine", "resources": {"limits": {"nvidia.com/gpu": 1}}},
            ]
        },
    },
}
WRITTEN: list[tuple[str, Resource, KubeObject]] = [
    ("graph", GRAPHS.at("v1alpha1"), {"pvcs": [{"name": "models"}], "services": {"Frontend": {}, "Decode": SERVICE}}),
    ("graph", GRAPHS, {"components": [{"name": "Worker", **COMPONENT}, {"name": "Frontend", "type": "frontend"}]}),
    ("component", COMPONENTS.at("v1alpha1"), {"serviceName": "Decode", **SERVICE}),
    ("component", COMPONENTS, {"name": "Worker", **COMPONENT}),
    ("adapter", ADAPTERS.at("v1alpha1"), {"replicas": 2, "dgdRef": {"name": "g", "serviceName": "Decode"}}),
    ("adapter", ADAPTERS, {"replicas": 2, "dgdRef": {"name": "g", "componentName": "Decode"}}),
    (
        "request",
        REQUESTS.at("v1alpha1"),
        {
            "model": "m",
            "backend": "vllm",
            "deploymentOverrides": {"name": "n"},
            "profilingConfig": {
                "profilerImage": "p",
                "outputPVC": "o",
                "config": {"sla": {"ttft": 200, "isl": 3000}, "engine": {"x": [1]}},
                "resources": {"limits": {"cpu": 4}},
            },
        },
    ),
    (
        "request",
        REQUESTS,
        {
            "model": "m",
            "backend": "vllm",
            "image": "p",
            "hardware": {"gpuSku": "h100_sxm", "vramMb": 81559.5},
            "searchStrategy": "thorough",
            "workload": {"concurrency": 3},
            "overrides": {"profilingJob": {"backoffLimit": 1, "template": {"spec": {"containers": [{"name": "x"}]}}}},
        },
    ),
]
each_kind_and_version = pytest.mark.parametrize(
    ("resource", "spec"), [each[1:] for each in WRITTEN], ids=[f"{name}-{each.version}" for name, each, _ in WRITTEN]
)


def manifest(resource: Resource, namespace: str, spec: KubeObject) -> KubeObject:
    metadata = {"name": "whole", "namespace": namespace, "annotations": {"example.com/note": "mine"}}
    return {**resource.type_meta, "metadata": metadata, "spec": copy.deepcopy(spec)}


def other_version(resource: Resource) -> Resource:
    return resource.at("v1alpha1" if resource.version == "v1beta1" else "v1beta1")


@pytest.fixture(scope="session")
async def others(admission_plane: ControlPlane, admission: Admission) -> AsyncIterator[KubeClient]:
    """Another user, with a separate field manager."""
    async with await KubeClient.open(kubeconfig=admission_plane.kubeconfig, field_manager="another-user") as client:
        yield client


@each_kind_and_version
async def test_an_object_written_back_in_the_other_version_stays_the_same(
    resource: Resource, spec: KubeObject, admission_kube: KubeClient, admission_namespace: str
) -> None:
    key, other = ObjectKey(admission_namespace, "whole"), other_version(resource)
    first = await admission_kube.create(resource, manifest(resource, admission_namespace, spec))
    assert PRESERVED_FIELDS not in first["metadata"]["annotations"]
    observed = await admission_kube.get(other, key)
    assert observed["metadata"]["annotations"]["example.com/note"] == "mine"
    await admission_kube.replace(other, observed)
    again = await admission_kube.get(resource, key)
    assert again["spec"] == first["spec"]
    assert again["metadata"]["annotations"] == first["metadata"]["annotations"]
    assert again["metadata"]["generation"] == first["metadata"]["generation"], "nothing has changed for any client"


async def test_two_managers_apply_in_two_versions(
    admission_kube: KubeClient, others: KubeClient, admission_namespace: str
) -> None:
    """Each keeps applying its own version; neither removes fields that the other's version cannot express."""
    alpha, key = GRAPHS.at("v1alpha1"), ObjectKey(admission_namespace, "whole")
    mine = manifest(alpha, admission_namespace, {"services": {"Frontend": {"replicas": 1}, "Decode": SERVICE}})
    await admission_kube.apply(alpha, mine)
    theirs = manifest(
        GRAPHS,
        admission_namespace,
        {"components": [{"name": "Decode", "podTemplate": {"metadata": {"finalizers": ["example.com/keep"]}}}]},
    )
    await others.apply(GRAPHS, theirs)
    for _ in range(2):
        settled = await admission_kube.apply(alpha, mine)
        assert settled["spec"]["services"]["Decode"].items() >= {"ingress": SERVICE["ingress"]}.items()
        after = await others.apply(GRAPHS, theirs)
        decode = next(each for each in after["spec"]["components"] if each["name"] == "Decode")
        assert decode["podTemplate"]["metadata"]["finalizers"] == ["example.com/keep"]
        assert decode["type"] == "decode"
    assert (await admission_kube.get(alpha, key))["spec"]["services"]["Decode"]["labels"] == {"team": "a"}
    # Applied again without the field, which is then removed.
    del mine["spec"]["services"]["Decode"]["ingress"]
    last = await admission_kube.apply(alpha, mine)
    assert "ingress" not in last["spec"]["services"]["Decode"]
    assert last["spec"]["services"]["Decode"]["labels"] == {"team": "a"}


async def test_a_manager_switches_from_one_version_to_the_other(
    admission_kube: KubeClient, others: KubeClient, admission_namespace: str
) -> None:
    """To prune fields, the API server converts parts of the object, some without metadata, in random order."""
    alpha, key = GRAPHS.at("v1alpha1"), ObjectKey(admission_namespace, "whole")
    spec = {"services": {"Frontend": {"replicas": 1}, "Decode": SERVICE}}
    await admission_kube.apply(alpha, manifest(alpha, admission_namespace, spec))
    name = {"name": "whole", "namespace": admission_namespace}
    theirs = {"apiVersion": alpha.api_version, "kind": alpha.kind, "metadata": name}
    await others.apply(alpha, {**theirs, "spec": {"services": {"Frontend": {"dynamoNamespace": "theirs"}}}})
    theirs = {"apiVersion": GRAPHS.api_version, "kind": GRAPHS.kind, "metadata": name}
    await others.apply_status(GRAPHS, {**theirs, "status": {"state": "pending"}})
    for resource in (GRAPHS, alpha) * 6:
        observed = await admission_kube.get(resource, key)
        applied = await admission_kube.apply(resource, manifest(resource, admission_namespace, observed["spec"]))
        assert applied["spec"] == observed["spec"]


@pytest.mark.parametrize("annotated", [True, False], ids=["with annotations", "without"])
@pytest.mark.parametrize("reported", [True, False], ids=["with a status", "before any status"])
async def test_applying_the_same_object_in_v1beta1_after_v1alpha1_changes_nothing(
    reported: bool, annotated: bool, admission_kube: KubeClient, others: KubeClient, admission_namespace: str
) -> None:
    """Also for fields with two places in v1alpha1, and fields that v1beta1 lacks: no change, no pod is replaced."""
    alpha, key = GRAPHS.at("v1alpha1"), ObjectKey(admission_namespace, "whole")
    head = {"apiVersion": GRAPHS.api_version, "kind": GRAPHS.kind}
    name = {"name": "whole", "namespace": admission_namespace}

    def applying(resource: Resource, spec: KubeObject) -> KubeObject:
        whole = manifest(resource, admission_namespace, spec)
        return whole if annotated else {**whole, "metadata": name}

    await admission_kube.apply(alpha, applying(alpha, {"services": {"Decode": SERVICE}}))
    status = {"state": "pending"}
    if reported:
        await others.apply_status(GRAPHS, {**head, "metadata": name, "status": status})
    before, observed = await admission_kube.get(alpha, key), await admission_kube.get(GRAPHS, key)
    applied = await admission_kube.apply(GRAPHS, applying(GRAPHS, observed["spec"]))
    assert applied["spec"] == observed["spec"]
    assert applied["metadata"]["generation"] == observed["metadata"]["generation"]
    assert (await admission_kube.get(alpha, key))["spec"] == before["spec"]
    assert applied.get("status") == (status if reported else None)
    owners = {(each["manager"], each["apiVersion"], each.get("subresource")) for each in managed(applied)}
    assert owners == {
        ("dynamo-tests", GRAPHS.api_version, None),
        *({("another-user", GRAPHS.api_version, "status")} if reported else ()),
    }
    # The first status, and fields that the manager no longer applies.
    await others.apply_status(GRAPHS, {**head, "metadata": name, "status": status})
    (component,) = observed["spec"]["components"]
    less = {key: value for key, value in component.items() if key != "sharedMemorySize"}
    applied = await admission_kube.apply(GRAPHS, applying(GRAPHS, {"components": [less]}))
    assert (applied["spec"], applied["status"]) == ({"components": [less]}, status)


def managed(obj: KubeObject) -> list[KubeObject]:
    entries: list[KubeObject] = obj["metadata"]["managedFields"]
    return entries


@pytest.mark.parametrize(
    "place",
    [{}, {"envs": [{"name": "B", "value": "2"}], "livenessProbe": {"exec": {"command": ["b"]}}}],
    ids=["taken away", "moved"],
)
async def test_fields_that_are_no_longer_applied_in_v1alpha1_are_removed_from_containers(
    place: KubeObject, admission_kube: KubeClient, others: KubeClient, admission_namespace: str
) -> None:
    """The API server also prunes when the platform applies the status in v1beta1, where containers are one value."""
    alpha, key = GRAPHS.at("v1alpha1"), ObjectKey(admission_namespace, "whole")
    main = {"image": "e", "env": [{"name": "A", "value": "1"}], "livenessProbe": {"exec": {"command": ["a"]}}}
    before = {"services": {"Decode": {"extraPodSpec": {"mainContainer": main}}}}
    await admission_kube.apply(alpha, manifest(alpha, admission_namespace, before))
    head = {"apiVersion": GRAPHS.api_version, "kind": GRAPHS.kind}
    name = {"name": "whole", "namespace": admission_namespace}
    await others.apply_status(GRAPHS, {**head, "metadata": name, "status": {"state": "pending"}})
    after = {"services": {"Decode": {**place, "extraPodSpec": {"mainContainer": {"image": "e"}}}}}
    applied = await admission_kube.apply(alpha, manifest(alpha, admission_namespace, after))
    (decode,) = applied["spec"]["services"].values()
    assert decode.items() >= after["services"]["Decode"].items()
    (component,) = (await admission_kube.get(GRAPHS, key))["spec"]["components"]
    (container,) = component["podTemplate"]["spec"]["containers"]
    assert container.get("env") == place.get("envs")
    assert container.get("livenessProbe") == place.get("livenessProbe")
