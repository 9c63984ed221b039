"""Writes decisions to Kubernetes. The replicas, the record of the command and the intents go in one write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import LAST_SCALED, SCALING_INTENTS
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import KubeClient, get_if_present
from dynamo_shared.kube.errors import Conflict, Invalid, NotFound
from dynamo_shared.state import ObjectCache

from dynamo_scaler.budgets import intents
from dynamo_scaler.budgets.intents import Intent
from dynamo_scaler.budgets.pools import DesiredPool
from dynamo_scaler.commands import records
from dynamo_scaler.commands.records import ScalingRecord

Intents = Mapping[str, Intent | None]
"""Intents to remember by component; None: remove it. Other components stay as they are."""


class StaleError(Exception):
    """The inputs of the decision changed: the cache has the new state, and the request must be decided again."""


@dataclass(frozen=True, slots=True)
class Write:
    """New replicas of one pool, and their record."""

    pool: DesiredPool
    replicas: int
    record: ScalingRecord


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes under the scaler's field manager. Puts the API server's answers into the cache."""

    kube: KubeClient
    cache: ObjectCache

    async def adapter(self, write: Write) -> None:
        """Set an adapter's replicas. StaleError; KubeError if the API server refuses or does not answer."""
        key = ObjectKey(write.pool.key.namespace, write.pool.adapter)
        resource = DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
        adapter = self.cache.get(resource, key)
        if adapter is None:
            raise StaleError
        component = write.pool.key.component
        kept = records.read(adapter)
        text = records.written({component: records.following(kept.get(component), write.record)})
        patch = {
            "metadata": {"resourceVersion": adapter["metadata"]["resourceVersion"], "annotations": {LAST_SCALED: text}},
            "spec": {"replicas": write.replicas},
        }
        try:
            self.cache.put(resource, await self.kube.merge_patch(resource, key, patch))
        except (Conflict, NotFound) as error:
            await self.read_again(resource, key)
            raise StaleError from error

    async def graph(self, key: ObjectKey, writes: Sequence[Write], remembered: Intents) -> None:
        """Set the replicas of components of a graph, and its intents; writes nothing if both are already correct."""
        graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        if graph is None:
            raise StaleError
        annotations = _changed_annotations(graph, writes, remembered)
        if not writes and not annotations:
            return
        operations = [
            *_preconditions(graph, writes),
            *_annotation_operations(graph, annotations),
            *_replicas(graph, writes),
        ]
        try:
            written = await self.kube.json_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, operations)
        except NotFound as error:
            self.cache.remove(DYNAMO_GRAPH_DEPLOYMENTS, key, graph["metadata"]["uid"])
            raise StaleError from error
        except (Conflict, Invalid) as error:
            now = await self.read_again(DYNAMO_GRAPH_DEPLOYMENTS, key)
            if now is None or _decision_inputs(now) != _decision_inputs(graph):
                raise StaleError from error
            raise
        self.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, written)

    async def read_again(self, resource: Resource, key: ObjectKey) -> KubeObject | None:
        """The current object from the API server, also put into the cache; None if it is gone."""
        obj, old = await get_if_present(self.kube, resource, key), self.cache.get(resource, key)
        if obj is not None:
            self.cache.put(resource, obj)
        elif old is not None:
            self.cache.remove(resource, key, old["metadata"]["uid"])
        return obj


def _changed_annotations(graph: KubeObject, writes: Sequence[Write], remembered: Intents) -> dict[str, str | None]:
    """Annotations to change; None: remove it."""
    annotations: dict[str, str | None] = {}
    if writes:
        components = {each["name"] for each in graph["spec"].get("components") or ()}
        kept = {name: record for name, record in records.read(graph).items() if name in components}
        for write in writes:
            name = write.pool.key.component
            kept[name] = records.following(kept.get(name), write.record)
        annotations[LAST_SCALED] = records.written(kept)
    before = intents.read(graph)
    after = {name: intent for name, intent in {**before, **remembered}.items() if intent is not None}
    if after != before:
        annotations[SCALING_INTENTS] = intents.written(after)
    return annotations


def _decision_inputs(graph: KubeObject) -> tuple[Any, ...]:
    """The parts of a graph that a decision and its patch rely on; without the status, which changes all the time."""
    metadata = graph["metadata"]
    annotations = metadata.get("annotations") or {}
    return (
        metadata["uid"],
        metadata["generation"],
        annotations.get(LAST_SCALED),
        annotations.get(SCALING_INTENTS),
        bool(annotations),
    )


def _preconditions(graph: KubeObject, writes: Sequence[Write]) -> list[KubeObject]:
    metadata = graph["metadata"]
    tests = [{"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}]
    if writes:
        tests.append({"op": "test", "path": "/metadata/generation", "value": metadata["generation"]})
    return tests


def _annotation_operations(graph: KubeObject, annotations: Mapping[str, str | None]) -> list[KubeObject]:
    if not annotations:
        return []
    current = graph["metadata"].get("annotations")
    operations: list[KubeObject] = []
    if not current:
        # Another client may have annotated it meanwhile: then this test fails, and the request is decided again.
        operations.append({"op": "test", "path": "/metadata/annotations", "value": None})
        operations.append({"op": "add", "path": "/metadata/annotations", "value": {}})
    for name, text in annotations.items():
        place = f"/metadata/annotations/{name.replace('~', '~0').replace('/', '~1')}"
        # The previous owner of the key may have written it last, and the cache may not have that write yet.
        operations.append({"op": "test", "path": place, "value": (current or {}).get(name)})
        if text is not None:
            operations.append({"op": "add", "path": place, "value": text})
        elif name in (current or {}):
            operations.append({"op": "remove", "path": place})
    return operations


def _replicas(graph: KubeObject, writes: Sequence[Write]) -> list[KubeObject]:
    places = {each["name"]: index for index, each in enumerate(graph["spec"].get("components") or ())}
    return [
        {"op": "add", "path": f"/spec/components/{places[each.pool.key.component]}/replicas", "value": each.replicas}
        for each in writes
    ]


def in_order(writes: Sequence[Write]) -> list[list[Write]]:
    """The units of writes (each adapter, each graph): units that release GPUs come first, so the total is never
    exceeded.
    """
    units: dict[tuple[ObjectKey, str], list[Write]] = {}
    for each in writes:
        units.setdefault((each.pool.key.graph_key, each.pool.adapter), []).append(each)
    return sorted(units.values(), key=_gained)


def _gained(unit: Sequence[Write]) -> tuple[int, int]:
    """Additional GPUs and replicas of a unit; replicas, because some pools have unknown GPUs."""
    return sum(each.pool.gained(each.replicas) for each in unit), sum(
        each.replicas - each.pool.current for each in unit
    )
