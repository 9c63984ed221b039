"""Graphs on Grove: what their PodCliqueSet became, and the replicas that Grove leaves to others to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    POD_CLIQUE_SCALING_GROUPS,
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    ObjectKey,
    Resource,
    key_of,
)
from dynamo_shared.bus.cache import ObjectCache

from dynamo_pod_builder.applying import Applier
from dynamo_pod_builder.pods import pods_of
from dynamo_pod_builder.status.graph import Generation
from dynamo_pod_builder.status.pods import look_again, troubles


def generations(cache: ObjectCache, pod_clique_set: KubeObject, now: datetime) -> dict[str, list[Generation]]:
    """What runs each component of a graph, by the component's name."""
    namespace = pod_clique_set["metadata"]["namespace"]
    stored = cache.get(POD_CLIQUE_SETS, key_of(pod_clique_set)) or pod_clique_set
    # Grove changes cliques only after it has said that it saw the change of their set.
    seen = stored.get("status", {}).get("observedGeneration")
    is_seen = seen is None or seen >= stored["metadata"].get("generation", 1)
    found = {}
    for component, resource, name, _ in _workloads(pod_clique_set):
        workload = cache.get(resource, ObjectKey(namespace, name))
        found[component] = [
            Generation(name, workload, troubles=troubles(pods_of(cache, workload), now), observed=is_seen)
        ]
    return found


def look_again_at(cache: ObjectCache, pod_clique_set: KubeObject, now: datetime) -> float | None:
    """Seconds after which one of its pods would have taken too long to start; None where none is on its way."""
    namespace = pod_clique_set["metadata"]["namespace"]
    workloads = [cache.get(resource, ObjectKey(namespace, name)) for _, resource, name, _ in _workloads(pod_clique_set)]
    return look_again((pod for workload in workloads for pod in pods_of(cache, workload)), now)


async def scale(cache: ObjectCache, applier: Applier, pod_clique_set: KubeObject) -> None:
    """Give cliques and groups the replicas of the set: Grove copies them once, and then leaves them to autoscalers."""
    namespace = pod_clique_set["metadata"]["namespace"]
    for _, resource, name, replicas in _workloads(pod_clique_set):
        workload = cache.get(resource, ObjectKey(namespace, name))
        if workload is not None and workload.get("spec", {}).get("replicas") != replicas:
            await applier.patch_replicas(resource, workload, replicas)


def order(present: Sequence[KubeObject]) -> tuple[str, ...]:
    """Names of the cliques that there are, as they stand: Grove takes another order for another graph."""
    return tuple(
        each["name"] for item in present for each in item.get("spec", {}).get("template", {}).get("cliques", ())
    )


def wanted_set(wanted: Sequence[KubeObject]) -> KubeObject | None:
    """The PodCliqueSet among a graph's children, where it runs on Grove."""
    return next((child for child in wanted if child["kind"] == POD_CLIQUE_SETS.kind), None)


def _workloads(pod_clique_set: KubeObject) -> Iterator[tuple[str, Resource, str, int]]:
    """Component, resource, name and replicas of each clique that stands alone and of each scaling group."""
    template, prefix = pod_clique_set["spec"]["template"], f"{pod_clique_set['metadata']['name']}-0"
    cliques = {each["name"]: each for each in template["cliques"]}
    grouped: set[str] = set()
    for group in template.get("podCliqueScalingGroups", ()):
        grouped.update(group["cliqueNames"])
        component = cliques[group["cliqueNames"][0]]["labels"][labels.COMPONENT]
        yield component, POD_CLIQUE_SCALING_GROUPS, f"{prefix}-{group['name']}", group["replicas"]
    for name, each in cliques.items():
        if name not in grouped:
            yield each["labels"][labels.COMPONENT], POD_CLIQUES, f"{prefix}-{name}", each["spec"]["replicas"]
