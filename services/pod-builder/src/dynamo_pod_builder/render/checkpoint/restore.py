"""Pods that start from a checkpoint: a container that waits while the snapshot agent restores the engine into it."""

from collections.abc import Sequence

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.snapshots import RESTORE_COMPLETE

from dynamo_pod_builder.render.checkpoint.mounts import confine, connect
from dynamo_pod_builder.render.checkpoint.target import Restore

#: The failure threshold of the startup probe: Kubernetes' maximum, because only the agent ends the wait.
_ALWAYS = 2**31 - 1
_RESTORED = {"exec": {"command": ["cat", RESTORE_COMPLETE]}, "periodSeconds": 1}


def start_from(pod: KubeObject, restore: Restore, containers: Sequence[str]) -> None:
    """Change a pod spec in place so that these containers start from the checkpoint."""
    for container in pod["containers"]:
        if container["name"] in containers:
            connect(pod, container, restore.storage)
            container["command"] = ["sleep", "infinity"]
            container.pop("args", None)
            container["startupProbe"] = _probe_without_limit(container)
    confine(pod, restore.profile)


def _probe_without_limit(container: KubeObject) -> KubeObject:
    """The container's own first probe, repeated for as long as it takes."""
    asked = (container.get(name) for name in ("startupProbe", "livenessProbe", "readinessProbe"))
    probe: KubeObject = next((each for each in asked if each), _RESTORED)
    return {**probe, "failureThreshold": _ALWAYS, "successThreshold": 1}
