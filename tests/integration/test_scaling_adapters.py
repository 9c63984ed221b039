"""Scaling adapters are created and deleted as a graph says, and the scaler owns their replicas."""

from __future__ import annotations

from typing import Any

import pytest
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient

from .platform import eventually, frontend, gone, graph, until_event, until_state, worker

pytestmark = pytest.mark.usefixtures("running_platform")


def adapted(component: dict[str, Any]) -> dict[str, Any]:
    return {**component, "scalingAdapter": {}}


async def adapters(kube: KubeClient, namespace: str) -> dict[str, dict[str, Any]]:
    items = (await kube.list(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, namespace)).items
    return {each["metadata"]["name"]: each for each in items}


async def test_a_component_that_asks_for_it_has_one(kube, namespace):
    key = ObjectKey(namespace, "disagg")
    await kube.create(
        DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend(), adapted(worker("Decode", replicas=2))])
    )
    stored = await until_state(kube, key, "successful")
    (made,) = (await adapters(kube, namespace)).values()
    assert made["metadata"]["name"] == "disagg-decode"
    assert made["metadata"]["labels"] == {labels.GRAPH_DEPLOYMENT_NAME: "disagg", labels.COMPONENT: "Decode"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == stored["metadata"]["uid"]
    assert made["spec"] == {"dgdRef": {"name": "disagg", "componentName": "Decode"}, "replicas": 2}
    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, key)
    await eventually(
        lambda: gone(kube, DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, ObjectKey(namespace, "disagg-decode")),
        "the adapter goes with its graph",
    )


async def test_its_replicas_belong_to_the_one_who_scales(kube, namespace):
    key, of = ObjectKey(namespace, "disagg"), ObjectKey(namespace, "disagg-worker")
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend(), adapted(worker("Worker"))]))
    await until_state(kube, key, "successful")
    await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, of, {"spec": {"replicas": 5}}, subresource="scale")
    # What is not theirs is put right next to it, and the graph's own replicas are another field.
    await kube.merge_patch(
        DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, of, {"metadata": {"labels": {labels.COMPONENT: "X"}}}
    )
    changed = [frontend(), adapted(worker("Worker", replicas=2))]
    await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"spec": {"components": changed}})
    await until_state(kube, key, "successful")

    async def right() -> bool:
        observed = await kube.get(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, of)
        return observed["metadata"]["labels"][labels.COMPONENT] == "Worker"

    await eventually(right, "the label put right")
    observed = await kube.get(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, of)
    assert observed["spec"]["replicas"] == 5


async def test_it_goes_when_it_is_no_longer_asked_for_or_its_component_goes(kube, namespace):
    key = ObjectKey(namespace, "disagg")
    both = [frontend(), adapted(worker("One")), adapted(worker("Two"))]
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=both))
    await until_state(kube, key, "successful")
    assert set(await adapters(kube, namespace)) == {"disagg-one", "disagg-two"}
    await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"spec": {"components": [frontend(), worker("One")]}})
    await eventually(lambda: adapters(kube, namespace), "no adapter left", where=lambda answer: not answer)

    await until_event(kube, namespace, "AdapterDeleted")


async def test_one_of_another_owner_is_left_alone(kube, namespace):
    theirs = {
        **DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.type_meta,
        "metadata": {"name": "disagg-worker", "namespace": namespace},
        "spec": {"dgdRef": {"name": "other", "componentName": "Worker"}, "replicas": 3},
    }
    before = await kube.create(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, theirs)
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend(), adapted(worker("Worker"))]))
    failed = await until_state(kube, ObjectKey(namespace, "disagg"), "failed")
    assert "DynamoGraphDeploymentScalingAdapter named 'disagg-worker'" in failed["status"]["conditions"][0]["message"]
    now = await kube.get(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, ObjectKey(namespace, "disagg-worker"))
    assert now["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
