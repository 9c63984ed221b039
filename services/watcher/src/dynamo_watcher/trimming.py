"""Selects the fields of pods, ResourceSlices, ResourceClaims, captures and snapshot agents for STATE: only fields that a
service reads.

Fields that users and engines write into their pods are excluded: variables, commands, arguments, volumes, annotations.
They may contain passwords, no service reads them, and they are most of a pod's bytes. If a service needs another field,
add it here.
"""

from typing import Any

from dynamo_shared.api.objects import KubeObject, with_essential_metadata
from dynamo_shared.api.registry.annotations import (
    AUTO_CHECKPOINT,
    CHECKPOINT_DELETION_POLICY,
    CHECKPOINT_OWNER_UID,
    RESTART_AT,
    SNAPSHOT_COMPATIBILITY_HASH,
    SNAPSHOT_COMPATIBILITY_VERSION,
    SNAPSHOT_GMS_MODE,
    TOPOLOGY_LABEL_KEY,
)
from dynamo_shared.api.snapshots import AGENT_CONTAINER, AGENT_VOLUME
from dynamo_shared.api.untrusted.reading import below, items, mapping

_METADATA = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"}
    | {"labels", "ownerReferences", "finalizers"}
)
_ANNOTATIONS = frozenset({RESTART_AT, TOPOLOGY_LABEL_KEY})
_SPEC = frozenset({"nodeName", "hostNetwork", "resourceClaims"})
_CONTAINER = frozenset({"name", "image", "resources"})
_PROBES = frozenset({"startupProbe", "readinessProbe"})
"""Only whether there is one is read; what it calls is left out."""
_STATUS = frozenset(
    {"phase", "reason", "message", "conditions", "podIP", "podIPs", "startTime", "resourceClaimStatuses"}
)
_CONTAINER_STATUS = frozenset(
    {"name", "image", "ready", "started", "restartCount", "state", "lastState"},
)


def trimmed(pod: KubeObject) -> KubeObject:
    """A pod with only the fields that services read; values are unchanged."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    kept = _only(_METADATA, metadata)
    if annotations := _only(_ANNOTATIONS, metadata.get("annotations") or {}):
        kept["annotations"] = annotations
    containers = {
        part: [_container(each) for each in spec[part]] for part in ("containers", "initContainers") if part in spec
    }
    statuses = {
        part: [_only(_CONTAINER_STATUS, each) for each in status[part]]
        for part in ("containerStatuses", "initContainerStatuses")
        if part in status
    }
    return {
        "apiVersion": pod["apiVersion"],
        "kind": pod["kind"],
        "metadata": kept,
        "spec": _only(_SPEC, spec) | containers,
        "status": _only(_STATUS, status) | statuses,
    }


_SLICE = frozenset({"driver", "nodeName", "pool"})
_ATTRIBUTES = frozenset({"type", "productName", "model"})
_CAPACITIES = frozenset({"memory"})


def trimmed_slice(each: KubeObject) -> KubeObject:
    """A ResourceSlice with the description of its GPUs: drivers write many attributes, and more devices than GPUs."""
    spec = each.get("spec") or {}
    devices = [_device(device) for device in spec.get("devices") or ()]
    return {
        "apiVersion": each["apiVersion"],
        "kind": each["kind"],
        "metadata": _only(_METADATA, each["metadata"]),
        "spec": _only(_SLICE, spec) | {"devices": devices},
    }


_REQUEST = frozenset({"name", "deviceClassName", "allocationMode", "count", "adminAccess"})
_RESULT = frozenset({"request", "driver", "pool", "device", "adminAccess"})


def trimmed_claim(claim: KubeObject) -> KubeObject:
    """A ResourceClaim with its requested number of devices and its allocated devices, without the configuration of
    drivers.
    """
    devices = (claim.get("spec") or {}).get("devices") or {}
    allocation = (claim.get("status") or {}).get("allocation")
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    allocated = {"allocation": {"devices": {"results": [_only(_RESULT, each) for each in results]}}}
    return {
        "apiVersion": claim["apiVersion"],
        "kind": claim["kind"],
        "metadata": _only(_METADATA, claim["metadata"]),
        "spec": {"devices": {"requests": [_request(each) for each in devices.get("requests") or ()]}},
        "status": {} if allocation is None else allocated,
    }


_OF_CAPTURES = frozenset(
    {AUTO_CHECKPOINT, CHECKPOINT_DELETION_POLICY, CHECKPOINT_OWNER_UID}
    | {SNAPSHOT_COMPATIBILITY_VERSION, SNAPSHOT_COMPATIBILITY_HASH, SNAPSHOT_GMS_MODE}
)
_CAPTURED = frozenset({"podSnapshotTemplate", "source"})
_MOUNT, _VOLUME = frozenset({"name", "mountPath"}), frozenset({"name", "persistentVolumeClaim"})


def trimmed_capture(capture: KubeObject) -> KubeObject:
    """A SnapshotJob without its pod template, or a PodSnapshot; another project defines their CRDs."""
    metadata = _only(_METADATA, capture["metadata"])
    if annotations := _only(_OF_CAPTURES, capture["metadata"].get("annotations") or {}):
        metadata["annotations"] = annotations
    return {
        "apiVersion": capture["apiVersion"],
        "kind": capture["kind"],
        "metadata": metadata,
        "spec": _only(_CAPTURED, mapping(capture.get("spec"))),
        "status": mapping(capture.get("status")),
    }


def trimmed_agent(agent: KubeObject) -> KubeObject:
    """A snapshot agent's DaemonSet with only its storage of checkpoints: each tenant may create large ones."""
    pod = mapping(below(agent, ("spec", "template", "spec")))
    container = _first(pod.get("containers"), AGENT_CONTAINER)
    mount, volume = _first(container.get("volumeMounts"), AGENT_VOLUME), _first(pod.get("volumes"), AGENT_VOLUME)
    containers = [{"name": AGENT_CONTAINER, "volumeMounts": [_only(_MOUNT, mount)]}] if mount else []
    volumes = [_only(_VOLUME, volume)] if volume else []
    kept = {name: agent[name] for name in ("apiVersion", "kind", "metadata")}
    return {
        **with_essential_metadata(kept),
        "spec": {"template": {"spec": {"containers": containers, "volumes": volumes}}},
    }


def _first(each: Any, name: str) -> dict[str, Any]:
    """The first object of this name in a list; {} if there is none."""
    return next((entry for entry in map(mapping, items(each)) if entry.get("name") == name), {})


def _request(request: dict[str, Any]) -> dict[str, Any]:
    kept = _only(_REQUEST, request)
    if "exactly" in request:
        kept["exactly"] = _only(_REQUEST, request["exactly"])
    if "firstAvailable" in request:
        kept["firstAvailable"] = [_only(_REQUEST, each) for each in request["firstAvailable"]]
    return kept


def _device(device: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": device.get("name"),
        "attributes": _only(_ATTRIBUTES, device.get("attributes") or {}),
        "capacity": _only(_CAPACITIES, device.get("capacity") or {}),
    }


def _container(container: dict[str, Any]) -> dict[str, Any]:
    return _only(_CONTAINER, container) | {name: {} for name in _PROBES if name in container}


def _only(fields: frozenset[str], values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in fields}
