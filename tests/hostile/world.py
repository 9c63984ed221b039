"""The environment of attacks: the tenant's rights and namespace, a quiet namespace of another tenant, and clean-up."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CLUSTER_ROLES, DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, ROLE_BINDINGS, Resource

from tests.integration.platform import eventually
from tests.stage.api import Answer, Api
from tests.stage.cluster import Stage, namespace

from .farm import Farm
from .objects import graph

TENANT, QUIET = "tenant", "quiet"
#: Namespaces of the tenant for concurrent attacks.
TOGETHER = tuple(f"tenant-{number}" for number in range(8))
#: Limit for the deletion of an attack's objects. Seconds.
GONE_WITHIN = 90.0
#: Limit from the creation of the probe graph to its success, on a very busy machine. Seconds.
PROBE_WITHIN = 60.0
CHECK_EVERY = 0.02

#: Deleted in this order: owners before what they own.
SWEPT: tuple[Resource, ...] = (
    resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    resources.DYNAMO_GRAPH_DEPLOYMENTS,
    resources.DYNAMO_COMPONENT_DEPLOYMENTS,
    resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    resources.DYNAMO_MODELS,
    resources.DYNAMO_CHECKPOINTS,
    resources.SNAPSHOT_JOBS,
    resources.POD_SNAPSHOTS,
    resources.DYNAMO_WORKER_METADATAS,
    resources.DYNAMO_DEPLOYMENTS,
    resources.LEASES,
    resources.HORIZONTAL_POD_AUTOSCALERS,
    resources.JOBS,
    resources.DEPLOYMENTS,
    Resource("apps", "v1", "replicasets", "ReplicaSet"),
    resources.PODS,
    resources.SECRETS,
    resources.CONFIG_MAPS,
    resources.SERVICES,
    Resource("", "v1", "endpoints", "Endpoints"),
    resources.ENDPOINT_SLICES,
    resources.INGRESSES,
    resources.PERSISTENT_VOLUME_CLAIMS,
    resources.SERVICE_ACCOUNTS,
    resources.ROLE_BINDINGS,
    resources.ROLES,
)
#: Objects that Kubernetes creates in every namespace, and the tests in the tenant's.
KEPT = frozenset({"default", "kube-root-ca.crt", "hostile-edit"})


@dataclass(frozen=True, slots=True)
class Probed:
    """Seconds of a graph in the quiet namespace, from its creation.

    Controllers of Kubernetes and KWOK have their own queues, which all tenants share: their time from the Deployment to
    its pods counts in `whole` alone.
    """

    children: float
    """until its Deployment exists"""
    successful: float
    """`children`, plus the time from the available Deployment to `successful`: the platform's part"""
    whole: float
    """until it is successful"""


