"""Location of the model for engines: a volume, or Hugging Face."""

import posixpath

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec

VOLUME = "model-cache"


def model_path(spec: DynamoGraphDeploymentRequestSpec) -> str:
    """Path of the model in containers, or its name. `pvcModelPath` is relative to the volume, or begins with the mount path."""
    cache = spec.model_cache
    if cache is None or not cache.pvc_name or not cache.pvc_model_path:
        return spec.model
    mount = posixpath.normpath(cache.pvc_mount_path)
    inner = posixpath.normpath("/" + cache.pvc_model_path.lstrip("/"))
    if inner == mount or inner.startswith(mount + "/"):
        return inner
    return posixpath.normpath(mount + inner)


def mount_model(pod: KubeObject, container: KubeObject, spec: DynamoGraphDeploymentRequestSpec) -> None:
    """Add the volume with the model to a pod and a container, if the request names one."""
    cache = spec.model_cache
    if cache is None or not cache.pvc_name:
        return
    pod.setdefault("volumes", []).append({"name": VOLUME, "persistentVolumeClaim": {"claimName": cache.pvc_name}})
    container.setdefault("volumeMounts", []).append({"name": VOLUME, "mountPath": cache.pvc_mount_path})
    if not cache.pvc_model_path:
        # A volume without a path has the layout of Hugging Face's cache.
        container.setdefault("env", []).append({"name": "HF_HOME", "value": cache.pvc_mount_path})
