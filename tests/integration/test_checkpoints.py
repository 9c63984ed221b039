"""Checkpoints on a real API server with the Job controller.

The tests act as the snapshot agent, which is another project.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api.conditions import find
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import SNAPSHOT_STATUS, SNAPSHOT_TARGET_CONTAINERS
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_CHECKPOINTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    JOBS,
    LEASES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICE_ACCOUNTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import KubeClient

from .platform import (
    IMAGE,
    eventually,
    frontend,
    gone,
    graph,
    platform,
    settings,
    until_event,
    until_object,
    until_state,
    until_status,
    worker,
)

IDENTITY = {"model": "meta-llama/Llama-2-7b-hf", "backendFramework": "vllm"}
HASH = "96429b2725761a09"
JOB = f"checkpoint-job-{HASH}-1"
STORAGE = {
    "CHECKPOINT__STORAGE__TYPE": "pvc",
    "CHECKPOINT__STORAGE__PVC__PVC_NAME": "checkpoints",
    "CHECKPOINT__STORAGE__PVC__BASE_PATH": "/checkpoints",
    "CHECKPOINT__STORAGE__PVC__CREATE": "true",
    "CHECKPOINT__STORAGE__PVC__SIZE": "1Ti",
}
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
#: No node has this label, so the pod waits until the test acts as its node.
NO_NODE = {"tests/no-node": "true"}


@pytest.fixture(scope="module")
async def running_platform(control_plane: ControlPlane, shared_nats_server: NatsServer) -> AsyncIterator[Any]:
    configured = settings(control_plane.kubeconfig, shared_nats_server.url, CHECKPOINT__ENABLED="true", **STORAGE)
    async with platform(configured) as up:
        yield up


@pytest.fixture
async def storage(kube: KubeClient, namespace: str) -> AsyncIterator[None]:
    """A volume for the claim, because no provisioner runs here: pods that mount it get scheduled."""
    name = f"checkpoints-of-{namespace}"
    volume = {
        **VOLUMES.type_meta,
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Ti"},
            "accessModes": ["ReadWriteMany"],
            "claimRef": {"namespace": namespace, "name": "checkpoints"},
            "hostPath": {"path": "/checkpoints"},
        },
    }
    await kube.create(VOLUMES, volume)
    yield
    await kube.delete(VOLUMES, ObjectKey("", name))


def checkpoint(namespace: str, name: str = "llama", *, node: bool = False, **job: Any) -> KubeObject:
    pod: KubeObject = {"containers": [{"name": "main", "image": IMAGE, "command": ["python3", "-m", "dynamo.vllm"]}]}
    if not node:
        pod["nodeSelector"] = NO_NODE
    spec = {"identity": IDENTITY, "job": {"podTemplateSpec": {"spec": pod}, **job}}
    return {**DYNAMO_CHECKPOINTS.type_meta, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


async def until_phase(kube: KubeClient, namespace: str, phase: str, name: str = "llama") -> KubeObject:
    def right(observed: KubeObject) -> bool:
        return bool(observed.get("status", {}).get("phase") == phase)

    return await until_object(kube, DYNAMO_CHECKPOINTS, ObjectKey(namespace, name), phase, right)


def conditions(obj: KubeObject) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in obj["status"]["conditions"]}


async def agent_reports(kube: KubeClient, namespace: str, word: str) -> None:
    """Report the snapshot agent's result."""
    patch = {"metadata": {"annotations": {SNAPSHOT_STATUS: word}}}
    await kube.merge_patch(JOBS, ObjectKey(namespace, JOB), patch)


async def node_reports_end(kube: KubeClient, namespace: str) -> None:
    """Report, as the node of a Job's pod, that the engine has ended successfully."""
    of_job = f"job-name={JOB}"
    (pod,) = await eventually(lambda: kube.list(PODS, namespace, label_selector=of_job), "the Job's pod")
    key = ObjectKey(namespace, pod["metadata"]["name"])
    await kube.merge_patch(PODS, key, {"status": {"phase": "Succeeded"}}, subresource="status")