@dataclass(slots=True)
class World:
    """The stage, the tenant, and their servers."""

    stage: Stage
    tenant: Api
    farm: Farm
    prometheus: Farm
    """acts as the platform's own Prometheus"""
    namespace: str = TENANT
    answers: Counter[int] = field(default_factory=Counter)
    last_refusal: str = ""
    graphs: int = 400
    """graphs of a storm: as many as the API server of this machine stores in about ten seconds"""
    memory: dict[str, Any] = field(default_factory=dict)
    """data that an attack keeps for its check"""
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    @property
    def admin(self) -> Api:
        """A client with all rights, for checks and clean-up."""
        return self.stage.admin

    async def create(self, obj: KubeObject) -> Answer:
        """Create an object as the tenant."""
        return self.note(await self.tenant.create(obj))

    async def create_all(self, objects: list[KubeObject]) -> list[Answer]:
        """Create many objects as the tenant."""
        return [self.note(answer) for answer in await self.tenant.create_all(objects)]

    async def patch(self, resource: Resource, name: str, patch: KubeObject, subresource: str = "") -> Answer:
        """Change an object as the tenant."""
        return self.note(await self.tenant.patch(resource, self.namespace, name, patch, subresource))

    def note(self, answer: Answer) -> Answer:
        """Record an answer to the tenant."""
        self.answers[answer.status] += 1
        if not answer.ok:
            self.last_refusal = str(answer)
        return answer

    def within(self, namespace: str) -> World:
        """The same world with another namespace of the tenant, and separate records of answers."""
        return replace(self, namespace=namespace, answers=Counter(), last_refusal="", memory={})

    def refused(self) -> int:
        """The number of refused requests of the tenant; without requests, one counts as accepted."""
        return sum(count for status, count in self.answers.items() if 400 <= status < 500) or -1

    async def status_of(self, resource: Resource, name: str) -> KubeObject:
        """The status of an object of the tenant; empty while it has no status."""
        observed = await self.admin.get(resource, self.namespace, name)
        return (observed or {}).get("status") or {}

    async def probe(self) -> Probed:
        """A small graph in the quiet namespace, from its creation to `successful`; it is deleted afterwards.

        AssertionError if it does not become successful.
        """
        name = f"probe-{next(self._numbers)}"
        began = time.monotonic()
        answer = await self.admin.create(graph(QUIET, name))
        assert answer.ok, f"a graph in another namespace was refused: {answer}"
        children = available = 0.0
        try:
            while True:
                spent = time.monotonic() - began
                if not available and (there := await self.admin.get(DEPLOYMENTS, QUIET, f"{name}-frontend")):
                    children = children or time.monotonic() - began
                    if there.get("status", {}).get("availableReplicas"):
                        available = time.monotonic() - began
                observed = await self.admin.get(DYNAMO_GRAPH_DEPLOYMENTS, QUIET, name) or {}
                status = observed.get("status") or {}
                if status.get("state") == "successful":
                    whole = time.monotonic() - began
                    children, available = children or whole, available or whole
                    return Probed(children, children + whole - available, whole)
                assert spent < PROBE_WITHIN, f"a graph in another namespace is {status or 'without a status'}"
                await asyncio.sleep(CHECK_EVERY)
        finally:
            await self.admin.delete(DYNAMO_GRAPH_DEPLOYMENTS, QUIET, name)

    async def sweep(self) -> dict[str, int]:
        """Delete everything in the tenant's namespace; returns what was deleted last.

        AssertionError if something remains.
        """
        deadline = time.monotonic() + GONE_WITHIN
        last: dict[str, int] = {}
        while True:
            left: dict[str, int] = {}
            listed = await asyncio.gather(
                *(self.admin.list(resource, self.namespace, "limit=500") for resource in SWEPT)
            )
            for resource, each in zip(SWEPT, listed, strict=True):
                items = [item for item in each if item["metadata"]["name"] not in KEPT]
                if not items:
                    continue
                left[resource.plural] = len(items)
                await self._remove(resource, items)
            if not left:
                return last
            last = left
            assert time.monotonic() < deadline, f"left in the tenant's namespace: {left}"
            await asyncio.sleep(0.3)

    async def _remove(self, resource: Resource, items: list[KubeObject]) -> None:
        if len(items) > 20 and not any(item["metadata"]["name"] in KEPT for item in items):
            keep = ",".join(f"metadata.name!={name}" for name in sorted(KEPT))
            await self.admin.request(
                "DELETE", f"{resource.path(self.namespace)}?gracePeriodSeconds=0&fieldSelector={keep}"
            )
        else:
            going = [item for item in items if "deletionTimestamp" not in item["metadata"] or resource.plural == "pods"]
            await asyncio.gather(
                *(
                    self.admin.request(
                        "DELETE", resource.path(self.namespace, item["metadata"]["name"]) + "?gracePeriodSeconds=0"
                    )
                    for item in going
                )
            )
        for item in items:
            foreign = [each for each in item["metadata"].get("finalizers", ()) if each.startswith("hostile.")]
            if foreign:
                others = [each for each in item["metadata"]["finalizers"] if each not in foreign]
                await self.admin.patch(
                    resource, self.namespace, item["metadata"]["name"], {"metadata": {"finalizers": others or None}}
                )


@asynccontextmanager
async def world(stage: Stage, farm: Farm, prometheus: Farm) -> AsyncIterator[World]:
    """Two namespaces, and a tenant with the ClusterRole `edit` in the first."""
    admin = stage.admin
    for name in (TENANT, QUIET, *TOGETHER):
        await admin.create(namespace(name))
    # The platform's charts would grant it by an aggregated role.
    metadata = {"name": "dynamo-edit", "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}}
    rules = [{"apiGroups": ["nvidia.com"], "resources": ["*"], "verbs": ["*"]}]
    await admin.create({**CLUSTER_ROLES.type_meta, "metadata": metadata, "rules": rules})
    for name in (TENANT, *TOGETHER):
        metadata = {"name": "hostile-edit", "namespace": name}
        role_ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
        subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}]
        await admin.create({**ROLE_BINDINGS.type_meta, "metadata": metadata, "roleRef": role_ref, "subjects": subjects})
    async with Api(stage.plane.user_kubeconfig("mallory")) as tenant:
        up = World(stage, tenant, farm, prometheus)

        async def may() -> bool:
            return (await tenant.request("GET", DYNAMO_GRAPH_DEPLOYMENTS.path(TENANT))).ok

        await eventually(may, "the ClusterRole edit has the platform's kinds")
        up.graphs = int(os.environ.get("DYNAMO_HOSTILE_GRAPHS", "0")) or await _storable(tenant)
        yield up


async def _storable(tenant: Api) -> int:
    """Graphs that can be stored in ten seconds, estimated by a dry run; their children take as long again each."""
    path, count = f"{DYNAMO_GRAPH_DEPLOYMENTS.path(TENANT)}?dryRun=All", 40
    began = time.monotonic()
    await asyncio.gather(*(tenant.request("POST", path, graph(TENANT, f"dry-{number}")) for number in range(count)))
    return max(40, min(400, int(10 * count / (time.monotonic() - began) / 3)))
