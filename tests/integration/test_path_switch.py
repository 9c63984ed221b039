"""Graphs switch between Deployments and Grove while they serve: the old workloads are deleted last."""

from typing import Any

import pytest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import ENABLE_GROVE
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    POD_CLIQUE_SETS,
    SERVICES,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import KubeClient

from .grove import grove_definitions, realize
from .platform import eventually, frontend, gone, graph, until_object, until_state, until_status, worker

COMPONENTS = [frontend(), worker("Decode", "decode"), {**worker("Other"), "modelRef": {"name": "Qwen/Qwen3-0.6B"}}]


pytestmark = pytest.mark.usefixtures("running_platform")


async def uids(kube: KubeClient, resource: Resource, namespace: str) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in await kube.list(resource, namespace)}


def owner_kind(obj: dict[str, Any]) -> str:
    (reference,) = obj["metadata"]["ownerReferences"]
    return str(reference["kind"])


async def until_there(kube: KubeClient, resource: Resource, key: ObjectKey) -> None:
    await until_object(kube, resource, key, "is there")


async def until_owned(kube: KubeClient, key: ObjectKey, kind: str) -> dict[str, Any]:
    return await until_object(kube, SERVICES, key, f"of a {kind}", lambda service: owner_kind(service) == kind)


async def until_kinds(kube: KubeClient, key: ObjectKey, expected: set[str]) -> None:
    """Wait until a graph serves on exactly these kinds of workloads."""

    def right(status: KubeObject) -> bool:
        kinds = {each["componentKind"] for each in status.get("components", {}).values()}
        return status["state"] == "successful" and kinds == expected

    await until_status(kube, DYNAMO_GRAPH_DEPLOYMENTS, key, f"serves on {expected}", right)


async def set_grove(kube: KubeClient, key: ObjectKey, expected: bool) -> None:
    note = {"metadata": {"annotations": {ENABLE_GROVE: None if expected else "false"}}}
    await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, note)


async def test_to_grove_when_it_is_installed_and_back_by_annotation(kube, namespace):
    key, service = ObjectKey(namespace, "disagg"), ObjectKey(namespace, "disagg-frontend")
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=COMPONENTS))
    await until_state(kube, key, "successful")
    first = await kube.get(SERVICES, service)
    assert owner_kind(first) == "DynamoComponentDeployment"
    deployments = await uids(kube, DEPLOYMENTS, namespace)
    models = {name: uid for name, uid in (await uids(kube, SERVICES, namespace)).items() if "model" in name}
    assert len(models) == 1

    async with grove_definitions(kube):
        await until_there(kube, POD_CLIQUE_SETS, key)
        taken = await until_owned(kube, service, "DynamoGraphDeployment")
        await realize(kube, namespace, ready=False)

        def both_ways(status: KubeObject) -> bool:
            names = status.get("components", {}).get("Frontend", {}).get("componentNames")
            return status["state"] == "pending" and names == ["disagg-0-frontend", "disagg-frontend"]

        await until_status(kube, DYNAMO_GRAPH_DEPLOYMENTS, key, "both kinds of workloads exist and count", both_ways)
        assert await uids(kube, DEPLOYMENTS, namespace) == deployments

        await realize(kube, namespace)
        await until_kinds(kube, key, {"PodClique"})

        async def old_way_is_gone() -> bool:
            return not (
                await uids(kube, DEPLOYMENTS, namespace) or await uids(kube, DYNAMO_COMPONENT_DEPLOYMENTS, namespace)
            )

        await eventually(old_way_is_gone, "component deployments and Deployments are deleted")

        async def only_services_of_grove() -> bool:
            result = await uids(kube, SERVICES, namespace)
            return {*result} == {"disagg-frontend", "disagg-decode", "disagg-other", *models}

        await eventually(only_services_of_grove, "Services of the old generation are deleted")
        now = await kube.get(SERVICES, service)
        assert now["metadata"]["uid"] == taken["metadata"]["uid"] == first["metadata"]["uid"]
        assert now["spec"]["clusterIP"] == first["spec"]["clusterIP"]
        assert now["spec"]["selector"] == first["spec"]["selector"]
        assert (await uids(kube, SERVICES, namespace)).items() >= models.items()

        await set_grove(kube, key, False)
        await until_owned(kube, service, "DynamoComponentDeployment")
        await eventually(lambda: gone(kube, POD_CLIQUE_SETS, key), "the set is deleted once Deployments serve")
        await until_kinds(kube, key, {"Deployment"})
        now = await kube.get(SERVICES, service)
        assert now["metadata"]["uid"] == first["metadata"]["uid"]
        assert now["metadata"]["labels"] == first["metadata"]["labels"]
        assert (await uids(kube, SERVICES, namespace)).items() >= models.items()
        await eventually(
            lambda: gone(kube, SERVICES, ObjectKey(namespace, "disagg-decode")), "Grove's Service is deleted"
        )
