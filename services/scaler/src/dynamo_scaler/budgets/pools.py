"""Pools: components with the facts that a decision needs. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dynamo_shared.api import adapted, gpus
from dynamo_shared.api.device_claims import KnownClaims
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
    """The currently desired replicas of one component."""

    key: PoolKey
    #: v1beta1 type: frontend, worker, prefill, decode, planner, epp; empty without one.
    type: str
    current: int
    #: GPUs of one replica, as far as known.
    gpus: int
    #: Name of the scaling adapter that owns the replicas; empty: the graph itself.
    adapter: str = ""
    #: GPUs that all replicas share, by ResourceClaim.
    shared: Mapping[ObjectKey, int] = field(default_factory=dict, hash=False)
    #: Why there may be more GPUs than known: one text for each claim that cannot be counted.
    unknown: tuple[str, ...] = ()
    #: Replicas that run together or not at all: `minAvailable`, if Grove runs the graph.
    least: int = 1

    @property
    def has_gpus(self) -> bool:
        """Whether its pods have GPUs, or may have."""
        return bool(self.gpus or self.shared or self.unknown)

    def gained(self, replicas: int) -> int:
        """Additional GPUs with so many replicas, as if no other pool shared its claims; negative: GPUs that it
        releases.
        """
        together = sum(self.shared.values())
        return (replicas - self.current) * self.gpus + (bool(replicas) - bool(self.current)) * together


def pools_of(
    graph: KubeObject,
    adapters: Iterable[KubeObject],
    claims_of: Callable[[PoolKey], KnownClaims] | None = None,
) -> list[DesiredPool]:
    """The pools of a graph (v1beta1); if an adapter owns a component's replicas, the adapter's number counts.

    `claims_of` returns the known claims of a pool's pods; without it, only GPUs of containers count.
    """
    owners, least = adapted.owning(graph, adapters), adapted.least_replicas(graph)
    components = graph["spec"].get("components") or ()
    keyed = ((PoolKey(*key_of(graph), each["name"]), each) for each in components)
    return [
        _pool(key, each, owners, claims_of(key) if claims_of else None, least.get(key.component, 1))
        for key, each in keyed
    ]


def _pool(
    key: PoolKey, component: KubeObject, owners: Mapping[str, KubeObject], claims: KnownClaims | None, least: int
) -> DesiredPool:
    owner = owners.get(component["name"])
    own = component.get("replicas")
    counted = gpus.of_replica(component, claims)
    return DesiredPool(
        key,
        type=component.get("type") or "",
        current=int(owner["spec"]["replicas"]) if owner else 1 if own is None else own,
        gpus=counted.own,
        adapter=owner["metadata"]["name"] if owner else "",
        shared={ObjectKey(key.namespace, name): number for name, number in counted.shared.items()},
        unknown=tuple(map(str, counted.unknown)),
        least=least,
    )
