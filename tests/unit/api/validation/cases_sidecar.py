# ruff: noqa: E501 - messages stand here whole
"""Cases about the Dynamo runtime as a sidecar: which components may have it, and the container that has the runtime."""

from typing import Any

from .building import Case, alone, alpha_pod, beta_pod, component, components, service, services

STAYS = {"name": "runtime", "image": "sidecar:1", "restartPolicy": "Always"}
ENDS = {"name": "runtime", "image": "setup:1"}
NOT_WITH = "cannot be combined with an init container runtime that keeps running: next to it the engine is not Dynamo's own, and the platform does not change its command and its pod; leave one of the two out"
ENDS_BEFORE = "ends before main starts. In Dynamo 1.6 and later, this name is for the runtime as a sidecar: if the container is the runtime, write restartPolicy: Always, otherwise rename it"
NOT_READY = "missing: the runtime is ready before the engine has loaded, so the pod gets requests, and a roll-out continues, too early; add a readinessProbe that checks the engine to the engine's container"
SERVES = {"readinessProbe": {"httpGet": {"port": 8000}}}
DRAIN = "DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS"


def beta(
    name: str, sidecar: dict[str, Any] | None = None, main: Any = None, kind: str = "worker", **fields: Any
) -> Any:
    """A component with the runtime next to its engine."""
    pod = fields.pop("pod", {})
    return {
        **beta_pod(name, {**SERVES, **(main or {})}, kind, initContainers=[{**STAYS, **(sidecar or {})}], **pod),
        **fields,
    }


def alpha(sidecar: dict[str, Any] | None = None, main: Any = None, kind: str = "worker", **fields: Any) -> Any:
    """A service with the runtime next to its engine."""
    return {**alpha_pod({**SERVES, **(main or {})}, kind, initContainers=[{**STAYS, **(sidecar or {})}]), **fields}


CASES = [
    Case(
        "beta: the runtime as a sidecar", components(beta("a"), beta("b", kind="prefill"), component("c", "frontend"))
    ),
    Case("alpha: the runtime as a sidecar", services({"a": alpha(), "b": service("frontend")})),
    Case(
        "beta: an init container that ends",
        components(beta_pod("a", initContainers=[ENDS]), beta_pod("b", kind="frontend", initContainers=[ENDS])),
        f"warning: spec.components[0].podTemplate.spec.initContainers[0]: {ENDS_BEFORE}",
        f"warning: spec.components[1].podTemplate.spec.initContainers[0]: {ENDS_BEFORE}",
    ),
    Case(
        "alpha: an init container that ends",
        services({"a": alpha_pod(initContainers=[ENDS])}),
        f"warning: spec.services.a.extraPodSpec.initContainers[0]: {ENDS_BEFORE}",
    ),
    Case(
        "beta: what changes engines, of a component deployment",
        alone(
            "v1beta1",
            **beta(
                "a",
                main={"resources": {"limits": {"nvidia.com/gpu": "1"}}, "command": ["python3", "-m", "dynamo.vllm"]},
                multinode={},
                experimental={"gpuMemoryService": {"mode": "IntraPod"}, "failover": {"mode": "IntraPod"}},
            ),
        ),
        f"error: spec.multinode: {NOT_WITH}",
        f"error: spec.experimental.gpuMemoryService: {NOT_WITH}",
        f"error: spec.experimental.failover: {NOT_WITH}",
    ),
    Case(
        "beta: the runtime as a sidecar of one role",
        components(
            component(
                "a",
                multinode={},
                roles=[{"name": "leader"}, {"name": "worker", "podTemplate": beta("a")["podTemplate"]}],
            )
        ),
        f"error: spec.components[0].multinode: {NOT_WITH}",
    ),
    Case(
        "beta: a checkpoint of an engine next to the runtime, and one that is switched off",
        components(
            beta("a", experimental={"checkpoint": {"checkpointRef": "x"}}),
            beta("b", experimental={"checkpoint": {"enabled": False}}),
        ),
        f"error: spec.components[0].experimental.checkpoint: {NOT_WITH}",
    ),
    Case(
        "beta: ports and variables of the runtime's container count, not those of the engine's",
        components(
            beta(
                "a",
                {"ports": [{"containerPort": 1}], "env": [{"name": "DYN_SYSTEM_PORT", "value": "1"}]},
                {"ports": [{"containerPort": 50051}], "env": [{"name": "DYN_SYSTEM_PORT", "value": "2"}]},
            ),
            beta("b", main={"ports": [{"containerPort": 50051}]}, pod={"terminationGracePeriodSeconds": 90}),
            beta(
                "c",
                {"env": [{"name": DRAIN, "value": "80"}]},
                {"envFrom": [{"configMapRef": {"name": "c"}}]},
                pod={"terminationGracePeriodSeconds": 90},
            ),
        ),
        "warning: spec.components[0].podTemplate.spec.initContainers[0].ports: has no port system, which probes and the Service use: add containerPort 9090 with this name",
        "warning: spec.components[0].podTemplate.spec.initContainers[0].env[0].value: the container listens on this port, but probes and the Service use port system, which is 9090: leave DYN_SYSTEM_PORT out",
        f"warning: spec.components[1].podTemplate.spec.terminationGracePeriodSeconds: a worker that stops aborts its requests after 5 seconds: to give them more time, set {DRAIN} in the env of runtime to less than this number",
    ),
    Case(
        "beta: an engine next to the runtime has no default probes",
        components(beta("a", main={"readinessProbe": {"periodSeconds": 5}})),
        "error: spec.components[0].podTemplate.spec.containers[0].readinessProbe: has no action, and the platform has no default for it: add httpGet, exec, tcpSocket or grpc",
    ),
    Case(
        "an engine next to the runtime that does not say when it serves",
        components(beta("a", main={"readinessProbe": None}), beta("b")),
        f"warning: spec.components[0].podTemplate.spec.containers[0].readinessProbe: {NOT_READY}",
    ),
    Case(
        "a service of v1alpha1 may say it for its engine",
        services(
            {
                "a": alpha(main={"readinessProbe": None}),
                "b": alpha(main={"readinessProbe": None}, readinessProbe={"exec": {"command": ["true"]}}),
            }
        ),
        f"warning: spec.services.a.extraPodSpec.mainContainer.readinessProbe: {NOT_READY}",
    ),
]
