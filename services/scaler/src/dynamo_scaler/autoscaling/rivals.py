"""The autoscalers of one adapter: several autoscalers, and the HPA that KEDA creates for a ScaledObject."""

from collections.abc import Iterator
from typing import NamedTuple, cast

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
    ObjectKey,
    Resource,
    key_of,
)
from dynamo_shared.api.scale_targets import scaled_adapter
from dynamo_shared.state import ObjectCache

from dynamo_scaler.adapters.status import ConditionState

BY_TARGET, _KNOWN = "target", "known"
SEVERAL = "SeveralAutoscalers"
#: A ScaledObject before the HPA that KEDA creates for it.
_KINDS = (SCALED_OBJECTS, HORIZONTAL_POD_AUTOSCALERS)


class _AutoscalerRecord(NamedTuple):
    """What is read of each autoscaler, unpacked: users may point hundreds of large ones at one adapter."""

    controller: str
    """uid of its controller"""
    is_kedas: bool
    """whether KEDA created it for a ScaledObject; such an HPA has the ScaledObject's labels"""
    is_deleting: bool

    @classmethod
    def of(cls, autoscaler: KubeObject) -> "_AutoscalerRecord":
        owner = objects.controller_of(autoscaler) or {}
        is_kedas = owner.get("kind") == SCALED_OBJECTS.kind
        return cls(str(owner.get("uid", "")), is_kedas, objects.is_deleting(autoscaler))


def index(cache: ObjectCache) -> None:
    """Index autoscalers by the adapter that they scale."""
    for resource in _KINDS:
        cache.add_index(resource, BY_TARGET, lambda each: list(_target(each)))
        cache.add_record(resource, _KNOWN, _AutoscalerRecord.of)


def autoscalers_of(cache: ObjectCache, adapter: ObjectKey) -> dict[str, str]:
    """The autoscalers of an adapter, by kind and name (`HorizontalPodAutoscaler web`): the uid of each one's controller.
    Without those that are being deleted.
    """
    return {
        f"{resource.kind} {key.name}": known.controller
        for resource in _KINDS
        for key, known in _known(cache, resource, adapter)
        if not known.is_deleting and not known.is_kedas
    }


def hpas_of(cache: ObjectCache, scaled_object: KubeObject) -> Iterator[KubeObject]:
    """The HPAs that KEDA created for a ScaledObject of an adapter, one by one: KEDA scales with an HPA, and not all
    releases report its trouble.
    """
    adapter = ObjectKey(objects.namespace(scaled_object), scaled_adapter(scaled_object))
    for key, known in _known(cache, HORIZONTAL_POD_AUTOSCALERS, adapter):
        if known.controller == objects.uid(scaled_object):
            hpa = cache.get(HORIZONTAL_POD_AUTOSCALERS, key)
            if hpa is not None:
                yield hpa


def autoscaler_conflict(cache: ObjectCache, adapter: KubeObject) -> ConditionState | None:
    """The trouble of an adapter with several autoscalers; None if there is at most one."""
    every = autoscalers_of(cache, key_of(adapter))
    if len(every) < 2:
        return None
    component = adapter["spec"]["dgdRef"]["componentName"]
    advice = "; ".join(
        f"to delete {name}, remove the request for it"
        for name, controller in every.items()
        if controller == objects.uid(adapter)
    )
    return ConditionState(
        False,
        SEVERAL,
        f"{' and '.join(sorted(every))} scale {component}, and overwrite each other: keep one of them"
        + (f"; {advice}" if advice else ""),
    )


def _known(cache: ObjectCache, resource: Resource, adapter: ObjectKey) -> list[tuple[ObjectKey, _AutoscalerRecord]]:
    keys = cache.keys_by_index(resource, BY_TARGET, str(adapter))
    return [(key, cast("_AutoscalerRecord", cache.record(resource, _KNOWN, key))) for key in keys]


def _target(autoscaler: KubeObject) -> Iterator[str]:
    if name := scaled_adapter(autoscaler):
        yield str(ObjectKey(objects.namespace(autoscaler), name))
