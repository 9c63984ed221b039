"""Scaling through adapters: from /scale to pods, and back into every status, whatever happens in between."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_pod_builder.app import PodBuilderService
from dynamo_scaler.app import ScalerService
from dynamo_shared.api.conditions import find
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    EVENTS,
    PODS,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Service
from dynamo_watcher.app import WatcherService

from .platform import eventually, frontend, gone, graph, platform, settings, until_event, until_state, worker

ADAPTERS = DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS


def parts() -> list[Service]:
    return [WatcherService(), PodBuilderService(), ScalerService()]


@pytest.fixture(scope="module")
async def running_platform(control_plane: ControlPlane, shared_nats_server: NatsServer) -> AsyncIterator[Any]:
    async with platform(settings(control_plane.kubeconfig, shared_nats_server.url), parts()) as up:
        yield up


def adapted(component: KubeObject) -> KubeObject:
    # No GPUs: the nodes have few, and other tests need them.
    spec = component["podTemplate"]["spec"]
    containers = [{name: value for name, value in each.items() if name != "resources"} for each in spec["containers"]]
    template = {**component["podTemplate"], "spec": {**spec, "containers": containers}}
    return {**component, "podTemplate": template, "scalingAdapter": {}}


async def scale(kube: KubeClient, adapter: ObjectKey, replicas: int) -> None:
    await kube.merge_patch(ADAPTERS, adapter, {"spec": {"replicas": replicas}}, subresource="scale")


async def numbers(kube: KubeClient, namespace: str) -> dict[str, int | None]:
    """Every field that reports the worker's replicas."""
    selector = f"{labels.COMPONENT}=Worker"
    graphs = await kube.list(DYNAMO_GRAPH_DEPLOYMENTS, namespace)
    dcds = await kube.list(DYNAMO_COMPONENT_DEPLOYMENTS, namespace, label_selector=selector)
    workloads = await kube.list(DEPLOYMENTS, namespace, label_selector=selector)
    pods = await kube.list(PODS, namespace, label_selector=selector)
    adapter = await kube.get(ADAPTERS, ObjectKey(namespace, "disagg-worker"))
    return {
        "graph": next(each for each in graphs[0]["spec"]["components"] if each["name"] == "Worker").get("replicas"),
        "components": sum(each["spec"].get("replicas", 1) for each in dcds),
        "workloads": sum(each["spec"]["replicas"] for each in workloads),
        "pods": sum("deletionTimestamp" not in pod["metadata"] for pod in pods),
        "status": adapter.get("status", {}).get("replicas"),
        "graph status": graphs[0].get("status", {}).get("components", {}).get("Worker", {}).get("replicas"),
    }


async def until_all(kube: KubeClient, namespace: str, replicas: int) -> None:
    await eventually(
        lambda: numbers(kube, namespace),
        f"{replicas} everywhere",
        where=lambda answer: set(answer.values()) == {replicas},
    )


async def condition(kube: KubeClient, adapter: ObjectKey, type_: str) -> KubeObject:
    observed = find((await kube.get(ADAPTERS, adapter)).get("status", {}).get("conditions", ()), type_)
    return observed or {}


async def test_scaling_reaches_all_objects_including_to_and_from_zero(kube, namespace, running_platform):
    of = ObjectKey(namespace, "disagg-worker")
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend(), adapted(worker("Worker"))]))
    await until_state(kube, ObjectKey(namespace, "disagg"), "successful")
    for replicas in (3, 0, 2):
        await scale(kube, of, replicas)
        await until_all(kube, namespace, replicas)
    await until_state(kube, ObjectKey(namespace, "disagg"), "successful")
    adapter = await kube.get(ADAPTERS, of)
    selector = f"{labels.COMPONENT}=Worker,{labels.GRAPH_DEPLOYMENT_NAME}=disagg"
    assert adapter["status"]["selector"] == selector
    assert adapter["status"]["lastScaleTime"]
    await eventually(
        lambda: kube.list(PODS, namespace, label_selector=selector),
        "two pods: those of before end in their own time",
        where=lambda answer: len(answer) == 2,
    )
    assert [(each["type"], each["status"]) for each in adapter["status"]["conditions"]] == [
        ("Synced", "True"),
        ("Conflict", "False"),
    ]

    async def reported() -> list[str]:
        return sorted(each["note"] for each in await kube.list(EVENTS, namespace) if each["reason"] == "Scaled")

    assert await eventually(reported, "three Events", where=lambda answer: len(answer) == 3) == [
        "Scaled component Worker from 0 to 2 replicas, requested by dynamo-tests",
        "Scaled component Worker from 1 to 3 replicas, requested by dynamo-tests",
        # Kubernetes does not record who wrote a 0 through /scale.
        "Scaled component Worker from 3 to 0 replicas",
    ]


async def test_replicas_stay_when_the_adapter_is_deleted(kube, namespace, running_platform):
    key, of = ObjectKey(namespace, "disagg"), ObjectKey(namespace, "disagg-worker")
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend(), adapted(worker("Worker"))]))
    await until_state(kube, key, "successful")
    await scale(kube, of, 3)
    await until_all(kube, namespace, 3)
    components = (await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, key))["spec"]["components"]
    without = [{name: value for name, value in each.items() if name != "scalingAdapter"} for each in components]
    await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"spec": {"components": without}})
    await eventually(lambda: gone(kube, ADAPTERS, of), "no adapter")
    await until_event(kube, namespace, "AdapterDeleted")
    done = await until_state(kube, key, "successful")
    assert [each.get("replicas") for each in done["spec"]["components"]] == [1, 3]
    # From now on the graph's own number applies.
    without[1]["replicas"] = 2
    await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"spec": {"components": without}})
    await eventually(
        lambda: kube.list(DEPLOYMENTS, namespace, label_selector=f"{labels.COMPONENT}=Worker"),
        "2 replicas",
        where=lambda answer: [each["spec"]["replicas"] for each in answer] == [2],
    )


async def test_replicas_written_into_the_graph_are_a_conflict_that_names_both_writers(
    kube, namespace, running_platform
):
    key, of = ObjectKey(namespace, "disagg"), ObjectKey(namespace, "disagg-worker")
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend(), adapted(worker("Worker"))]))
    await until_state(kube, key, "successful")
    await scale(kube, of, 2)
    await until_all(kube, namespace, 2)
    operations = [{"op": "replace", "path": "/spec/components/1/replicas", "value": 4}]
    await kube.acting_as("kubectl-edit").json_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, operations)
    result = await eventually(
        lambda: condition(kube, of, "Conflict"), "a conflict", where=lambda answer: answer.get("status") == "True"
    )
    assert result["reason"] == "GraphChanged"
    assert "kubectl-edit set 4 replicas of Worker in the graph, dynamo-tests 2 in the adapter" in result["message"]

    note = (await until_event(kube, namespace, "GraphChanged"))["note"]
    assert "kubectl-edit" in note
    assert "dynamo-tests" in note
    await until_all(kube, namespace, 2)
