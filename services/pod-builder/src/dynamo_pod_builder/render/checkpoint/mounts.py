"""What pods that are checkpointed and pods that start from a checkpoint have in common."""

from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import env, labels
from dynamo_shared.api.snapshots import CONTROL_PATH, CONTROL_VOLUME

from dynamo_pod_builder.render.checkpoint import names
from dynamo_pod_builder.render.checkpoint.target import Storage
from dynamo_pod_builder.render.pod.env import var


def _file(path: str, field: str) -> KubeObject:
    return {"path": path, "fieldRef": {"fieldPath": field}}


def _label(path: str, label: str) -> KubeObject:
    return _file(path, f"metadata.labels['{label}']")


_FILES = (
    _file("pod_name", "metadata.name"),
    _file("pod_uid", "metadata.uid"),
    _file("pod_namespace", "metadata.namespace"),
    _label("dyn_namespace", labels.DYNAMO_NAMESPACE),
    _label("dyn_namespace_worker_suffix", labels.WORKER_HASH),
    _label("dyn_component", labels.COMPONENT_TYPE),
    _label("dyn_parent_dgd_k8s_name", labels.GRAPH_DEPLOYMENT_NAME),
    _file("dyn_parent_dgd_k8s_namespace", "metadata.namespace"),
)
_CONTROL_DIR = var(env.DYN_SNAPSHOT_CONTROL_DIR, CONTROL_PATH)


def connect(pod: KubeObject, container: KubeObject, storage: Storage) -> None:
    """Give a container of a pod the storage, the channel to the agent, and the identity of its pod.

    Variables cannot give the identity: a restored process has those of the pod of which the checkpoint was taken.
    """
    mounts = (
        {"name": names.STORAGE, "mountPath": storage.base_path},
        # Each container has its own directory.
        {"name": CONTROL_VOLUME, "mountPath": CONTROL_PATH, "subPath": container["name"]},
        {"name": names.POD_INFO, "mountPath": names.POD_INFO_PATH, "readOnly": True},
    )
    container["volumeMounts"] = _with(container.get("volumeMounts") or (), mounts)
    container["env"] = _with(container.get("env") or (), (_CONTROL_DIR,))
    volumes = (
        {"name": names.STORAGE, "persistentVolumeClaim": {"claimName": storage.claim}},
        {"name": CONTROL_VOLUME, "emptyDir": {}},
        {"name": names.POD_INFO, "downwardAPI": {"items": list(_FILES)}},
    )
    pod["volumes"] = _with(pod.get("volumes") or (), volumes)


def confine(pod: KubeObject, profile: str) -> None:
    """Run the pod with a seccomp profile of its node, because pending io_uring operations cannot be checkpointed."""
    if profile:
        context = pod.get("securityContext") or {}
        pod["securityContext"] = {
            **context,
            "seccompProfile": {"type": "Localhost", "localhostProfile": profile},
        }


def _with(present: Any, added: tuple[KubeObject, ...]) -> list[KubeObject]:
    """A list of named entries with `added` at the end, replacing entries of the same names."""
    taken = {each["name"] for each in added}
    return [each for each in present if each["name"] not in taken] + list(added)
