"""Grove in tests: its definitions on demand, and the actions of its controller, which does not run here."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    POD_CLIQUE_SCALING_GROUPS,
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.discovery import install_crds
from dynamo_shared.kube.errors import NotFound

from tests.building.definitions import definition_of
from tests.building.objects import controlled_by, object_of

from .platform import eventually, gone

DEFINITIONS = [definition_of(each) for each in (POD_CLIQUES, POD_CLIQUE_SCALING_GROUPS, POD_CLIQUE_SETS)]


@asynccontextmanager
async def grove_definitions(kube: KubeClient) -> AsyncIterator[None]:
    """Serve Grove's kinds during the block.

    Wait for their end, because a definition in deletion would take a new one with it.
    """
    await install_crds(kube, DEFINITIONS)
    try:
        yield
    finally:
        keys = [ObjectKey("", definition["metadata"]["name"]) for definition in DEFINITIONS]
        for key in keys:
            await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, key)
        for key in keys:
            await eventually(partial(gone, kube, CUSTOM_RESOURCE_DEFINITIONS, key), f"{key.name} gone")


async def realize(kube: KubeClient, namespace: str, *, ready: bool = True) -> None:
    """Do Grove's work for every PodCliqueSet of a namespace: create cliques with all their pods, ready or not."""
    for item in await kube.list(POD_CLIQUE_SETS, namespace):
        for clique in item["spec"]["template"]["cliques"]:
            await _clique(kube, item, clique, ready=ready)
        status = {"observedGeneration": item["metadata"]["generation"], "replicas": 1}
        await _reported(kube, POD_CLIQUE_SETS, item, status)


async def _clique(kube: KubeClient, owner: KubeObject, clique: KubeObject, *, ready: bool) -> None:
    metadata = owner["metadata"]
    key = ObjectKey(metadata["namespace"], f"{metadata['name']}-0-{clique['name']}")
    try:
        there = await kube.get(POD_CLIQUES, key)
    except NotFound:
        spec = {"replicas": clique["spec"]["replicas"]}
        made = object_of(POD_CLIQUES, key.name, key.namespace, ownerReferences=[controlled_by(owner)], spec=spec)
        there = await kube.create(POD_CLIQUES, made)
    desired = there["spec"]["replicas"]
    counts = {"replicas": desired, "updatedReplicas": desired, "readyReplicas": desired if ready else 0}
    await _reported(kube, POD_CLIQUES, there, {"observedGeneration": there["metadata"]["generation"], **counts})


async def _reported(kube: KubeClient, resource: Resource, obj: KubeObject, status: KubeObject) -> None:
    metadata = obj["metadata"]
    await kube.apply_status(resource, object_of(resource, metadata["name"], metadata["namespace"], status=status))
