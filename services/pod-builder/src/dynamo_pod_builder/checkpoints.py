"""Checkpoints in the cache: by identity, those that components request, and which objects a change of one triggers.

Checkpoints are packed, because the specification of a Job may have a megabyte. What graphs read of them is a small
record: a tenant may have thousands of checkpoints of one identity.
"""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.labels import CHECKPOINT_SOURCE, GRAPH_DEPLOYMENT_NAME, JOB_NAME
from dynamo_shared.api.resources import (
    DAEMON_SETS,
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    JOBS,
    POD_SNAPSHOTS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    SNAPSHOT_JOBS,
    ObjectKey,
)
from dynamo_shared.api.snapshots import snapshot_name
from dynamo_shared.api.untrusted.reading import items, mapping
from dynamo_shared.api.v1alpha1 import identity_of
from dynamo_shared.runtime.routes import CacheChange, TaskRoute, indexed, namespace_of
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder.pods import changes_trouble
from dynamo_pod_builder.reconcilers.pod_snapshot import changes_owner
from dynamo_pod_builder.render.checkpoint.identity import identity_hash
from dynamo_pod_builder.starts import NO_CHECKPOINTS, Catalogue, KnownCheckpoint, starts_from_one

_IDENTITY, _KNOWN, _STARTS, _GRAPH, _SNAPSHOT = "identity", "known", "starts", "graph", "snapshot"


def index(cache: ObjectCache) -> None:
    """Index checkpoints by identity, their users by namespace and name, SnapshotJobs by graph and PodSnapshot.

    A tenant may have thousands of graphs, and change several times a second what they start from.
    """
    cache.add_index(DYNAMO_CHECKPOINTS, _IDENTITY, _identities)
    cache.add_record(DYNAMO_CHECKPOINTS, _KNOWN, KnownCheckpoint.of)
    cache.add_index(DYNAMO_GRAPH_DEPLOYMENTS, _STARTS, lambda each: _named(each, _spec(each).get("components")))
    cache.add_index(DYNAMO_COMPONENT_DEPLOYMENTS, _STARTS, lambda each: _named(each, [_spec(each)]))
    cache.add_index(SNAPSHOT_JOBS, _GRAPH, lambda job: (f"{objects.namespace(job)}/{_graph_of(job)}",))
    cache.add_index(SNAPSHOT_JOBS, _SNAPSHOT, lambda job: (f"{objects.namespace(job)}/{snapshot_name(job)}",))


def catalogue(cache: ObjectCache, namespace: str, specs: Iterable[KubeObject], graph: str = "") -> Catalogue:
    """The cached checkpoints that components request; `specs` are the stored component specs.

    PodSnapshots are included only for a graph: a graph annotates the pods of its component deployments.
    """
    desired = [spec["experimental"]["checkpoint"] or {} for spec in specs if starts_from_one(spec)]
    if not desired:
        return NO_CHECKPOINTS
    refs = {each["checkpointRef"] for each in desired if each.get("checkpointRef")}
    identities = (identity_of({"spec": each}) for each in desired)
    digests = {identity_hash(identity) for identity in identities if identity is not None}
    named = {name: each for name in refs if (each := known(cache, ObjectKey(namespace, name))) is not None}
    identified = {digest: each for digest in digests if (each := of_identity(cache, namespace, digest)) is not None}
    jobs = cache.by_index(SNAPSHOT_JOBS, _GRAPH, f"{namespace}/{graph}") if graph else []
    refs |= {name for each in jobs if (name := snapshot_name(each))}
    keys = [ObjectKey(namespace, name) for name in refs] if graph else []
    taken = {key.name: snapshot for key in keys if (snapshot := cache.get(POD_SNAPSHOTS, key)) is not None}
    by_name = {objects.name(each): each for each in jobs}
    return Catalogue(named, identified, cache.list(DAEMON_SETS, namespace), by_name, taken)


def known(cache: ObjectCache, key: ObjectKey) -> KnownCheckpoint | None:
    """What graphs read of a checkpoint; None if there is none."""
    return cast("KnownCheckpoint | None", cache.record(DYNAMO_CHECKPOINTS, _KNOWN, key))


def of_identity(cache: ObjectCache, namespace: str, digest: str) -> KnownCheckpoint | None:
    """The checkpoint of an identity in a namespace: the first that was created, because later ones are refused."""
    keys = cache.keys_by_index(DYNAMO_CHECKPOINTS, _IDENTITY, f"{namespace}/{digest}")
    staying = (each for key in keys if (each := known(cache, key)) is not None and not each.deleting)
    return min(staying, key=lambda each: (each.created, each.name), default=None)


