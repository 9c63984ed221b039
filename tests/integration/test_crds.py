"""A real API server accepts the CRDs, and enforces those of graphs and components in v1beta1."""

import json
from typing import Any

import pytest
from dynamo_shared.api import resources
from dynamo_shared.api.crds import crd_manifests
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import KubeError
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.state.cache import ObjectCache

GRAPHS = resources.DYNAMO_GRAPH_DEPLOYMENTS

READY: dict[str, Any] = {
    "type": "Ready",
    "status": "False",
    "reason": "some_resources_are_not_ready",
    "message": "Decode is starting",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-11-21T05:00:00Z",
}


def graph(namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {**GRAPHS.type_meta, "metadata": {"name": "graph", "namespace": namespace}, "spec": spec}


@pytest.mark.parametrize("manifest", crd_manifests(), ids=lambda manifest: manifest["spec"]["names"]["kind"])
async def test_a_crd_is_accepted_and_established(kube: KubeClient, manifest: dict[str, Any]) -> None:
    stored = await kube.get(resources.CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", manifest["metadata"]["name"]))
    conditions = {condition["type"]: condition["status"] for condition in stored["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions
    assert len(json.dumps(stored)) < 200_000
    assert stored["spec"]["versions"] == manifest["spec"]["versions"], "or every kubectl apply would find a change"


async def test_a_status_write_keeps_the_generation(kube: KubeClient, namespace: str) -> None:
    created = await kube.create(GRAPHS, {**graph(namespace, {}), "status": {"state": "failed"}})
    assert "status" not in created
    stored = await kube.apply_status(GRAPHS, {**graph(namespace, {}), "status": {}})
    assert (stored["status"], stored["metadata"]["generation"]) == ({"state": "initializing"}, 1)


async def test_strict_writes_report_unknown_fields_outside_pod_templates(kube: KubeClient, namespace: str) -> None:
    spec = {"wrong": 1, "components": [{"name": "a", "alsoWrong": 2, "podTemplate": {"fine": 3}}]}
    with pytest.raises(KubeError) as refused:
        await kube.create(GRAPHS, graph(namespace, spec))
    assert 'unknown field "spec.wrong"' in str(refused.value)
    assert 'unknown field "spec.components[0].alsoWrong"' in str(refused.value)
    assert "fine" not in str(refused.value)


async def test_components_belong_to_the_manager_that_applies_them(kube: KubeClient, namespace: str) -> None:
    one, other = kube.acting_as("one"), kube.acting_as("other")
    await one.apply(GRAPHS, graph(namespace, {"components": [{"name": "A", "replicas": 1}]}))
    await other.apply(GRAPHS, graph(namespace, {"components": [{"name": "B", "replicas": 2}]}))
    stored = await one.apply(GRAPHS, graph(namespace, {"components": [{"name": "A", "replicas": 3}]}))
    assert stored["spec"]["components"] == [{"name": "A", "replicas": 3}, {"name": "B", "replicas": 2}]


async def test_conditions_belong_to_the_manager_that_applies_them(kube: KubeClient, namespace: str) -> None:
    await kube.create(GRAPHS, graph(namespace, {}))
    for manager, kind in (("one", "Ready"), ("other", "TopologyLevelsAvailable")):
        status = {"state": "pending", "conditions": [{**READY, "type": kind}]}
        stored = await kube.acting_as(manager).apply_status(GRAPHS, {**graph(namespace, {}), "status": status})
    assert [condition["type"] for condition in stored["status"]["conditions"]] == ["Ready", "TopologyLevelsAvailable"]


async def test_kubectl_get_shows_the_columns(kube: KubeClient, namespace: str) -> None:
    await kube.create(GRAPHS, graph(namespace, {"backendFramework": "vllm"}))
    status = {"state": "pending", "conditions": [READY]}
    await kube.apply_status(GRAPHS, {**graph(namespace, {}), "status": status})
    table = json.loads(
        await kube.raw_get(GRAPHS.path(namespace), accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    )
    columns, cells = table["columnDefinitions"], table["rows"][0]["cells"]
    assert [each["name"] for each in columns if not each["priority"]] == ["Name", "Ready", "State", "Backend", "Age"]
    assert cells[:4] == ["graph", "False", "pending", "vllm"]
    # Columns of `-o wide`.
    assert {each["name"]: cell for each, cell in zip(columns, cells, strict=True) if each["priority"]} == {
        "Reason": READY["reason"],
        "Message": READY["message"],
    }


async def test_a_status_of_a_later_release_is_written_without_fields_that_the_definition_lacks(
    kube: KubeClient, namespace: str
) -> None:
    made = await kube.create(GRAPHS, graph(namespace, {"components": [{"name": "A", "type": "frontend"}]}))
    writer = StatusWriter(kube, cache := ObjectCache(), lambda: 0.0)
    cache.put(GRAPHS, made)
    counts = {"componentKind": "Deployment", "replicas": 1, "updatedReplicas": 1}
    status = {"state": "failed", "later": [1], "components": {"A": {**counts, "later": 2}}, "conditions": [READY]}
    await writer.write(GRAPHS, made, status, urgent=True)
    stored = await kube.get(GRAPHS, ObjectKey(namespace, "graph"))
    assert stored["status"] == {"state": "failed", "components": {"A": counts}, "conditions": [READY]}
    await writer.write(GRAPHS, stored, status, urgent=True)
    assert await kube.get(GRAPHS, ObjectKey(namespace, "graph")) == stored
