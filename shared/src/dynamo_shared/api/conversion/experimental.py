"""Converts features that have a field `enabled` in v1alpha1, and are below `experimental` in v1beta1, without such a field."""

from typing import Any

_MODES = {"intraPod": "IntraPod", "interPod": "InterPod"}
_BACK = {beta: alpha for alpha, beta in _MODES.items()}
_DEVICE_CLASS = "gpu.nvidia.com"
#: Fields of a checkpoint that are the same in both versions.
_SAME_OF_CHECKPOINT = ("startupPolicy", "deletionPolicy", "targetContainerName", "job")
#: Fields of the GPU memory service that are the same in both versions.
_SAME_OF_MEMORY = ("deviceClassName", "extraClientContainers")
#: v1beta1 allows only one standby engine; v1alpha1 has no limit.
_SHADOWS = 1


def to_experimental(service: dict[str, Any]) -> dict[str, Any]:
    """The enabled features of a service."""
    present = {
        "gpuMemoryService": _memory_service(_enabled(service, "gpuMemoryService"), _MODES),
        "failover": _failover(_enabled(service, "failover"), _MODES),
        "checkpoint": _checkpoint(_enabled(service, "checkpoint")),
    }
    return {name: value for name, value in present.items() if value is not None}


def from_experimental(experimental: Any, service: dict[str, Any]) -> None:
    """Add the features of a component to a service, enabled."""
    if not isinstance(experimental, dict):
        return
    present = {
        "gpuMemoryService": _memory_service(experimental.get("gpuMemoryService"), _BACK),
        "failover": _failover(experimental.get("failover"), _BACK),
        "checkpoint": _checkpoint(experimental.get("checkpoint")),
    }
    service.update((name, {"enabled": True, **value}) for name, value in present.items() if value is not None)


def _enabled(service: dict[str, Any], name: str) -> Any:
    feature = service.get(name)
    return feature if isinstance(feature, dict) and feature.get("enabled") is True else None


def _mode(feature: Any, modes: dict[str, str]) -> str | None:
    """The mode's name in the other version, with the default for a missing mode; None if the feature is invalid."""
    if not isinstance(feature, dict):
        return None
    mode = feature.get("mode", next(iter(modes)))
    return modes.get(mode) if isinstance(mode, str) else None


def _memory_service(feature: Any, modes: dict[str, str]) -> dict[str, Any] | None:
    mode = _mode(feature, modes)
    if mode is None:
        return None
    named = {name: feature[name] for name in _SAME_OF_MEMORY if name in feature}
    return {"mode": mode, "deviceClassName": _DEVICE_CLASS, **named}


def _failover(feature: Any, modes: dict[str, str]) -> dict[str, Any] | None:
    mode = _mode(feature, modes)
    return None if mode is None else {"mode": mode, "numShadows": _SHADOWS}


def _checkpoint(feature: Any) -> dict[str, Any] | None:
    """An enabled checkpoint: with a reference and identity, or (`enabled`) of the component itself."""
    if not isinstance(feature, dict) or feature.get("enabled") is False:
        return None
    present: dict[str, Any] = {name: feature[name] for name in _SAME_OF_CHECKPOINT if name in feature}
    reference, identity = feature.get("checkpointRef"), feature.get("identity")
    if isinstance(reference, str):
        present["checkpointRef"] = reference
    if isinstance(identity, dict) and identity.get("model") and identity.get("backendFramework"):
        present["identity"] = identity
    if not present.get("checkpointRef") and "identity" not in present:
        if feature.get("enabled") is not True or "identity" in feature:
            return None
        present["enabled"] = True
    return {"mode": feature.get("mode", "Auto"), **present}