def routes(cache: ObjectCache) -> tuple[TaskRoute, ...]:
    """What is reconciled after a change of a checkpoint, its pod, or the place where checkpoints are kept."""
    naming = indexed(cache, _STARTS, DYNAMO_GRAPH_DEPLOYMENTS)
    users = indexed(cache, _STARTS, DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS, by=namespace_of)

    def source(change: CacheChange) -> Iterator[Task]:
        """The checkpoint whose source is this pod."""
        job = cache.get(JOBS, ObjectKey(change.key.namespace, objects.labels(change.obj).get(JOB_NAME, "")))
        owner = objects.controller_of(job) if job is not None else None
        if owner is not None:
            yield Task.of(DYNAMO_CHECKPOINTS, ObjectKey(change.key.namespace, owner["name"]))

    def affected(change: CacheChange) -> Iterator[Task]:
        """Other checkpoints of an identity that is free now, which were refused until then, and the users."""
        old, new = (KnownCheckpoint.of(each) if each is not None else None for each in (change.old, change.new))
        if old is not None and (new is None or new.identity_hash != old.identity_hash):
            keys = cache.keys_by_index(DYNAMO_CHECKPOINTS, _IDENTITY, f"{change.key.namespace}/{old.identity_hash}")
            yield from (Task.of(DYNAMO_CHECKPOINTS, key) for key in keys)
        if old != new:
            yield from users(change)

    def stored(change: CacheChange) -> Iterator[Task]:
        return (Task.of(DYNAMO_CHECKPOINTS, key) for key in cache.keys(DYNAMO_CHECKPOINTS, change.key.namespace))

    def of_job(change: CacheChange) -> Iterator[Task]:
        """The graph for which a SnapshotJob was created."""
        names = {_graph_of(each) for each in (change.old, change.new) if each is not None} - {""}
        return (Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(change.key.namespace, name)) for name in sorted(names))

    def of_snapshot(change: CacheChange) -> Iterator[Task]:
        """Graphs that name a PodSnapshot, and the graph for which it was taken."""
        yield from naming(change)
        for job in cache.by_index(SNAPSHOT_JOBS, _SNAPSHOT, str(change.key)):
            yield from of_job(CacheChange(SNAPSHOT_JOBS, change.key, None, job))

    return (
        TaskRoute(
            PODS,
            to=source,
            when=lambda change: CHECKPOINT_SOURCE in objects.labels(change.obj) and changes_trouble(change),
        ),
        TaskRoute(DYNAMO_CHECKPOINTS, to=affected),
        # The garbage collector deletes a checkpoint's children later than it; until then the next one has no free name.
        *(TaskRoute(each, to=stored, when=_releases_name) for each in (JOBS, RESOURCE_CLAIM_TEMPLATES)),
        *(TaskRoute(DAEMON_SETS, to=each, when=_storage_changed) for each in (stored, users)),
        TaskRoute(SNAPSHOT_JOBS, to=of_job),
        TaskRoute(POD_SNAPSHOTS, to=of_snapshot),
        TaskRoute(POD_SNAPSHOTS, when=changes_owner),
    )


def _releases_name(change: CacheChange) -> bool:
    owner = objects.controller_of(change.gone) if change.gone is not None else None
    return owner is not None and bool(owner["kind"] == DYNAMO_CHECKPOINTS.kind)


def _storage_changed(change: CacheChange) -> bool:
    """Whether a snapshot agent may keep its files elsewhere. Its status is ignored: it changes with each of its pods."""
    return (change.old or {}).get("spec") != (change.new or {}).get("spec") or not change.alters


def _graph_of(obj: KubeObject) -> str:
    return objects.labels(obj).get(GRAPH_DEPLOYMENT_NAME, "")


def _spec(obj: KubeObject) -> KubeObject:
    return mapping(obj.get("spec"))


def _named(obj: KubeObject, specs: Any) -> Iterator[str]:
    """The namespace of an object that starts from checkpoints, and the names that it uses there."""
    for spec in filter(starts_from_one, map(mapping, items(specs))):
        yield objects.namespace(obj)
        yield f"{objects.namespace(obj)}/{(spec['experimental']['checkpoint'] or {}).get('checkpointRef') or ''}"


def _identities(checkpoint: KubeObject) -> Iterable[str]:
    digest = KnownCheckpoint.of(checkpoint).identity_hash
    return (f"{objects.namespace(checkpoint)}/{digest}",) if digest else ()
