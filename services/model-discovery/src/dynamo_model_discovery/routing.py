"""Which models to reconcile when an object changes, and the indexes for that."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dynamo_shared.api.base_models import base_model_hash
from dynamo_shared.api.objects import KubeObject, with_essential_metadata
from dynamo_shared.api.registry.annotations import LOADED_ADAPTER
from dynamo_shared.api.resources import DYNAMO_MODELS, ENDPOINT_SLICES, PODS, ObjectKey, Resource, key_of
from dynamo_shared.runtime.routes import CacheChange, TaskRoute, differs
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.cache import ObjectCache

from dynamo_model_discovery.lora.names import NAME_INDEX, claims, first, name_of
from dynamo_model_discovery.models.workers import base_model_of, has_left, index_value, matters

BASE_MODEL_INDEX = "base-model"

_METADATA = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "labels"}
)
_STATUS = frozenset({"phase", "podIP", "podIPs", "conditions", "containerStatuses", "initContainerStatuses"})


def index(cache: ObjectCache) -> None:
    """Index models, pods and slices by namespace and base model, and trim pods and models."""
    cache.keep_only(PODS, trimmed)
    cache.keep_only(DYNAMO_MODELS, lambda model: with_essential_metadata(model, LOADED_ADAPTER))
    cache.add_index(PODS, BASE_MODEL_INDEX, base_model_of)
    cache.add_index(ENDPOINT_SLICES, BASE_MODEL_INDEX, base_model_of)
    cache.add_index(DYNAMO_MODELS, BASE_MODEL_INDEX, served_by)
    cache.add_index(DYNAMO_MODELS, NAME_INDEX, claims)


def trimmed(pod: KubeObject) -> KubeObject:
    """A pod with only the fields that this service reads, to save memory."""
    metadata = {field: value for field, value in pod["metadata"].items() if field in _METADATA}
    status = {field: value for field, value in pod.get("status", {}).items() if field in _STATUS}
    return {**pod, "metadata": metadata, "spec": {}, "status": status}


def served_by(model: KubeObject) -> tuple[str, ...]:
    """The index values of pods and slices of a DynamoModel's base model."""
    base = (model.get("spec") or {}).get("baseModelName")
    return (index_value(model["metadata"]["namespace"], base_model_hash(base)),) if base else ()


def routes(cache: ObjectCache) -> tuple[TaskRoute, ...]:
    """Routes to the models whose spec, workers or rivals (models with the same name and base) changed."""

    def rivals(change: CacheChange) -> Iterator[Task]:
        """The first other model with the name: it may get the name now, or must wait for it."""
        for value in _values(change, claims):
            others = (each for each in cache.by_index(DYNAMO_MODELS, NAME_INDEX, value) if key_of(each) != change.key)
            if (rival := first(others, name_of(value))) is not None:
                yield Task.of(DYNAMO_MODELS, key_of(rival))

    def served(change: CacheChange) -> Iterator[Task]:
        for value in _values(change, base_model_of):
            for key in cache.keys_by_index(DYNAMO_MODELS, BASE_MODEL_INDEX, value):
                yield Task.of(DYNAMO_MODELS, key)

    return (
        TaskRoute(DYNAMO_MODELS, when=differs(_input)),
        TaskRoute(DYNAMO_MODELS, to=rivals, when=differs(_input)),
        TaskRoute(PODS, to=served, when=differs(matters)),
        TaskRoute(ENDPOINT_SLICES, to=served),
    )


def on_departure(cache: ObjectCache, gone: Callable[[str], None]) -> None:
    """Call `gone` with the uid of each pod that has left its address, or that another replica owns now."""

    def changed(resource: Resource, _: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        if resource == PODS and old is not None and new is not None and has_left(old, new):
            gone(new["metadata"]["uid"])

    def released(resource: Resource, obj: KubeObject) -> None:
        if resource == PODS:
            gone(obj["metadata"]["uid"])

    cache.on_change(changed)
    cache.on_leave(released)


def _values(change: CacheChange, values: Callable[[KubeObject], Iterable[str]]) -> set[str]:
    return {value for obj in (change.old, change.new) if obj is not None for value in values(obj)}


def _input(model: KubeObject) -> tuple[Any, ...]:
    """What this service's own writes of status leave unchanged."""
    metadata = model["metadata"]
    return (
        metadata["uid"],
        model.get("spec"),
        metadata.get("generation"),
        metadata.get("deletionTimestamp"),
        metadata.get("finalizers"),
        metadata.get("annotations"),
    )
