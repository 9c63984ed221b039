"""The caller's view of the cluster: namespaces, capabilities, rights."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, NamedTuple

from aiohttp import web
from dynamo_shared.aio import Joined
from dynamo_shared.api.device_claims import KnownClaims
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    EVENTS,
    GROUP,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    NODES,
    POD_CLIQUE_SETS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SCALED_OBJECTS,
    SERVICES,
    ObjectKey,
    Resource,
)
from dynamo_shared.api.validation.request import GPU_SKUS
from dynamo_shared.kube import Forbidden, KubeClient, NotServed
from dynamo_shared.lru import LruCache

from dynamo_dynadmin.api import fit
from dynamo_dynadmin.api.collection_reader import CollectionReader
from dynamo_dynadmin.api.kinds import DEPLOYMENTS, KINDS
from dynamo_dynadmin.api.pages import pages
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.identity.access import ResourceAttributes
from dynamo_dynadmin.state.hub import Hub

_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
#: Maximum namespaces in one answer.
_NAMESPACES = 5000
#: Seconds for which a list of all pods is cached for the caller with whose rights it was read; and the number of cached
#: callers.
REMEMBERED, _CALLERS = 5.0, 256
#: A caller, and whether the caller may list all pods and claims: the result is never shown to another caller.
_Rights = tuple[str, bool, bool | None]


class _GpuUsage(NamedTuple):
    """The GPUs in use, as visible to one caller, and the time of reading."""

    used: fit.UsedGpus
    read_at: float


class Cluster:
    """Answers questions that are not about a single object."""

    def __init__(self, hub: Hub, reading: CollectionReader, kube: KubeClient, version: str) -> None:
        self._hub = hub
        self._reading = reading
        self._kube = kube
        self._version = version
        self._usages: LruCache[_Rights, _GpuUsage] = LruCache(_CALLERS)
        self._reading_usage: Joined[_Rights, fit.UsedGpus] = Joined()

    async def namespaces(self, call: Call) -> web.StreamResponse:
        """Namespaces in which the caller may list graph deployments."""
        try:
            listed, are_more = await call.kube.list_names(NAMESPACES, limit=_NAMESPACES)
            names = set(listed)
            if are_more:
                call.warnings.append(f"only the first {_NAMESPACES} namespaces are checked")
        except Forbidden:
            # For a caller who may not list namespaces: those with objects that the caller may list.
            names = set().union(*(self._hub.entries(kind.resource).namespaces() for kind in KINDS))
        allowed = await self._reading.where(call, ResourceAttributes("list", DEPLOYMENTS.resource), names)
        return call.answer({"items": [{"name": name} for name in allowed]})

    async def capabilities(self, call: Call) -> web.StreamResponse:
        """Served versions, orchestrators, and GPUs by kind and node if the caller may list nodes."""
        nodes, exact = await self.gpu_nodes(call)
        by_product: dict[str, dict[str, int]] = defaultdict(lambda: {"nodes": 0, "total": 0, "free": 0})
        for node in nodes or ():
            row = by_product[node.product or "unknown"]
            row["nodes"] += 1
            row["total"] += node.total
            row["free"] += node.free if node.schedulable else 0
        return call.answer(
            {
                "apiVersions": {kind.collection: kind.resource.api_version for kind in KINDS},
                "served": await self._served(),
                "platformVersion": self._version,
                "gpuSkus": list(GPU_SKUS),
                "orchestrators": {
                    "grove": self._hub.entries(POD_CLIQUE_SETS).served,
                    "leaderWorkerSet": self._hub.entries(LEADER_WORKER_SETS).served,
                    "keda": self._hub.entries(SCALED_OBJECTS).served,
                    "inferencePools": self._hub.entries(INFERENCE_POOLS).served,
                    "gatewayApi": self._hub.entries(HTTP_ROUTES).served,
                },
                "gpus": None
                if nodes is None
                else {
                    "exact": exact,
                    "kinds": [{"product": name, **row} for name, row in sorted(by_product.items())],
                    "nodes": [fit.node_row(each) for each in nodes],
                },
            }
        )

    async def gpu_nodes(self, call: Call) -> tuple[list[fit.NodeRoom] | None, bool]:
        """Nodes with GPUs, None if the caller may not list nodes; and whether all GPUs in use were counted."""
        if not await self._reading.may(call, ResourceAttributes("list", NODES)) or not self._hub.entries(NODES).synced:
            return None, False
        pods = await self._reading.may(call, ResourceAttributes("list", PODS))
        slices = await self._hub.entries(RESOURCE_SLICES).objects()
        # If no driver publishes devices, no claim has any.
        claims = await self._reading.may(call, ResourceAttributes("list", RESOURCE_CLAIMS)) if slices else None
        used = await self._used(call, pods=pods, claims=claims)
        nodes = await self._hub.entries(NODES).objects()
        return fit.nodes_of(nodes, slices, used), pods and claims is not False

    async def _used(self, call: Call, *, pods: bool, claims: bool | None) -> fit.UsedGpus:
        """The GPUs in use. `pods`: whether the caller may list all pods; otherwise, the platform's pods are counted.
        `claims`: the same for claims; None: without claims.
        """
        key = call.caller.key, pods, claims
        usage = self._usages.touch(key)
        if usage is not None and time.monotonic() - usage.read_at <= REMEMBERED:
            return usage.used

        async def read() -> fit.UsedGpus:
            now = time.monotonic()
            used = fit.used_by((), ())
            # Pods of other owners also use GPUs.
            selector = "status.phase!=Succeeded,status.phase!=Failed"
            async for running in self._parts(call, PODS, selector, from_server=pods):
                used.counted.update(fit.used_by(running, ()).counted)
            if claims is not None:
                async for allocated in self._parts(call, RESOURCE_CLAIMS, "", from_server=claims):
                    used.devices.update(fit.used_by((), allocated).devices)
            self._usages[key] = _GpuUsage(used, now)
            return used

        return await self._reading_usage.result(key, read)

    async def _parts(
        self, call: Call, resource: Resource, selector: str, *, from_server: bool
    ) -> AsyncGenerator[list[KubeObject]]:
        """All objects of a resource, or those of the platform. Only one part is in memory at a time."""
        if from_server:
            async for page in pages(call.kube, resource, field_selector=selector):
                yield page.get("items") or []
        else:
            for each in list(self._hub.entries(resource).all()):
                yield [each.obj]
                # Other requests get a turn: there may be ten thousand.
                await asyncio.sleep(0)

    async def claims(self, call: Call) -> KnownClaims | None:
        """The claims of the call's namespace; None if the caller may not read them."""
        namespace = call.namespace
        for resource in (RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS):
            if not await self._reading.may(call, ResourceAttributes("get", resource, namespace)):
                return None

        def lookup(resource: Resource, name: str) -> KubeObject | None:
            entry = self._hub.entries(resource).get(ObjectKey(namespace, name))
            return None if entry is None else entry.obj

        return KnownClaims(partial(lookup, RESOURCE_CLAIM_TEMPLATES), partial(lookup, RESOURCE_CLAIMS))

    async def me(self, call: Call) -> web.StreamResponse:
        """The caller's identity."""
        identity = call.caller.identity
        return call.answer(
            {
                "user": identity.user,
                "groups": list(identity.groups),
                "expires": call.caller.expires,
                "session": call.caller.by_session,
            }
        )

    async def access(self, call: Call) -> web.StreamResponse:
        """The caller's rights in a namespace: by collection and verb, and for operations without a collection."""
        namespace = call.namespace
        others: dict[Any, ResourceAttributes] = {
            "chat": ResourceAttributes("create", SERVICES, namespace, subresource="proxy"),
            "events": ResourceAttributes("list", EVENTS, namespace),
            "logs": ResourceAttributes("get", PODS, namespace, subresource="log"),
            "pods": ResourceAttributes("list", PODS, namespace),
            "nodes": ResourceAttributes("list", NODES),
        }
        of_kinds = {
            (each, verb): ResourceAttributes(verb, each.resource, namespace) for each in KINDS for verb in _VERBS
        }
        allowed = await self._reading.allowed(call, {**of_kinds, **others})
        return call.answer(
            {
                "namespace": namespace,
                "collections": {each.collection: {verb: allowed[each, verb] for verb in _VERBS} for each in KINDS},
                **{name: allowed[name] for name in others},
            }
        )

    async def _served(self) -> list[str]:
        try:
            group = await self._kube.read(f"/apis/{GROUP}")
        except NotServed:
            return []
        return [each["groupVersion"] for each in group.get("versions") or ()]
