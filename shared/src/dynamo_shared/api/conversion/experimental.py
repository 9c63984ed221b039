"""Features with a switch in v1alpha1, which v1beta1 has under `experimental`, switched on by being there."""

from typing import Any

_MODES = {"intraPod": "IntraPod", "interPod": "InterPod"}
_BACK = {beta: alpha for alpha, beta in _MODES.items()}
_DEVICE_CLASS = "gpu.nvidia.com"
#: Fields of a checkpoint that are the same in both versions, whatever it is of.
_SAME_OF_CHECKPOINT = ("startupPolicy", "deletionPolicy", "targetContainerName", "job")
#: Fields of the GPU memory service that are the same in both versions.
_SAME_OF_MEMORY = ("deviceClassName", "extraClientContainers")
#: v1beta1 has room for one engine that waits; v1alpha1 has no bound.
_SHADOWS = 1


def to_experimental(service: dict[str, Any]) -> dict[str, Any]:
    """What is switched on in a service."""
    present = {
        "gpuMemoryService": _memory_service(_enabled(service, "gpuMemoryService"), _MODES),
        "failover": _failover(_enabled(service, "failover"), _MODES),
        "checkpoint": _checkpoint(_enabled(service, "checkpoint")),
    }
    return {name: value for name, value in present.items() if value is not None}


def from_experimental(experimental: Any, service: dict[str, Any]) -> None:
    """Put the features of a component into a service, switched on."""
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
    """Mode in the other version's words, a missing one by default; None where the feature cannot be said there."""
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
    """A checkpoint that is not switched off: reference and identity, or that it is taken of the component itself."""
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
