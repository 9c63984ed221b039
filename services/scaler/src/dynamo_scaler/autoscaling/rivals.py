"""The autoscalers of one adapter: several autoscalers, and the HPA that KEDA creates for a ScaledObject."""

from collections.abc import Iterator

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
    ObjectKey,
    key_of,
)
from dynamo_shared.api.scale_targets import scaled_adapter
from dynamo_shared.state import ObjectCache

from dynamo_scaler.adapters.status import ConditionState

BY_TARGET = "target"
SEVERAL = "SeveralAutoscalers"
#: A ScaledObject before the HPA that KEDA creates for it.
_KINDS = (SCALED_OBJECTS, HORIZONTAL_POD_AUTOSCALERS)


def index(cache: ObjectCache) -> None:
    """Index autoscalers by the adapter that they scale."""
    for resource in _KINDS:
        cache.add_index(resource, BY_TARGET, lambda each: list(_target(each)))


def autoscalers_of(cache: ObjectCache, adapter: ObjectKey) -> dict[str, KubeObject]:
    """The autoscalers of an adapter, by kind and name: `HorizontalPodAutoscaler web`. Without those that are being
    deleted.
    """
    return {
        f"{resource.kind} {objects.name(each)}": each
        for resource in _KINDS
        for each in cache.by_index(resource, BY_TARGET, str(adapter))
        if not objects.is_deleting(each) and not _is_kedas(each)
    }


def hpas_of(cache: ObjectCache, scaled_object: KubeObject) -> list[KubeObject]:
    """The HPAs that KEDA created for a ScaledObject of an adapter: KEDA scales with an HPA, and not all releases report
    its trouble.
    """
    adapter = ObjectKey(objects.namespace(scaled_object), scaled_adapter(scaled_object))
    hpas = cache.by_index(HORIZONTAL_POD_AUTOSCALERS, BY_TARGET, str(adapter))
    return [each for each in hpas if objects.controls(scaled_object, each)]


def autoscaler_conflict(cache: ObjectCache, adapter: KubeObject) -> ConditionState | None:
    """The trouble of an adapter with several autoscalers; None if there is at most one."""
    every = autoscalers_of(cache, key_of(adapter))
    if len(every) < 2:
        return None
    component = adapter["spec"]["dgdRef"]["componentName"]
    advice = "; ".join(
        f"to delete {name}, remove the request for it"
        for name, each in every.items()
        if objects.controls(adapter, each)
    )
    return ConditionState(
        False,
        SEVERAL,
        f"{' and '.join(sorted(every))} scale {component}, and overwrite each other: keep one of them"
        + (f"; {advice}" if advice else ""),
    )


def _is_kedas(autoscaler: KubeObject) -> bool:
    """Whether KEDA created an HPA for a ScaledObject; such an HPA has the ScaledObject's labels."""
    owner = objects.controller_of(autoscaler)
    return owner is not None and owner.get("kind") == SCALED_OBJECTS.kind


def _target(autoscaler: KubeObject) -> Iterator[str]:
    if name := scaled_adapter(autoscaler):
        yield str(ObjectKey(objects.namespace(autoscaler), name))
