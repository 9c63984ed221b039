"""A graph's whole life on a real API server with controllers, scheduler and nodes."""

from typing import Any

import aiohttp
import pytest
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    NAMESPACES,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient

from .platform import IMAGE, children_of, eventually, frontend, gone, graph, until_event, until_state, worker

pytestmark = pytest.mark.usefixtures("running_platform")


async def made(kube: KubeClient, obj: dict[str, Any], state: str = "successful") -> dict[str, Any]:
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, obj)
    return await until_state(kube, ObjectKey(obj["metadata"]["namespace"], obj["metadata"]["name"]), state)


async def change(kube: KubeClient, namespace: str, spec: dict[str, Any], name: str = "disagg") -> None:
    await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, name), {"spec": spec})


async def deployment_of(kube: KubeClient, namespace: str, component: str) -> dict[str, Any]:
    deployments = await kube.list(DEPLOYMENTS, namespace, label_selector=f"{labels.COMPONENT}={component}")
    (only,) = deployments
    return only


def main_of(deployment: dict[str, Any]) -> dict[str, Any]:
    return deployment["spec"]["template"]["spec"]["containers"][0]


async def test_a_graph_becomes_running_pods(kube, namespace):
    stored = await made(kube, graph(namespace))
    assert stored["status"]["conditions"][0] | {"lastTransitionTime": ""} == {
        "type": "Ready",
        "status": "True",
        "reason": "all_resources_are_ready",
        "message": "All resources are ready",
        "observedGeneration": 1,
        "lastTransitionTime": "",
    }
    assert set(stored["status"]["components"]) == {"Frontend", "Prefill", "Decode"}
    for replicas in stored["status"]["components"].values():
        assert replicas["componentKind"] == "Deployment"
        assert (replicas["replicas"], replicas["updatedReplicas"], replicas["availableReplicas"]) == (1, 1, 1)
    kinds = sorted(name.partition("/")[0] for name in await children_of(kube, namespace))
    assert kinds == sorted(
        ["DynamoComponentDeployment", "Deployment", "Service"] * 3 + ["ServiceAccount", "RoleBinding"] * 2 + ["Role"]
    )
    for reason in ("Created", "Ready"):
        await until_event(kube, namespace, reason, "DynamoGraphDeployment")
    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "disagg"))
    await eventually(lambda: children_of(kube, namespace), "no child is left", where=lambda answer: not answer)


async def test_metrics_report_reconciles_and_objects(running_platform, kube, namespace):
    await made(kube, graph(namespace, components=[frontend()]))
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{running_platform.metrics_port}/metrics") as answer,
    ):
        text = await answer.text()
    labelled = f'namespace="{namespace}",resource_type="dynamographdeployments",result="success"'
    assert f"dynamo_operator_reconcile_total{{{labelled}}}" in text
    assert "dynamo_platform_queue_depth" in text
    assert 'method="POST",resource="deployments.apps"' in text


@pytest.mark.parametrize(
    ("patch", "repaired"),
    [
        ({"spec": {"replicas": 5}}, lambda each: each["spec"]["replicas"] == 1),
        (
            {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other:1"}]}}}},
            lambda each: main_of(each)["image"] == IMAGE and "livenessProbe" in main_of(each),
        ),
        (
            {"metadata": {"labels": {labels.COMPONENT: None}}},
            lambda each: each["metadata"]["labels"].get(labels.COMPONENT) == "Frontend",
        ),
        (
            {"spec": {"template": {"metadata": {"labels": {labels.METRICS_ENABLED: "no"}}}}},
            lambda each: each["spec"]["template"]["metadata"]["labels"][labels.METRICS_ENABLED] == "true",
        ),
    ],
    ids=["replicas", "image", "label", "pod label"],
)
async def test_drift_is_repaired(kube, namespace, patch, repaired):
    await made(kube, graph(namespace, components=[frontend()]))
    key = ObjectKey(namespace, "disagg-frontend")
    await kube.merge_patch(DEPLOYMENTS, key, patch)
    await eventually(lambda: kube.get(DEPLOYMENTS, key), "the drift is repaired", where=repaired)


async def test_a_namespace_may_have_any_name(kube):
    name = "test-ephemeral-preview"
    await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        await made(kube, graph(name, components=[frontend()]))
    finally:
        await kube.delete(NAMESPACES, ObjectKey("", name))


async def test_changing_a_worker_rolls_out_only_the_worker(kube, namespace):
    await made(kube, graph(namespace, components=[frontend(), worker("Worker", replicas=3)]))
    front = await deployment_of(kube, namespace, "Frontend")
    old = await deployment_of(kube, namespace, "Worker")
    await change(kube, namespace, {"components": [frontend(), worker("Worker", replicas=3, image=f"{IMAGE}-next")]})
    stored = await until_state(kube, ObjectKey(namespace, "disagg"), "successful")
    assert stored["status"]["rollingUpdate"]["phase"] == "Completed"
    assert stored["status"]["rollingUpdate"]["updatedComponents"] == ["Worker"]
    await eventually(
        lambda: gone(kube, DEPLOYMENTS, ObjectKey(namespace, old["metadata"]["name"])), "the old generation is deleted"
    )
    new = await deployment_of(kube, namespace, "Worker")
    assert main_of(new)["image"] == f"{IMAGE}-next"
    assert new["spec"]["replicas"] == 3
    assert new["metadata"]["name"] != old["metadata"]["name"]
    assert (await deployment_of(kube, namespace, "Frontend"))["metadata"]["uid"] == front["metadata"]["uid"]


async def test_a_component_without_a_graph_runs_and_scales(kube, namespace):
    metadata = {"name": "alone", "namespace": namespace}
    spec = {"backendFramework": "vllm", **worker("Alone")}
    alone = {**DYNAMO_COMPONENT_DEPLOYMENTS.type_meta, "metadata": metadata, "spec": spec}
    await kube.create(DYNAMO_COMPONENT_DEPLOYMENTS, alone)
    key = ObjectKey(namespace, "alone")

    async def serves(replicas: int) -> bool:
        status = (await kube.get(DYNAMO_COMPONENT_DEPLOYMENTS, key)).get("status", {})
        available = {entry["type"]: entry["status"] for entry in status.get("conditions", ())}.get("Available")
        return available == "True" and status["component"]["availableReplicas"] == replicas

    await eventually(lambda: serves(1), "one replica serves")
    await kube.merge_patch(DYNAMO_COMPONENT_DEPLOYMENTS, key, {"spec": {"replicas": 2}}, subresource="scale")
    await eventually(lambda: serves(2), "two replicas serve")
    await kube.delete(DYNAMO_COMPONENT_DEPLOYMENTS, key)
    await eventually(lambda: children_of(kube, namespace), "no child is left", where=lambda answer: not answer)


async def test_a_rejected_pod_template_fails_only_its_graph_and_the_condition_says_why(kube, namespace):
    broken = worker("Worker")
    broken["podTemplate"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1.5"}}
    failed = await made(kube, graph(namespace, "broken", components=[frontend(), broken]), "failed")
    message = failed["status"]["conditions"][0]["message"]
    assert "component Worker" in message
    assert "nvidia.com/gpu" in message
    await made(kube, graph(namespace, "fine", components=[frontend()]))
    await change(kube, namespace, {"components": [frontend(), worker("Worker")]}, "broken")
    await until_state(kube, ObjectKey(namespace, "broken"), "successful")
