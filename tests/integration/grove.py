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

from .platform import eventually, gone


def definition_of(resource: Resource) -> KubeObject:
    names = {"kind": resource.kind, "listKind": f"{resource.kind}List"}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    return {
        **CUSTOM_RESOURCE_DEFINITIONS.type_meta,
        "metadata": {"name": resource.id},
        "spec": {
            "group": resource.group,
            "names": {**names, "plural": resource.plural, "singular": resource.kind.lower()},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


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
        reference = {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
        there = await kube.create(
            POD_CLIQUES,
            {
                **POD_CLIQUES.type_meta,
                "metadata": {"name": key.name, "namespace": key.namespace, "ownerReferences": [reference]},
                "spec": {"replicas": clique["spec"]["replicas"]},
            },
        )
    desired = there["spec"]["replicas"]
    counts = {"replicas": desired, "updatedReplicas": desired, "readyReplicas": desired if ready else 0}
    await _reported(kube, POD_CLIQUES, there, {"observedGeneration": there["metadata"]["generation"], **counts})


async def _reported(kube: KubeClient, resource: Resource, obj: KubeObject, status: KubeObject) -> None:
    metadata = obj["metadata"]
    await kube.apply_status(
        resource,
        {
            **resource.type_meta,
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            "status": status,
        },
    )
