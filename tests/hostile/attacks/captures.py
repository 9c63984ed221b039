"""Snapshots: pods annotated by hand, and objects of Snapshot's kinds, which this platform does not validate."""

import asyncio
from typing import Any

from dynamo_shared.api import resources, snapshots
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations, labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, POD_SNAPSHOTS, SNAPSHOT_JOBS

from tests.hostile.attack import attack
from tests.hostile.attacks.sizes import LARGE
from tests.hostile.attacks.storms import SHARED
from tests.hostile.objects import IMAGE, component, graph, obj
from tests.hostile.world import World
from tests.integration.platform import eventually

ROW = "pods that start from a snapshot"
HASH = "0" * 64
#: A pod with this many entries is stored, and copied in half a second. Entries of a list.
MANY = 60_000
_LABELS = {
    labels.COMPONENT: "Worker",
    labels.COMPONENT_TYPE: "worker",
    labels.DYNAMO_NAMESPACE: "tenant-chat",
    labels.SELECTOR: "chat-worker",
}
_READY = {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def marked(namespace: str, name: str, *containers: KubeObject, **own: str) -> KubeObject:
    """A pod as the pod-builder creates it."""
    given = {
        annotations.RESTORE_CANDIDATE: "true",
        annotations.RESTORE_SOURCE: "mine",
        annotations.RESTORE_SOURCE_KIND: POD_SNAPSHOTS.kind,
        annotations.RESTORE_COMPATIBILITY_HASH: HASH,
        annotations.RESTORE_TARGETS: "main",
        **own,
    }
    main = {"name": "main", "image": IMAGE, "command": ["python3", "-m", "dynamo.vllm"]}
    spec = {"containers": list(containers) or [main]}
    return obj(resources.PODS, namespace, name, labels=_LABELS, annotations=given, spec=spec)


async def take_snapshot(world: World, name: str = "mine", container: Any = "main", **own: str) -> dict[str, str]:
    """Create a PodSnapshot that is ready; returns the annotations that pin a pod to it."""
    given = {
        annotations.SNAPSHOT_COMPATIBILITY_VERSION: snapshots.VERSION,
        annotations.SNAPSHOT_COMPATIBILITY_HASH: HASH,
        annotations.SNAPSHOT_GMS_MODE: snapshots.NO_MEMORY_SERVICE,
        **own,
    }
    spec = {"source": {"podRef": {"name": "p", "containers": [container]}}}
    answer = await world.create(obj(POD_SNAPSHOTS, world.namespace, name, annotations=given, spec=spec))
    assert answer.ok, f"not created: {answer}"
    status = {"boundSnapshotContentName": "content", "conditions": [_READY]}
    world.note(await world.tenant.patch(POD_SNAPSHOTS, world.namespace, name, {"status": status}, "status"))
    uid = answer.json()["metadata"]["uid"]
    return {annotations.RESTORE_SNAPSHOT_UID: uid, annotations.RESTORE_SNAPSHOT_CONTENT: "content"}


def starting(namespace: str, name: str, **checkpoint: Any) -> KubeObject:
    """A graph with a worker that starts from a PodSnapshot."""
    container = {"name": "main", "image": IMAGE, "command": ["python3", "-m", "dynamo.vllm"]}
    experimental = {"checkpoint": {"enabled": True, **checkpoint}}
    template = {"spec": {"containers": [container]}}
    return graph(namespace, name, component("Worker", template=template, replicas=0, experimental=experimental))


@attack("marked-pods-large", ROW, f"four marked pods at once, each with {MANY} variables", slack=SHARED)
async def _large(world: World) -> None:
    await _of_many(world, 4, MANY)


@attack("marked-pods-fair", ROW, "eight marked pods at once, each as large as is read", slack=SHARED)
async def _fair(world: World) -> None:
    await _of_many(world, 8, 15_000)


async def _of_many(world: World, pods: int, variables: int) -> None:
    pinned = await take_snapshot(world)
    # Valid ones: for invalid ones the API server itself takes minutes to list all errors.
    env = [{"name": "A"}] * variables
    main = {"name": "main", "image": IMAGE, "command": ["python3", "-m", "dynamo.vllm"], "env": env}
    await world.create_all([marked(world.namespace, f"many-{number}", main, **pinned) for number in range(pods)])


@attack("marked-pods-many", ROW, "400 marked pods that wait for a capture that never happens", slack=SHARED)
async def _many(world: World) -> None:
    waits = {
        annotations.RESTORE_SOURCE_KIND: SNAPSHOT_JOBS.kind,
        annotations.RESTORE_JOB_UID: "none",
        annotations.RESTORE_STARTUP_POLICY: snapshots.WAIT,
    }
    answers = await world.create_all([marked(world.namespace, f"many-{number}", **waits) for number in range(400)])
    assert not any(each.ok for each in answers), "a pod started without what it waits for"


@attack(
    "captured-name",
    ROW,
    "a PodSnapshot of a container whose name has a million letters, restored into a thousand containers",
    slack=2.0,
)
async def _name(world: World) -> None:
    pinned = await take_snapshot(world, container="m" * 1_000_000)
    containers = [{"name": f"c{number}", "image": IMAGE} for number in range(1000)]
    targets = {annotations.RESTORE_TARGETS: ",".join(f"c{number}" for number in range(1000))}
    await world.create_all([marked(world.namespace, "named", *containers, **targets, **pinned)])


@attack("marked-pods-source", ROW, "100 marked pods of a PodSnapshot of a megabyte of small entries", slack=SHARED)
async def _source(world: World) -> None:
    pinned = await take_snapshot(world)
    entries = {"metadata": {"labels": {"a": "b"}}, "spec": {"entries": [{}] * (LARGE // 3)}}
    world.note(await world.tenant.patch(POD_SNAPSHOTS, world.namespace, "mine", entries))
    await world.create_all([marked(world.namespace, f"source-{number}", **pinned) for number in range(100)])


@attack(
    "marked-pods-paths",
    ROW,
    "marked pods that name paths, other namespaces and invalid text",
    must="nothing in another namespace is requested, and each is refused",
)
async def _paths(world: World) -> None:
    names = ["../../quiet/podsnapshots/x", "..", ".", "x/status", "x?watch=true", "%2e%2e", "x" * 100_000, " ", "\n"]
    answers = await world.create_all(
        [
            marked(world.namespace, f"path-{number}", **{annotations.RESTORE_SOURCE: name})
            for number, name in enumerate(names)
        ]
    )
    assert not any(each.ok for each in answers), "a pod started that names no PodSnapshot"


@attack(
    "snapshot-storm",
    ROW,
    "hundreds of graphs that name one PodSnapshot, which changes 300 times",
    slack=SHARED,
    memory=160.0,
)
async def _storm(world: World) -> None:
    await take_snapshot(world)
    await world.create_all(
        [starting(world.namespace, f"named-{number}", checkpointRef="mine") for number in range(world.graphs)]
    )
    for number in range(300):
        changed = {"metadata": {"annotations": {"changed": str(number)}}}
        world.note(await world.tenant.patch(POD_SNAPSHOTS, world.namespace, "mine", changed))


@attack("capture-status", ROW, "the status of a capture forged in every way", linger=3.0)
async def _status(world: World) -> None:
    await world.create(starting(world.namespace, "forged"))
    (job,) = await eventually(lambda: world.admin.list(SNAPSHOT_JOBS, world.namespace), "its SnapshotJob")
    await take_snapshot(world)
    completed = {**_READY, "type": "Completed"}
    failed = {**_READY, "type": "Failed", "message": "m" * 30_000}
    for status in (
        {"podSnapshotName": "../../quiet", "podSnapshotUID": "x", "conditions": [completed]},
        {"podSnapshotName": "x" * 500_000, "conditions": [completed]},
        {"podSnapshotName": ["mine"], "podSnapshotUID": {}, "conditions": [completed]},
        {"podSnapshotName": "mine", "podSnapshotUID": 5, "conditions": [completed]},
        {"conditions": [failed]},
        {"conditions": [{**failed, "reason": 5, "message": ["x"]}]},
        {"conditions": [{**_READY, "type": "Captured", "message": 5}]},
        {"conditions": "x"},
        {"conditions": [5, {}]},
    ):
        world.note(
            await world.tenant.patch(
                SNAPSHOT_JOBS, world.namespace, job["metadata"]["name"], {"status": None}, "status"
            )
        )
        world.note(
            await world.tenant.patch(
                SNAPSHOT_JOBS, world.namespace, job["metadata"]["name"], {"status": status}, "status"
            )
        )


async def _settled(world: World) -> None:
    async def version() -> Any:
        observed = await world.admin.get(POD_SNAPSHOTS, world.namespace, "mine")
        return observed and observed["metadata"]["resourceVersion"]

    before = await version()
    await asyncio.sleep(2)
    assert await version() == before, "the PodSnapshot changes without end"
    assert await world.status_of(DYNAMO_GRAPH_DEPLOYMENTS, "rival"), "the graph has no status"


@attack(
    "snapshot-of-two",
    ROW,
    "a PodSnapshot whose label names another graph than the one that created it",
    must="the platform does not write it again and again",
    linger=2.0,
    check=_settled,
)
async def _of_two(world: World) -> None:
    await world.create(starting(world.namespace, "rival"))
    (job,) = await eventually(lambda: world.admin.list(SNAPSHOT_JOBS, world.namespace), "its SnapshotJob")
    owner = job["metadata"]["annotations"][annotations.CHECKPOINT_OWNER_UID]
    own = {
        annotations.AUTO_CHECKPOINT: "true",
        annotations.CHECKPOINT_OWNER_UID: owner,
        annotations.CHECKPOINT_DELETION_POLICY: snapshots.DELETE,
    }
    pinned = await take_snapshot(world, **own)
    status = {
        "podSnapshotName": "mine",
        "podSnapshotUID": pinned[annotations.RESTORE_SNAPSHOT_UID],
        "conditions": [{**_READY, "type": "Completed"}],
    }
    name = job["metadata"]["name"]
    world.note(await world.tenant.patch(SNAPSHOT_JOBS, world.namespace, name, {"status": status}, "status"))
    for other in ("other", "rival", "other"):
        labelled = {"metadata": {"labels": {labels.GRAPH_DEPLOYMENT_NAME: other}}}
        world.note(await world.tenant.patch(POD_SNAPSHOTS, world.namespace, "mine", labelled))
        await asyncio.sleep(0.5)
