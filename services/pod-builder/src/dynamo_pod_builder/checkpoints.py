"""Checkpoints in the cache: by identity, those that components ask for, and who is reconciled again when one changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.labels import CHECKPOINT_SOURCE, JOB_NAME
from dynamo_shared.api.resources import (
    DAEMON_SETS,
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    JOBS,
    PODS,
    ObjectKey,
    Resource,
    key_of,
)
from dynamo_shared.api.v1alpha1 import identity_of
from dynamo_shared.bus.cache import ObjectCache
from dynamo_shared.runtime.tasks import Task

from dynamo_pod_builder.render.checkpoint import names
from dynamo_pod_builder.render.checkpoint.identity import identity_hash
from dynamo_pod_builder.routing import BuilderConcern
from dynamo_pod_builder.starts import NO_CHECKPOINTS, Catalogue, hash_of, starts_from_one
from dynamo_pod_builder.status.pods import trouble_of

_IDENTITY = "identity"


def index(cache: ObjectCache) -> None:
    """Index checkpoints by identity."""
    cache.add_index(DYNAMO_CHECKPOINTS, _IDENTITY, _identities)


def catalogue(cache: ObjectCache, namespace: str, specs: Iterable[KubeObject]) -> Catalogue:
    """What the cache has of the checkpoints that components ask for; `specs` are these as they are stored."""
    desired = [spec["experimental"]["checkpoint"] or {} for spec in specs if starts_from_one(spec)]
    if not desired:
        return NO_CHECKPOINTS
    refs = {each["checkpointRef"] for each in desired if each.get("checkpointRef")}
    identities = (identity_of({"spec": each}) for each in desired)
    digests = {identity_hash(identity) for identity in identities if identity is not None}
    named = {name: cache.get(DYNAMO_CHECKPOINTS, ObjectKey(namespace, name)) for name in refs}
    identified = {digest: of_identity(cache, namespace, digest) for digest in digests}
    return Catalogue(
        {name: obj for name, obj in named.items() if obj is not None},
        {digest: obj for digest, obj in identified.items() if obj is not None},
        cache.list(DAEMON_SETS, namespace),
    )


def of_identity(cache: ObjectCache, namespace: str, digest: str) -> KubeObject | None:
    """The checkpoint of an identity in a namespace: the first that was created, as later ones are refused."""
    candidates = cache.by_index(DYNAMO_CHECKPOINTS, _IDENTITY, f"{namespace}/{digest}")
    staying = [each for each in candidates if not objects.is_deleting(each)]
    return min(staying, key=lambda each: (objects.created_at(each), objects.name(each)), default=None)


def woken_by(
    cache: ObjectCache, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None
) -> Iterator[Task]:
    """Tasks that follow from a change of a checkpoint, its pod, or where checkpoints are kept, next to those of `routing`."""
    if resource == PODS:
        yield from _of_source(cache, key.namespace, old, new)
        return
    if resource == DAEMON_SETS:
        yield from (
            Task(BuilderConcern.CHECKPOINT, key_of(each)) for each in cache.list(DYNAMO_CHECKPOINTS, key.namespace)
        )
    elif resource != DYNAMO_CHECKPOINTS or _outlook(old) == _outlook(new):
        return
    elif new is None and old is not None:
        # Another one of its identity was refused while it was there.
        for each in cache.by_index(DYNAMO_CHECKPOINTS, _IDENTITY, f"{key.namespace}/{hash_of(old)}"):
            yield Task(BuilderConcern.CHECKPOINT, key_of(each))
    for graph in cache.list(DYNAMO_GRAPH_DEPLOYMENTS, key.namespace):
        if any(starts_from_one(each) for each in graph.get("spec", {}).get("components", ())):
            yield Task(BuilderConcern.GRAPH, key_of(graph))
    for component in cache.list(DYNAMO_COMPONENT_DEPLOYMENTS, key.namespace):
        if starts_from_one(component.get("spec", {})):
            yield Task(BuilderConcern.COMPONENT, key_of(component))


def _of_source(cache: ObjectCache, namespace: str, old: KubeObject | None, new: KubeObject | None) -> Iterator[Task]:
    """The checkpoint that a pod is the source of, where the pod's trouble changes."""
    labels = objects.labels(new or old or {})
    if CHECKPOINT_SOURCE not in labels or (old and trouble_of(old)) == (new and trouble_of(new)):
        return
    job = cache.get(JOBS, ObjectKey(namespace, labels.get(JOB_NAME, "")))
    owner = objects.controller_of(job) if job is not None else None
    if owner is not None:
        yield Task(BuilderConcern.CHECKPOINT, ObjectKey(namespace, owner["name"]))


def _outlook(checkpoint: KubeObject | None) -> tuple[object, ...] | None:
    if checkpoint is None:
        return None
    status = checkpoint.get("status", {})
    return (objects.uid(checkpoint), names.version_of(checkpoint), status.get("phase"), status.get("jobName"))


def _identities(checkpoint: KubeObject) -> Iterable[str]:
    digest = hash_of(checkpoint)
    return (f"{objects.namespace(checkpoint)}/{digest}",) if digest else ()
