"""PodSnapshots on a real API server, with webhooks, Deployments and their pods.

The test acts as the Snapshot operator.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_admission import app as admission
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import NatsServer
from dynamo_pod_builder.app import PodBuilderService
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations, labels
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENTS,
    NAMESPACES,
    POD_SNAPSHOTS,
    PODS,
    SNAPSHOT_JOBS,
    ObjectKey,
    Resource,
    key_of,
)
from dynamo_shared.kube import KubeClient, reflector
from dynamo_shared.kube.discovery import install_crds
from dynamo_shared.runtime import Service
from dynamo_watcher.app import WatcherService

from tests.building.control_plane import prepared
from tests.building.definitions import ANYTHING, definition_of

from .admission import admission_platform
from .platform import eventually, frontend, gone, graph, until_event, until_object, until_state, worker

KEY = ObjectKey("captured", "disagg")
#: Kubernetes' garbage collector discovers new kinds every half minute, and then lists all their objects. Seconds.
COLLECTED_WITHIN = 120.0

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
async def kube(programs: Programs, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KubeClient]:
    """A cluster whose platform takes checkpoints, and that has no Snapshot operator yet.

    Kinds that are not served are checked again soon: by default after up to 45 s, as long as the whole test waits.
    """
    monkeypatch.setattr(reflector, "ABSENT_WAIT_SECONDS", (0.2, 0.2))
    # Shorter than the API server's time-out of the webhook: with a late look-up, a pod would start without its
    # checkpoint.
    monkeypatch.setattr(admission, "LOOK_UP_WITHIN", 8.0)
    async with (
        ControlPlane(await prepared(programs), programs) as plane,
        NatsServer(await programs.obtain("nats-server"), tmp_path) as nats,
    ):
        parts: list[Service] = [WatcherService(), PodBuilderService()]
        settings: dict[str, Any] = {"PLATFORM__NATS__SERVERS": nats.url, "CHECKPOINT__ENABLED": "true"}
        async with (
            admission_platform(plane, parts=parts, **settings),
            await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-tests") as client,
        ):
            await client.create(NAMESPACES, {**NAMESPACES.type_meta, "metadata": {"name": KEY.namespace}})
            yield client


def _snapshot_jobs() -> KubeObject:
    """The definition of SnapshotJobs, whose pod metadata is only an object, so that its fields are pruned."""
    template = {**ANYTHING, "properties": {"metadata": {"type": "object"}}}
    return definition_of(SNAPSHOT_JOBS, spec={**ANYTHING, "properties": {"podTemplate": template}})


async def until_reason(kube: KubeClient, reason: str) -> KubeObject:
    def right(graph: KubeObject) -> bool:
        return (objects.condition(graph, "CheckpointsReady") or {}).get("reason") == reason

    return await until_object(kube, DYNAMO_GRAPH_DEPLOYMENTS, KEY, f"CheckpointsReady: {reason}", right)


async def only(kube: KubeClient, resource: Resource) -> KubeObject:
    (obj,) = await eventually(lambda: kube.list(resource, KEY.namespace), resource.kind)
    return obj


async def take_snapshot(kube: KubeClient, job: KubeObject, name: str) -> KubeObject:
    """A PodSnapshot, as the Snapshot operator takes it for a SnapshotJob."""
    template = job["spec"]["podSnapshotTemplate"]
    metadata = {"name": name, "namespace": KEY.namespace, **template["metadata"]}
    spec = {"source": {"podRef": {"name": "gone", "containers": template["targetContainers"]}}}
    return await kube.create(POD_SNAPSHOTS, {**POD_SNAPSHOTS.type_meta, "metadata": metadata, "spec": spec})


async def operator_captures(kube: KubeClient, job: KubeObject) -> KubeObject:
    """Act as the Snapshot operator after its agent has captured the pod of a SnapshotJob."""
    snapshot = await take_snapshot(kube, job, "captured")
    at = "2026-01-01T00:00:00Z"
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": at}
    status = {"boundSnapshotContentName": "content", "conditions": [ready]}
    await kube.merge_patch(POD_SNAPSHOTS, key_of(snapshot), {"status": status}, subresource="status")
    completed = {**ready, "type": "Completed", "reason": "Completed"}
    of_job = {"podSnapshotName": "captured", "podSnapshotUID": objects.uid(snapshot), "conditions": [completed]}
    await kube.merge_patch(SNAPSHOT_JOBS, key_of(job), {"status": of_job}, subresource="status")
    return snapshot


async def pods_of_workers(kube: KubeClient) -> list[KubeObject]:
    pods = await kube.list(PODS, KEY.namespace, label_selector=f"{labels.COMPONENT}=Worker")
    return [each for each in pods if not objects.is_deleting(each)]


async def test_a_worker_is_captured_and_its_next_pod_starts_from_the_pod_snapshot(kube):
    captured = {**worker("Worker"), "experimental": {"checkpoint": {"enabled": True}}}
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(KEY.namespace, components=[frontend(), captured]))
    await until_state(kube, KEY, "successful")
    await until_reason(kube, "SnapshotNotInstalled")
    await install_crds(kube, [_snapshot_jobs(), definition_of(POD_SNAPSHOTS)])
    await until_reason(kube, "CheckpointPending")
    job = await only(kube, SNAPSHOT_JOBS)

    async def serving() -> KubeObject | None:
        pods = await pods_of_workers(kube)
        return pods[0] if len(pods) == 1 and annotations.RESTORE_CANDIDATE in objects.annotations(pods[0]) else None

    # A capture takes minutes: by then the Deployment has replaced its pods. Later ones would be restored.
    cold = await eventually(serving, "the roll-out that labels the pods")
    assert annotations.RESTORE_FROM not in objects.annotations(cold)
    snapshot = await operator_captures(kube, job)
    await until_reason(kube, "CheckpointsReady")
    await until_event(kube, KEY.namespace, "CheckpointsReady", "DynamoGraphDeployment")
    await until_state(kube, KEY, "successful")
    await kube.delete(PODS, key_of(cold))

    async def another() -> KubeObject | None:
        pods = await pods_of_workers(kube)
        return pods[0] if len(pods) == 1 and objects.uid(pods[0]) != objects.uid(cold) else None

    restored = await eventually(another, "the next pod")
    assert objects.annotations(restored)[annotations.RESTORE_FROM] == objects.name(snapshot)
    assert annotations.RESTORE_CANDIDATE not in objects.annotations(restored)
    (container,) = restored["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert variables["SNAPSHOT_RESTORE_STANDBY"] == "1"

    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, KEY)
    late = await take_snapshot(kube, job, "late")
    for resource, obj in ((SNAPSHOT_JOBS, job), (POD_SNAPSHOTS, snapshot), (POD_SNAPSHOTS, late)):

        async def is_gone(resource: Resource = resource, obj: KubeObject = obj) -> bool:
            return await gone(kube, resource, key_of(obj))

        await eventually(is_gone, f"{resource.kind} {objects.name(obj)} goes with the graph", COLLECTED_WITHIN)
