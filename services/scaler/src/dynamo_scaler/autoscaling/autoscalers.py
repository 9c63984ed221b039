"""Reconciles the autoscaler of an adapter: creates, updates and deletes it; leaves objects of other owners alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
from dynamo_shared.api import resources
from dynamo_shared.api.contracts import ComponentAutoscaling
from dynamo_shared.api.objects import KubeObject, of_uid
from dynamo_shared.api.registry.annotations import LAST_APPLIED_HASH
from dynamo_shared.api.resources import HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS, Resource, key_of
from dynamo_shared.kube import KubeClient, coverage
from dynamo_shared.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from dynamo_shared.kube.field_ownership import claim_fields
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.state import ObjectCache

from dynamo_scaler import events
from dynamo_scaler.adapters.status import ConditionState
from dynamo_scaler.autoscaling.desired import InvalidAutoscalingError, desired_autoscaling
from dynamo_scaler.autoscaling.render import autoscaler, described

KINDS: tuple[Resource, ...] = (HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS)
#: A refusing policy may change, and a name become free, without an event. Seconds.
RETRY = 30.0


@dataclass(frozen=True, slots=True)
class AutoscalerState:
    """The state of an adapter's autoscaler; without `condition` none is desired. `again`: seconds until the next reconcile."""

    condition: ConditionState | None = None
    again: float | None = None


@dataclass(frozen=True, slots=True)
class Autoscalers:
    """The autoscalers that belong to adapters."""

    kube: KubeClient
    cache: ObjectCache
    announcer: Announcer
    is_served: Callable[[Resource], bool]

    async def ensure(self, graph: KubeObject, adapter: KubeObject) -> AutoscalerState:
        """Create, update or delete the autoscaler of an adapter as desired. Raises KubeError: again later."""
        try:
            settings = desired_autoscaling(graph, adapter["spec"]["dgdRef"]["componentName"])
        except InvalidAutoscalingError as error:
            # An existing autoscaler stays: its removal was not requested.
            return AutoscalerState(ConditionState(False, "InvalidAutoscaling", str(error)))
        if settings is not None and settings.triggers and not self.is_served(SCALED_OBJECTS):
            return AutoscalerState(
                ConditionState(False, "KedaNotInstalled", "triggers need KEDA, which this cluster does not have"), RETRY
            )
        try:
            return await self._ensure(adapter, settings)
        except _Taken as error:
            return AutoscalerState(ConditionState(False, "NameTaken", str(error)), RETRY)
        except (Invalid, Forbidden) as error:
            return AutoscalerState(ConditionState(False, "RefusedByApiServer", str(error)), RETRY)

    async def _ensure(self, adapter: KubeObject, settings: ComponentAutoscaling | None) -> AutoscalerState:
        desired = stamped(autoscaler(adapter, settings)) if settings is not None else None
        for resource, other in self._present(adapter):
            if desired is None or resources.of(desired) != resource:
                # Before another kind takes its place: two of them would undo each other's work.
                await self._delete(adapter, resource, other)
        if desired is None:
            return AutoscalerState()
        await self._make(adapter, desired)
        return AutoscalerState(ConditionState(True, desired["kind"], described(desired)))

    async def _delete(self, adapter: KubeObject, resource: Resource, obj: KubeObject) -> None:
        key, uid = key_of(obj), obj["metadata"]["uid"]
        try:
            await self.kube.delete(resource, key, uid=uid)
        except (NotFound, Conflict):
            # Another client deleted it, or another object has its name by now: it is gone, but not by this service.
            self.cache.remove(resource, key, uid)
            return
        self.cache.remove(resource, key, uid)
        self.announcer.announce(adapter, events.AUTOSCALER_DELETED(f"Deleted {described(obj)}"))

    async def _make(self, adapter: KubeObject, desired: KubeObject) -> None:
        resource, key = resources.of(desired), key_of(desired)
        observed = self.cache.get(resource, key)
        if observed is None:
            try:
                self.cache.put(resource, await self.kube.create(resource, desired))
            except AlreadyExists:
                observed = await self.kube.get(resource, key)
            else:
                self.announcer.announce(adapter, events.AUTOSCALER_CREATED(f"Created {described(desired)}"))
                return
        if not _is_of(adapter, observed):
            raise _Taken(
                f"a {resource.kind} named {key.name!r} exists already and belongs to another owner: "
                "delete or rename it, or remove the request for an autoscaler"
            )
        if _hash_of(observed) == _hash_of(desired) and not coverage.missing(desired, observed):
            return
        await claim_fields(self.kube, resource, key)
        self.cache.put(resource, await self.kube.apply(resource, of_uid(desired, observed["metadata"]["uid"])))
        self.announcer.announce(adapter, events.AUTOSCALER_UPDATED(f"Updated {described(desired)}"))

    def _present(self, adapter: KubeObject) -> Iterator[tuple[Resource, KubeObject]]:
        for resource in KINDS:
            obj = self.cache.get(resource, key_of(adapter))
            if obj is not None and _is_of(adapter, obj) and "deletionTimestamp" not in obj["metadata"]:
                yield resource, obj


class _Taken(Exception):
    """An object of the desired name has another owner."""


def stamped(desired: KubeObject) -> KubeObject:
    """`desired` with the hash of itself as an annotation, which changes with every desired field."""
    digest = hashlib.sha256(msgspec.json.encode(desired, order="sorted")).hexdigest()[:16]
    return {**desired, "metadata": {**desired["metadata"], "annotations": {LAST_APPLIED_HASH: digest}}}


def _hash_of(obj: KubeObject) -> str:
    return str(obj["metadata"].get("annotations", {}).get(LAST_APPLIED_HASH, ""))


def _is_of(adapter: KubeObject, obj: KubeObject) -> bool:
    owners = obj["metadata"].get("ownerReferences", ())
    return any(owner.get("controller") and owner["uid"] == adapter["metadata"]["uid"] for owner in owners)
