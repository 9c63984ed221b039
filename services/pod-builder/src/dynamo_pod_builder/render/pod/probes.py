"""Probes of containers. Times are seconds. Values are the reference's (behaviour, section 3.1)."""

from typing import Any

from dynamo_shared.api.registry import ports

Probe = dict[str, Any]


def http(path: str, port: str, *, period: int, timeout: int, failures: int, delay: int = 0) -> Probe:
    """GET of a path on a named port."""
    probe: Probe = {
        "httpGet": {"path": path, "port": port},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    }
    if delay:
        probe["initialDelaySeconds"] = delay
    return probe


def _picker(*, delay: int = 0, failures: int = 0) -> Probe:
    """Probe of an endpoint picker's gRPC health service, with Kubernetes' default thresholds unless given."""
    service = {"port": ports.EPP_HEALTH.number, "service": "inference-extension"}
    probe: Probe = {"grpc": service, "periodSeconds": 10}
    if delay:
        probe["initialDelaySeconds"] = delay
    if failures:
        probe["failureThreshold"] = failures
    return probe


_HTTP, _SYSTEM = ports.HTTP.name, ports.SYSTEM.name

FRONTEND: dict[str, Probe] = {
    "livenessProbe": http("/live", _HTTP, delay=15, period=10, timeout=1, failures=3),
    "readinessProbe": http("/health", _HTTP, delay=10, period=10, timeout=3, failures=3),
}
#: A frontend may have to wait minutes for NATS and then etcd.
STARTING_FRONTEND: dict[str, Probe] = {
    **FRONTEND,
    "startupProbe": http("/live", _HTTP, period=10, timeout=1, failures=30),
}
#: A worker may load its model for two hours before its first answer.
WORKER: dict[str, Probe] = {
    "livenessProbe": http("/live", _SYSTEM, period=5, timeout=4, failures=1),
    "readinessProbe": http("/health", _SYSTEM, period=10, timeout=4, failures=3),
    "startupProbe": http("/live", _SYSTEM, period=10, timeout=5, failures=720),
}
#: A runtime that stalled for some seconds may recover: one missed probe does not justify loading a model again.
LENIENT_WORKER: dict[str, Probe] = {
    **WORKER,
    "livenessProbe": http("/live", _SYSTEM, period=5, timeout=4, failures=3),
}
#: The runtime sidecar answers at once, and is ready independent of the engine's loading, which needs its own probe.
RUNTIME: dict[str, Probe] = {
    "livenessProbe": http("/live", _SYSTEM, period=5, timeout=4, failures=3),
    "readinessProbe": http("/health", _SYSTEM, period=5, timeout=4, failures=3),
    "startupProbe": http("/live", _SYSTEM, period=2, timeout=1, failures=30),
}
EPP: dict[str, Probe] = {
    "livenessProbe": _picker(delay=5),
    "readinessProbe": _picker(delay=5),
    "startupProbe": _picker(failures=180),
}
