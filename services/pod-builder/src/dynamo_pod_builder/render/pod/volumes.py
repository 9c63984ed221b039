"""Volumes of a pod: shared memory, the compilation cache, claims that mounts imply, and their order."""

import hashlib
import re

from dynamo_shared.api import quantity
from dynamo_shared.api.objects import KubeObject

from dynamo_pod_builder.render.backends import EngineBackend
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.errors import RenderError

SHARED_MEMORY = "shared-memory"
SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108 - where programs look for shared memory, not a temporary file
#: Engines pass tensors between processes in it; Kubernetes' default of 64 MiB is too small.
DEFAULT_SHARED_MEMORY = "8Gi"
#: Valid names of a volume, and of a claim: `qwen2.5-weights` is valid only for a claim.
_VOLUME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_CLAIM = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")


def check_mounts(component: str, container: KubeObject) -> None:
    """Raise RenderError for a mount without name or path: it would imply a claim without a name."""
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        for field in ("name", "mountPath"):
            if not mount.get(field):
                path = f"podTemplate.spec.containers[{container['name']}].volumeMounts[{index}].{field}"
                raise RenderError(component, path, "is required")


def claim(name: str) -> KubeObject:
    """Volume of a PersistentVolumeClaim of the same name."""
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def cache_mount(context: PodContext, backend: EngineBackend) -> KubeObject | None:
    """Mount of the compilation cache, if the component requests one."""
    cache = context.spec.compilation_cache
    if cache is None:
        return None
    path = cache.mount_path or backend.traits.compilation_cache_path
    if not path:
        raise RenderError(
            context.component,
            "compilationCache.mountPath",
            "is required: the backend has no default directory for compiled code",
            "set it to the cache directory of the engine",
        )
    return {"name": cache.pvc_name, "mountPath": path, **({"subPath": cache.sub_path} if cache.sub_path else {})}


def with_cache(component: str, mounts: list[KubeObject], cache: KubeObject) -> list[KubeObject]:
    """Mounts with the compilation cache once; if the user also mounts it, the fields of that mount have priority."""
    there = next((mount for mount in mounts if mount["mountPath"] == cache["mountPath"]), None)
    if there is None:
        return [*mounts, cache]
    if there["name"] != cache["name"]:
        raise RenderError(
            component,
            "compilationCache.mountPath",
            f"volume {there['name']} is already mounted at {cache['mountPath']}",
            "mount one of them elsewhere",
        )
    if there.get("subPathExpr"):
        return mounts
    return [{**cache, **each} if each is there else each for each in mounts]


def share_memory(container: KubeObject, pod: KubeObject, size: int | str | None) -> None:
    """Add /dev/shm as the last entry of both lists, replacing the user's; nothing is added if its size is 0."""
    if size is not None and quantity.is_zero(size):
        return
    limit = DEFAULT_SHARED_MEMORY if size is None else str(size)
    container["volumeMounts"] = [
        mount
        for mount in container.get("volumeMounts") or ()
        if mount["name"] != SHARED_MEMORY and mount["mountPath"] != SHARED_MEMORY_PATH
    ]
    container["volumeMounts"].append({"name": SHARED_MEMORY, "mountPath": SHARED_MEMORY_PATH})
    pod["volumes"] = [volume for volume in pod.get("volumes") or () if volume["name"] != SHARED_MEMORY]
    pod["volumes"].append({"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory", "sizeLimit": limit}})


def in_mount_order(volumes: list[KubeObject], mounts: list[KubeObject]) -> list[KubeObject]:
    """Volumes in the main container's mount order, then the rest; a missing one is a claim of its name."""
    by_name = {volume["name"]: volume for volume in volumes}
    mounted = dict.fromkeys(mount["name"] for mount in mounts)
    first = [by_name.get(name) or claim(name) for name in mounted]
    return first + [volume for volume in volumes if volume["name"] not in mounted]


def name_as_allowed(pod: KubeObject) -> None:
    """Rename volumes whose names are valid only for claims, in the pod and in all of its mounts."""
    renamed = {
        volume["name"]: _volume_name(volume["name"])
        for volume in pod.get("volumes") or ()
        if not _VOLUME.fullmatch(volume["name"])
        and _CLAIM.fullmatch(volume["name"])
        and (volume.get("persistentVolumeClaim") or {}).get("claimName") == volume["name"]
    }
    if not renamed:
        return
    pod["volumes"] = [_renamed(each, renamed) for each in pod["volumes"]]
    for part in ("containers", "initContainers"):
        if part in pod:
            pod[part] = [
                {**each, "volumeMounts": [_renamed(mount, renamed) for mount in each["volumeMounts"]]}
                if each.get("volumeMounts")
                else each
                for each in pod[part]
            ]


def _renamed(entry: KubeObject, names: dict[str, str]) -> KubeObject:
    return {**entry, "name": names[entry["name"]]} if entry["name"] in names else entry


def _volume_name(claim_name: str) -> str:
    digest = hashlib.sha256(claim_name.encode()).hexdigest()[:8]
    return f"{claim_name.replace('.', '-')[:54]}-{digest}"
