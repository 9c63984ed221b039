"""Probes: Kubernetes' questions to a container. Times are seconds. Values are the reference's (behaviour, section 3.1)."""

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
    """Question to the gRPC health service of an endpoint picker; Kubernetes' own thresholds where none is given."""
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
#: NATS and etcd may let a frontend wait for minutes, one after the other.
STARTING_FRONTEND: dict[str, Probe] = {
    **FRONTEND,
    "startupProbe": http("/live", _HTTP, period=10, timeout=1, failures=30),
}
#: A worker may load its model for two hours before it first answers.
WORKER: dict[str, Probe] = {
    "livenessProbe": http("/live", _SYSTEM, period=5, timeout=4, failures=1),
    "readinessProbe": http("/health", _SYSTEM, period=10, timeout=4, failures=3),
    "startupProbe": http("/live", _SYSTEM, period=10, timeout=5, failures=720),
}
#: A runtime that has stalled for some seconds may come back: one missing answer does not justify loading a model again.
LENIENT_WORKER: dict[str, Probe] = {
    **WORKER,
    "livenessProbe": http("/live", _SYSTEM, period=5, timeout=4, failures=3),
}
#: The runtime next to an engine answers at once, and is ready, whatever the engine loads: that takes a probe of its own.
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
