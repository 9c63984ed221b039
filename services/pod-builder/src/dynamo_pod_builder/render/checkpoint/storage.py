"""Where the files of checkpoints are kept: by the settings, otherwise where the namespace's snapshot agent has them."""

from collections.abc import Iterable

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import PERSISTENT_VOLUME_CLAIMS
from dynamo_shared.api.snapshots import AGENT_CONTAINER, AGENT_VOLUME

from dynamo_pod_builder.render.checkpoint.target import Storage
from dynamo_pod_builder.render.config import CheckpointDefaults
from dynamo_pod_builder.render.metadata import new_object


def storage_of(defaults: CheckpointDefaults, agents: Iterable[KubeObject]) -> Storage | None:
    """Storage of a namespace with these DaemonSets of snapshot agents; None if neither defines one."""
    if defaults.claim:
        return Storage(defaults.claim, _directory(defaults.base_path))
    return next((storage for agent in agents if (storage := _of_agent(agent)) is not None), None)


def claim_of(defaults: CheckpointDefaults, namespace: str) -> KubeObject | None:
    """The claim that the settings create; None if another creates it. It has no owner, so the data stays."""
    if not (defaults.claim and defaults.create):
        return None
    spec: KubeObject = {
        "accessModes": [defaults.access_mode],
        "resources": {"requests": {"storage": defaults.size}},
    }
    if defaults.storage_class:
        spec["storageClassName"] = defaults.storage_class
    label_set = {labels.APP_NAME: "dynamo", labels.APP_COMPONENT: "checkpoint-storage"}
    return new_object(PERSISTENT_VOLUME_CLAIMS, defaults.claim, namespace, label_set, spec=spec)


def _of_agent(agent: KubeObject) -> Storage | None:
    pod = agent["spec"]["template"]["spec"]
    mounts = (
        mount["mountPath"]
        for container in pod.get("containers", ())
        if container["name"] == AGENT_CONTAINER
        for mount in container.get("volumeMounts", ())
        if mount["name"] == AGENT_VOLUME
    )
    path = next(mounts, "")
    claims = (
        (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
        for volume in pod.get("volumes", ())
        if volume["name"] == AGENT_VOLUME
    )
    claim = next(claims, "")
    return Storage(claim, _directory(path)) if claim and path else None


def _directory(path: str) -> str:
    return path.rstrip("/") or "/"
