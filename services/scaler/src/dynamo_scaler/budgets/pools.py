"""Pools: components with what a decision needs to know of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dynamo_shared.api import adapted, gpus
from dynamo_shared.api.device_claims import Templates, no_templates
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, key_of


class PoolKey(NamedTuple):
    """A component of a graph deployment."""

    namespace: str
    graph: str
    component: str

    @property
    def graph_key(self) -> ObjectKey:
        """The graph deployment."""
        return ObjectKey(self.namespace, self.graph)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.graph} {self.component}"


@dataclass(frozen=True, slots=True)
class DesiredPool:
    """The replicas of one component, as desired now."""

    key: PoolKey
    #: v1beta1 type: frontend, worker, prefill, decode, planner, epp; empty where it has none.
    type: str
    current: int
    #: GPUs of one replica; 0 where it has none, or an unknown number.
    gpus: int
    #: Name of the scaling adapter that owns the replicas; empty: the graph itself.
    adapter: str = ""

    @property
    def total(self) -> int:
        """GPUs of all desired replicas."""
        return self.current * self.gpus


def pools_of(
    graph: KubeObject, adapters: Iterable[KubeObject], templates: Templates = no_templates
) -> list[DesiredPool]:
    """The pools of a graph (v1beta1); where an adapter owns a component's replicas, its number counts.

    `templates` are the ResourceClaimTemplates of its namespace, which say how many GPUs pods claim.
    """
    owners = adapted.owning(graph, adapters)
    key = key_of(graph)
    components = graph["spec"].get("components") or ()
    return [_pool(PoolKey(*key, each["name"]), each, owners, templates) for each in components]


def _pool(key: PoolKey, component: KubeObject, owners: Mapping[str, KubeObject], templates: Templates) -> DesiredPool:
    owner = owners.get(component["name"])
    own = component.get("replicas")
    return DesiredPool(
        key,
        type=component.get("type") or "",
        current=int(owner["spec"]["replicas"]) if owner else 1 if own is None else own,
        gpus=gpus.of_replica(component, templates),
        adapter=owner["metadata"]["name"] if owner else "",
    )
