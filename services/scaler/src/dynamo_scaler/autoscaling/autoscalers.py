"""Reconciles the autoscaler of an adapter: creates, updates and deletes it; leaves objects of other owners alone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from dynamo_shared.api import objects, resources
from dynamo_shared.api.contracts import ComponentAutoscaling
from dynamo_shared.api.objects import KubeObject, of_uid
from dynamo_shared.api.resources import HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS, Resource, key_of
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from dynamo_shared.kube.field_ownership import claim_fields
from dynamo_shared.kube.overruled import OverruledWrites
from dynamo_shared.kube.stamps import difference, stamped
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.state import ObjectCache

from dynamo_scaler import events
from dynamo_scaler.adapters.status import ConditionState, reported_autoscaling
from dynamo_scaler.autoscaling.desired import InvalidAutoscalingError, desired_autoscaling
from dynamo_scaler.autoscaling.health import counts_in, trouble
from dynamo_scaler.autoscaling.render import autoscaler, described, taking_over
from dynamo_scaler.autoscaling.rivals import autoscaler_conflict, hpas_of

KINDS: tuple[Resource, ...] = (HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS)
#: Interval of retries: a refusing policy may change, or a name become free, without an event. Seconds.
RETRY = 30.0
#: How long KEDA may take to notice that an HPA is gone. Seconds.
SOON = 1.0
REFUSED = "RefusedByApiServer"


@dataclass(frozen=True, slots=True)
class AutoscalerState:
    """The state of an adapter's autoscaler. Without `condition`, no autoscaler is desired, and users have not created
    several.
    """

    condition: ConditionState | None = None
    again: float | None = None
    """seconds until the next reconcile"""


@dataclass(frozen=True, slots=True)
class Autoscalers:
    """The autoscalers that belong to adapters."""

    kube: KubeClient
    cache: ObjectCache
    announcer: Announcer
    is_served: Callable[[Resource], bool]
    now: Callable[[], datetime]
    overruled: OverruledWrites
    cluster_authentications: frozenset[str] = frozenset()
    """ClusterTriggerAuthentications of KEDA that graphs may name"""

    async def ensure(self, graph: KubeObject, adapter: KubeObject) -> AutoscalerState:
        """Create, update or delete the autoscaler of an adapter as desired. Raises KubeError; then retry later."""
        try:
            component = adapter["spec"]["dgdRef"]["componentName"]
            settings = desired_autoscaling(graph, component, self.cluster_authentications)
        except InvalidAutoscalingError as error:
            # An existing autoscaler stays: its removal was not requested.
            return self._failed(adapter, "InvalidAutoscaling", str(error), again=None)
        if settings is not None and settings.triggers and not self.is_served(SCALED_OBJECTS):
            return self._failed(
                adapter, "KedaNotInstalled", "triggers need KEDA, which is not installed in this cluster", again=RETRY
            )
        try:
            return await self._ensure(adapter, settings)
        except _NameInUse as error:
            return self._failed(adapter, error.reason, str(error), again=RETRY)
        except (Invalid, Forbidden) as error:
            return self._failed(adapter, REFUSED, str(error), again=RETRY)

    async def _ensure(self, adapter: KubeObject, settings: ComponentAutoscaling | None) -> AutoscalerState:
        """The desired kind is created before the other is deleted: if the creation fails, the component keeps its
        autoscaler.
        """
        if settings is None:
            await self._delete_others(adapter, None)
            return AutoscalerState(autoscaler_conflict(self.cache, adapter))
        desired = stamped(autoscaler(adapter, settings))
        resource = resources.of(desired)
        if resource == SCALED_OBJECTS and any(kind != resource for kind, _ in self._present(adapter)):
            return await self._take_over(adapter, desired)
        await self._make(adapter, desired)
        await self._delete_others(adapter, resource)
        return self._made(adapter, desired)

    async def _take_over(self, adapter: KubeObject, desired: KubeObject) -> AutoscalerState:
        """Replace an HPA with a ScaledObject. KEDA's webhook refuses a ScaledObject, and its changes, while the target
        has an HPA.

        So the HPA is deleted first, after the API server and KEDA have admitted the ScaledObject in a dry run.
        """
        resource, key = resources.of(desired), key_of(desired)
        observed = self.cache.get(resource, key)
        if observed is None:
            try:
                await self.kube.create(resource, taking_over(desired, hpa=key.name), dry_run=True)
            except AlreadyExists:
                observed = await self.kube.get(resource, key)
        if observed is not None:
            _check_name(adapter, resource, observed)
        await self._delete_others(adapter, resource)
        try:
            await self._make(adapter, desired)
        except (Invalid, Forbidden):
            # KEDA may notice the deletion only now. If the cause is different, the next reconcile reports it.
            return AutoscalerState(reported_autoscaling(adapter), SOON)
        return self._made(adapter, desired)

    def _made(self, adapter: KubeObject, desired: KubeObject) -> AutoscalerState:
        """The desired autoscaler exists; it may still report trouble."""
        if (rivals := autoscaler_conflict(self.cache, adapter)) is not None:
            return AutoscalerState(rivals)
        fine = ConditionState(True, desired["kind"], described(desired))
        observed = self.cache.get(resources.of(desired), key_of(desired))
        for each in () if observed is None else chain((observed,), hpas_of(self.cache, observed)):
            if (known := trouble(each)) is not None:
                wait = counts_in(each, self.now())
                return AutoscalerState(fine, wait) if wait else AutoscalerState(known)
        return AutoscalerState(fine)

    def _failed(self, adapter: KubeObject, reason: str, message: str, *, again: float | None) -> AutoscalerState:
        """The desired autoscaler could not be created; the message names the autoscaler that the component has
        meanwhile.
        """
        if kept := " and ".join(described(obj) for _, obj in self._present(adapter)):
            message = f"{message}; until then {kept} stays"
        return AutoscalerState(ConditionState(False, reason, message), again)

    async def _delete_others(self, adapter: KubeObject, desired: Resource | None) -> None:
        """Delete the adapter's autoscalers of all other kinds: two autoscalers would undo each other's work."""
        for resource, obj in list(self._present(adapter)):
            if resource != desired:
                await self._delete(adapter, resource, obj)

    async def _delete(self, adapter: KubeObject, resource: Resource, obj: KubeObject) -> None:
        key, uid = key_of(obj), obj["metadata"]["uid"]
        try:
            await self.kube.delete(resource, key, uid=uid)
        except (NotFound, Conflict):
            # Another client deleted it, or another object now has its name: it is gone, but this service did not delete
            # it.
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
        _check_name(adapter, resource, observed)
        if not difference(desired, observed) or self.overruled.have(desired, observed):
            return
        await claim_fields(self.kube, resource, key)
        applied = await self.kube.apply(resource, of_uid(desired, observed["metadata"]["uid"]))
        self.cache.put(resource, applied)
        self.overruled.compare(desired, applied)
        self.announcer.announce(adapter, events.AUTOSCALER_UPDATED(f"Updated {described(desired)}"))

    def _present(self, adapter: KubeObject) -> Iterator[tuple[Resource, KubeObject]]:
        for resource in KINDS:
            obj = self.cache.get(resource, key_of(adapter))
            if obj is not None and objects.controls(adapter, obj) and not objects.is_deleting(obj):
                yield resource, obj


class _NameInUse(Exception):
    """An object of the desired name is not the adapter's, or is being deleted. `reason`: reason of the condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def _check_name(adapter: KubeObject, resource: Resource, observed: KubeObject) -> None:
    """_NameInUse if the object of the desired name is not, and cannot become, the adapter's autoscaler."""
    name = observed["metadata"]["name"]
    if not objects.controls(adapter, observed):
        raise _NameInUse(
            "NameTaken",
            f"a {resource.kind} named {name!r} exists already and belongs to another owner: "
            "delete or rename it, or remove the request for an autoscaler",
        )
    if objects.is_deleting(observed):
        waits = ", ".join(observed["metadata"].get("finalizers") or ()) or "the API server"
        raise _NameInUse(
            "BeingDeleted",
            f"the former {resource.kind} {name} is being deleted; the scaler creates a new one when {waits} has finished",
        )
