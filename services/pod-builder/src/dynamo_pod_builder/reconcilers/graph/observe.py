"""Reads the cache once per reconcile, into an `Observed`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import render
from dynamo_pod_builder.checkpoints import catalogue
from dynamo_pod_builder.children import OF_SETS, children, children_of, workload_of
from dynamo_pod_builder.claims import claimed, gpu_shape
from dynamo_pod_builder.pods import pods_of
from dynamo_pod_builder.reconcilers.graph.observed import Observed, Place, workload_place
from dynamo_pod_builder.registrations import Registrations
from dynamo_pod_builder.render.access.pull_secrets import NO_PULL_SECRETS
from dynamo_pod_builder.starts import starts_from_one
from dynamo_pod_builder.status.topology import is_constrained
from dynamo_pod_builder.surroundings import PullSecretLists, component_account
from dynamo_pod_builder.topology_schema import TopologySchema


@dataclass(frozen=True, slots=True)
class GraphObserver:
    """Collects everything on which a reconcile of a graph decides."""

    cache: ObjectCache
    config: Callable[[], render.RenderConfig]
    now: Callable[[], datetime]
    pull_secrets: PullSecretLists
    topology: TopologySchema
    registrations: Registrations

    def graph(self, key: ObjectKey) -> KubeObject | None:
        """The graph of a key, or None. Without admission a graph may lack a spec, which is then empty."""
        graph = self.cache.get(resources.DYNAMO_GRAPH_DEPLOYMENTS, key)
        return graph if graph is None or "spec" in graph else {**graph, "spec": {}}

    async def observe(self, graph: KubeObject) -> Observed:
        """A graph with its surroundings. Raises KubeError if secrets cannot be listed."""
        cache, config, namespace = self.cache, self.config(), objects.namespace(graph)
        specs = graph["spec"].get("components") or ()
        # Otherwise component deployments make the pods, and read the secrets themselves.
        secrets = NO_PULL_SECRETS
        if config.grove or any(map(starts_from_one, specs)):
            secrets = await self.pull_secrets.of(namespace)
        if config.grove and is_constrained(graph):
            config = replace(config, topology_fields=await self.topology.fields())
        owned = children_of(cache, graph)
        components = [each for (id_, _), each in owned.items() if id_ == resources.DYNAMO_COMPONENT_DEPLOYMENTS.id]
        sets = [each for (id_, _), each in owned.items() if id_ == resources.POD_CLIQUE_SETS.id]
        by_name = {objects.name(each): workload_of(cache, each) for each in components}
        workloads = {name: workload for name, workload in by_name.items() if workload is not None}
        cliques = {
            (resource.id, objects.name(each)): each
            for resource in OF_SETS
            for owner in sets
            for each in children(cache, resource, owner)
        }
        members = {
            place: children(cache, resources.POD_CLIQUES, each)
            for place, each in cliques.items()
            if place[0] == resources.POD_CLIQUE_SCALING_GROUPS.id
        }
        shapes = {each["name"]: gpu_shape(cache.get, namespace, each) for each in specs}
        pods = {workload_place(each): await pods_of(cache, each) for each in (*workloads.values(), *cliques.values())}
        return Observed(
            graph=graph,
            now=self.now(),
            config=config,
            children=owned,
            workloads=workloads,
            cliques=cliques,
            members=members,
            pods=pods,
            registered=await self._registered(components, workloads, pods),
            checkpoints=catalogue(cache, namespace, specs, objects.name(graph)),
            around=render.ObservedComponent(service_account=component_account(cache, namespace), pull_secrets=secrets),
            claimed={each["name"]: claimed(cache.get, namespace, each) for each in specs},
            gpus={name: shape for name, shape in shapes.items() if shape is not None},
        )

    async def _registered(
        self,
        components: Sequence[KubeObject],
        workloads: Mapping[str, KubeObject],
        pods: Mapping[Place, Sequence[KubeObject]],
    ) -> dict[str, datetime]:
        """When workers registered; empty while all are of one generation."""
        workers = [each for each in components if labels.WORKER_HASH in objects.labels(each)]
        if len({objects.labels(each)[labels.WORKER_HASH] for each in workers}) < 2:
            return {}
        running = [workloads[name] for each in workers if (name := objects.name(each)) in workloads]
        return await self.registrations.of(pods[workload_place(each)] for each in running)
