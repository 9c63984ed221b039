"""Builders of graphs and of the objects that a reconcile observes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dynamo_pod_builder import render
from dynamo_pod_builder.reconcilers.graph.observed import Observed, place_of, workload_place
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DEPLOYMENTS, POD_CLIQUES, Resource

from tests.building.objects import object_of
from tests.unit.render.building import CONFIG, component, graph

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def stored_graph(*components: KubeObject, status: KubeObject | None = None, **fields: Any) -> KubeObject:
    """A graph as the API server stores it."""
    obj = graph(*components, **fields)
    obj["metadata"] |= {"generation": 1, "resourceVersion": "1"}
    return obj if status is None else {**obj, "status": status}


def observed(
    *children: KubeObject,
    of: KubeObject | None = None,
    config: render.RenderConfig = CONFIG,
    workloads: Mapping[str, KubeObject] | None = None,
    cliques: Iterable[KubeObject] = (),
    pods: Mapping[str, Sequence[KubeObject]] | None = None,
    **fields: Any,
) -> Observed:
    """What is observed of a graph: `children`, workloads by component deployment, cliques, and pods by their names."""
    results = {place_of(each): each for each in cliques}
    of_pods = pods or {}
    running = [*(workloads or {}).values(), *results.values()]
    return Observed(
        graph=of if of is not None else stored_graph(component()),
        now=NOW,
        config=config,
        children={place_of(each): each for each in children},
        workloads=workloads or {},
        cliques=results,
        pods={workload_place(each): of_pods.get(each["metadata"]["name"], ()) for each in running},
        **fields,
    )


def desiring(*children: KubeObject, **fields: Any) -> Plan:
    """A plan with these desired objects."""
    return Plan(**fields).with_children(children)


def stored(child: KubeObject, created: str = "2026-01-01T00:00:00Z", **fields: Any) -> KubeObject:
    """A rendered object as the API server stores it."""
    metadata = {**child["metadata"], "uid": f"uid-of-{child['metadata']['name']}", "creationTimestamp": created}
    return {**child, "metadata": {**metadata, "generation": 1, "resourceVersion": "1"}, **fields}


def deployment(name: str, replicas: int = 1, ready: int | None = None, **spec: Any) -> KubeObject:
    """A Deployment with `ready` serving pods; by default all of them serve."""
    serving = replicas if ready is None else ready
    status = {**_counts(replicas, serving), "conditions": [{"type": "Available", "status": str(serving >= replicas)}]}
    uid = f"uid-of-deployment-{name}"
    return object_of(DEPLOYMENTS, name, uid=uid, generation=1, spec={"replicas": replicas, **spec}, status=status)


def clique(name: str, replicas: int = 1, ready: int | None = None, resource: Resource = POD_CLIQUES) -> KubeObject:
    """A clique or a scaling group with `ready` serving replicas."""
    status = _counts(replicas, replicas if ready is None else ready)
    uid = f"uid-of-{name}"
    return object_of(resource, name, uid=uid, generation=1, spec={"replicas": replicas}, status=status)


def _counts(replicas: int, serving: int) -> KubeObject:
    counts = {"replicas": replicas, "updatedReplicas": replicas, "readyReplicas": serving, "availableReplicas": serving}
    return {"observedGeneration": 1, **counts}