async def agent_holds_lease(kube: KubeClient, namespace: str) -> None:
    """Hold the Lease of the agent's work on a checkpoint, for longer than any test."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "agent", "leaseDurationSeconds": 600, "renewTime": now}
    lease = {**LEASES.type_meta, "metadata": {"name": JOB, "namespace": namespace}, "spec": spec}
    await kube.create(LEASES, lease)


async def template_of(kube: KubeClient, namespace: str, component: str = "Worker") -> KubeObject:
    (deployments,) = await kube.list(DEPLOYMENTS, namespace, label_selector=f"{labels.COMPONENT}={component}")
    template: KubeObject = deployments["spec"]["template"]
    return template


@pytest.mark.usefixtures("running_platform")
async def test_a_checkpoint_becomes_a_job_and_is_ready_when_the_agent_reports_success(kube, namespace):
    await kube.create(DYNAMO_CHECKPOINTS, checkpoint(namespace))
    result = await until_phase(kube, namespace, "Creating")
    assert result["metadata"]["labels"][labels.CHECKPOINT_ID] == HASH
    status = result["status"]
    assert (status["identityHash"], status["jobName"]) == (HASH, JOB)
    assert (status["storageType"], status["location"]) == ("pvc", f"/checkpoints/{HASH}/versions/1")
    assert conditions(result)["JobCreated"] == ("True", "JobCreated")
    job = await kube.get(JOBS, ObjectKey(namespace, JOB))
    assert (job["spec"]["backoffLimit"], job["spec"]["activeDeadlineSeconds"]) == (0, 3600)
    assert job["spec"]["ttlSecondsAfterFinished"] == 300
    account = job["spec"]["template"]["spec"]["serviceAccountName"]
    assert not await gone(kube, SERVICE_ACCOUNTS, ObjectKey(namespace, account))
    claim = await kube.get(PERSISTENT_VOLUME_CLAIMS, ObjectKey(namespace, "checkpoints"))
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]

    await agent_reports(kube, namespace, "completed")
    await node_reports_end(kube, namespace)
    result = await until_phase(kube, namespace, "Ready")
    assert conditions(result)["JobCompleted"] == ("True", "JobSucceeded")
    assert result["status"]["createdAt"]
    for reason in ("CheckpointJobCreated", "CheckpointReady"):
        await until_event(kube, namespace, reason, "DynamoCheckpoint")


@pytest.mark.usefixtures("running_platform")
async def test_deleting_a_checkpoint_deletes_its_objects_and_keeps_the_storage(kube, namespace):
    await kube.create(DYNAMO_CHECKPOINTS, checkpoint(namespace))
    await until_phase(kube, namespace, "Creating")
    await kube.delete(DYNAMO_CHECKPOINTS, ObjectKey(namespace, "llama"))
    account = ObjectKey(namespace, "llama-k8s-service-discovery")

    async def nothing() -> bool:
        return await gone(kube, JOBS, ObjectKey(namespace, JOB)) and await gone(kube, SERVICE_ACCOUNTS, account)

    await eventually(nothing, "no Job and no account are left")
    assert not await gone(kube, PERSISTENT_VOLUME_CLAIMS, ObjectKey(namespace, "checkpoints"))


@pytest.mark.usefixtures("running_platform", "storage")
async def test_a_graph_creates_its_checkpoint_and_then_starts_from_it(kube, namespace):
    await agent_holds_lease(kube, namespace)
    started = {**worker("Worker"), "experimental": {"checkpoint": {"identity": IDENTITY}}}
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend(), started]))
    key, name = ObjectKey(namespace, "disagg"), f"checkpoint-{HASH}"
    # Until then it serves without the checkpoint: its pods load the model themselves.
    result = await until_state(kube, key, "successful")
    entry = {"checkpointName": name, "identityHash": HASH, "ready": False}
    assert result["status"]["checkpoints"] == {"Worker": entry}
    cold = await template_of(kube, namespace)
    assert labels.RESTORE_TARGET not in cold["metadata"]["labels"]
    made = await until_phase(kube, namespace, "Creating", name)
    assert "ownerReferences" not in made["metadata"]
    of_job = ObjectKey(namespace, JOB)
    await until_status(kube, JOBS, of_job, "ended", lambda status: find(status.get("conditions", ()), "Complete"))
    await agent_reports(kube, namespace, "completed")
    await until_phase(kube, namespace, "Ready", name)
    warm = await eventually(
        lambda: template_of(kube, namespace),
        "pods that start from the checkpoint",
        where=lambda template: labels.RESTORE_TARGET in template["metadata"]["labels"],
    )
    assert warm["metadata"]["labels"][labels.CHECKPOINT_ID] == HASH
    assert warm["metadata"]["annotations"][SNAPSHOT_TARGET_CONTAINERS] == "main"
    assert warm["spec"]["containers"][0]["command"] == ["sleep", "infinity"]
    assert "args" not in warm["spec"]["containers"][0]

    def is_warm(status: KubeObject) -> bool:
        return status["checkpoints"]["Worker"]["ready"] and status["state"] == "successful"

    await until_status(kube, DYNAMO_GRAPH_DEPLOYMENTS, key, "serves from its checkpoint", is_warm)
    (deployment,) = await kube.list(DEPLOYMENTS, namespace, label_selector=f"{labels.COMPONENT}=Worker")
    # One write while cold and one while warm: defaults of the API server are not drift.
    assert deployment["metadata"]["generation"] == 2
    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, key)
    await eventually(lambda: kube.list(DEPLOYMENTS, namespace), "the graph is deleted", where=lambda left: not left)
    assert (await kube.get(DYNAMO_CHECKPOINTS, ObjectKey(namespace, name)))["status"]["phase"] == "Ready"
