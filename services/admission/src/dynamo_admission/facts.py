"""The facts about the cluster that rules need, read periodically so that no review waits for them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from dynamo_shared.api import namespace_scope
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import LEADER_WORKER_SETS, LEASES
from dynamo_shared.api.untrusted.reading import entries, mapping
from dynamo_shared.api.validation import Facts
from dynamo_shared.kube import Forbidden, KubeClient, NotServed
from dynamo_shared.kube.discovery import groups
from dynamo_shared.runtime import Settings

from dynamo_admission.review import World
from dynamo_admission.rights import CLUSTER_TOPOLOGIES, CLUSTER_TOPOLOGY_BINDINGS

GROVE, INFERENCE = "grove.io", "inference.networking.k8s.io"
LWS = LEADER_WORKER_SETS.group
_TRUE = frozenset({"1", "t", "true"})


def first_world(settings: Settings, environ: Mapping[str, str] = os.environ) -> World:
    """The facts from settings and environment, without calls to the cluster."""
    restricted = settings.namespace.restricted
    facts = Facts(
        operators=operators(settings, environ),
        checkpoints=settings.checkpoint.enabled,
        gms_snapshot=environ.get("DYN_OPERATOR_ALLOW_GMS_SNAPSHOT", "").lower() in _TRUE,
        cluster_wide=not restricted,
        gpu_discovery=settings.gpu.discovery_enabled,
    )
    platform = settings.platform
    return World(facts, platform_version=platform.version, repository=platform.planner.image_repository)


async def read(world: World, kube: KubeClient, settings: Settings, now: datetime) -> World:
    """The same with the current facts of the cluster: at most three small lists. KubeError if the API server does not
    answer.
    """
    served = await groups(kube)
    kind, topologies = await _topologies(kube, served[GROVE]) if GROVE in served else (CLUSTER_TOPOLOGIES.kind, None)
    grove = settings.orchestrators.grove.enabled
    facts = replace(
        world.facts,
        grove=GROVE in served if grove is None else grove,
        leader_worker_sets=settings.orchestrators.lws.enabled is not False and LWS in served,
        inference_pools=INFERENCE in served,
        topologies=topologies,
        topology_kind=kind,
    )
    trusted = settings.namespace.scope.trusted_namespaces
    held = await _held(kube, trusted, now) if facts.cluster_wide and trusted else frozenset()
    return replace(world, facts=facts, held=held)


def domains(topology: KubeObject) -> tuple[str, ...]:
    """Names of a topology's levels, from broad to narrow."""
    return tuple(str(level.get("domain", "")) for _, level in entries(mapping(topology.get("spec")).get("levels")))


def operators(settings: Settings, environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Usernames of the platform's own services."""
    namespace, account = environ.get("POD_NAMESPACE", ""), environ.get("POD_SERVICE_ACCOUNT", "")
    own = (f"system:serviceaccount:{namespace}:{account}",) if namespace and account else ()
    return frozenset((*settings.platform.admission.operators, *own))


async def _topologies(kube: KubeClient, versions: list[str]) -> tuple[str, Mapping[str, tuple[str, ...]] | None]:
    """The kind of topologies that the cluster serves, and all topologies; None if they cannot be read.

    If the cluster serves both kinds, the older definition is a leftover of an upgrade of Grove.
    """
    for each in (CLUSTER_TOPOLOGY_BINDINGS, CLUSTER_TOPOLOGIES):
        try:
            items = await kube.list(each.at(versions[0]))
        except NotServed:
            continue
        except Forbidden:
            return each.kind, None
        return each.kind, {item["metadata"]["name"]: domains(item) for item in items}
    return CLUSTER_TOPOLOGIES.kind, None


async def _held(kube: KubeClient, trusted: Sequence[str], now: datetime) -> frozenset[str]:
    """Namespaces that another platform holds, among the namespaces in which the configuration trusts a Lease."""
    leases = await kube.list(LEASES, field_selector=f"metadata.name={namespace_scope.NAME}")
    live = (lease["metadata"]["namespace"] for lease in leases if namespace_scope.is_live(lease, now))
    return frozenset(namespace for namespace in live if namespace_scope.is_trusted(namespace, trusted))
