# ruff: noqa: E501 - messages stand here whole
"""Cases about GPUs that several share: claims, shared GPU memory, failover, checkpoints of it."""

from dataclasses import replace
from typing import Any

from tests.unit.api.validation.building import (
    FAILOVER_INTER,
    GROVE,
    PLAIN,
    Case,
    annotated,
    component,
    components,
    service,
    services,
)

SHARING: dict[str, Any] = {
    "spec": {
        "containers": [{"name": "main", "image": "engine:1"}],
        "resourceClaims": [{"name": "a", "resourceClaimName": "c"}],
    }
}


def _clients(*names: str, between: bool = False) -> dict[str, Any]:
    return {"mode": "InterPod" if between else "IntraPod", "extraClientContainers": list(names)}


def _alpha_clients(*names: str, between: bool = False) -> dict[str, Any]:
    return {"enabled": True, "mode": "interPod" if between else "intraPod", "extraClientContainers": list(names)}


_IDENTITY: dict[str, Any] = {"model": "m", "backendFramework": "vllm"}

CASES = [
    Case(
        "alpha: what later releases say of a checkpoint",
        services(
            {
                "a": service(
                    checkpoint={"enabled": True, "checkpointRef": "c", "startupPolicy": "WaitForCheckpoint"},
                ),
                "b": service(
                    checkpoint={
                        "enabled": True,
                        "checkpointRef": "c",
                        "targetContainerName": "log",
                        "deletionPolicy": "Delete",
                    }
                ),
                "c": service(checkpoint={"enabled": True, "identity": _IDENTITY, "deletionPolicy": "Delete"}),
                "d": service(checkpoint={"enabled": False, "startupPolicy": "WaitForCheckpoint"}),
            }
        ),
        "error: spec.services.a.checkpoint.startupPolicy: 'WaitForCheckpoint' is not supported: create the DynamoCheckpoint first, wait until it is Ready, and leave this out; until then pods would start without it",
        "error: spec.services.b.checkpoint.targetContainerName: 'log' cannot be restored: a checkpoint is of the container main; leave this out",
        "warning: spec.services.c.checkpoint.deletionPolicy: has no effect: a checkpoint of an identity serves every component that names it, and outlives this one",
    ),
    Case(
        "beta: what later releases say of a checkpoint",
        components(
            *(
                component(name, experimental={"checkpoint": {"enabled": True, **checkpoint}})
                for name, checkpoint in (
                    ("a", {"checkpointRef": "c", "startupPolicy": "WaitForCheckpoint"}),
                    ("b", {"checkpointRef": "c", "targetContainerName": "log"}),
                    ("c", {"identity": _IDENTITY, "deletionPolicy": "Delete"}),
                    ("d", {"identity": _IDENTITY, "deletionPolicy": "Retain", "startupPolicy": "Immediate"}),
                    ("e", {"checkpointRef": "c", "deletionPolicy": "Delete", "targetContainerName": "main"}),
                )
            ),
        ),
        "error: spec.components[0].experimental.checkpoint.startupPolicy: 'WaitForCheckpoint' is not supported: create the DynamoCheckpoint first, wait until it is Ready, and leave this out; until then pods would start without it",
        "error: spec.components[1].experimental.checkpoint.targetContainerName: 'log' cannot be restored: a checkpoint is of the container main; leave this out",
        "warning: spec.components[2].experimental.checkpoint.deletionPolicy: has no effect: a checkpoint of an identity serves every component that names it, and outlives this one",
    ),
    Case(
        "beta: a checkpoint that is off",
        components(
            component(
                "a",
                "frontend",
                experimental={
                    "checkpoint": {"enabled": False, "checkpointRef": "c", "startupPolicy": "WaitForCheckpoint"}
                },
            )
        ),
        facts=replace(PLAIN, checkpoints=False),
    ),
    Case(
        "alpha: containers that share GPU memory",
        services(
            {
                "a": service(
                    gpus="1",
                    gpuMemoryService=_alpha_clients("main", "log", "gone"),
                    extraPodSpec={
                        "mainContainer": {"image": "engine:1"},
                        "containers": [{"name": "log", "image": "l"}],
                    },
                ),
                "b": service(gpus="1", gpuMemoryService=_alpha_clients("log", between=True)),
            },
            backendFramework="vllm",
        ),
        "error: spec.services.a.gpuMemoryService.extraClientContainers[2]: 'gone' is not a container of extraPodSpec.containers (log): add it there, or leave it out",
        "error: spec.services.b.gpuMemoryService.extraClientContainers: not with mode 'interPod': the service is in a pod of its own, and no other container uses it; leave it out",
        facts=GROVE,
    ),
    Case(
        "beta: containers that share GPU memory",
        components(
            component("a", gpus="1", experimental={"gpuMemoryService": _clients("main", "gone")}),
            component("b", gpus="1", experimental={"gpuMemoryService": _clients("log", between=True)}),
            backendFramework="vllm",
        ),
        "error: spec.components[0].experimental.gpuMemoryService.extraClientContainers[1]: 'gone' is not a container of podTemplate.spec.containers: add it there, or leave it out",
        "error: spec.components[1].experimental.gpuMemoryService.extraClientContainers: not with mode 'InterPod': the service is in a pod of its own, and no other container uses it; leave it out",
        facts=GROVE,
    ),
    Case(
        "alpha: replicas that share a claim",
        services(
            {
                "w": service(
                    replicas=3,
                    extraPodSpec={
                        "mainContainer": {"image": "engine:1"},
                        "resourceClaims": [
                            {"name": "a", "resourceClaimTemplateName": "t"},
                            {"name": "b", "resourceClaimName": "c"},
                        ],
                    },
                )
            }
        ),
        "warning: spec.services.w.extraPodSpec.resourceClaims[1].resourceClaimName: all 3 pods share the devices of ResourceClaim 'c': more of them get no more; with resourceClaimTemplateName each pod gets its own",
    ),
    Case(
        "beta: replicas and nodes that share a claim, and one pod that has a claim alone",
        components(
            component("a", replicas=2, multinode={"nodeCount": 2}, podTemplate=SHARING),
            component("b", podTemplate=SHARING),
            backendFramework="sglang",
        ),
        "warning: spec.components[0].podTemplate.spec.resourceClaims[0].resourceClaimName: all 4 pods share the devices of ResourceClaim 'c': more of them get no more; with resourceClaimTemplateName each pod gets its own",
        facts=GROVE,
    ),
    Case(
        "alpha: failover of a frontend",
        services({"a": service("frontend", failover=FAILOVER_INTER)}),
        "error: spec.services.a.failover: needs a GPU at least: ask for one in resources.limits.gpu",
        "error: spec.services.a.failover: needs gpuMemoryService in the same mode, interPod: failover engines take weights over from it",
        "error: spec.services.a.failover: not for componentType frontend, which runs no engine: leave failover out",
    ),
    Case(
        "beta: failover of a planner",
        components(component("a", "planner", "1", experimental={"failover": {"mode": "InterPod"}})),
        "error: spec.components[0].experimental.failover: needs gpuMemoryService in the same mode, InterPod: failover engines take weights over from it",
        "error: spec.components[0].experimental.failover: not for type planner, which runs no engine: leave failover out",
    ),
    Case(
        "beta: a checkpoint with shared GPU memory where it is allowed",
        components(
            component("a", gpus="1", experimental={"gpuMemoryService": {}, "checkpoint": {"checkpointRef": "c"}})
        ),
        facts=replace(PLAIN, gms_snapshot=True),
    ),
    Case(
        "beta: failover in a pod with discovery of pods",
        components(
            component("a", gpus="1", experimental={"gpuMemoryService": {}, "failover": {}}),
            metadata=annotated(dynamo_kube_discovery_mode="pod"),
        ),
        "error: metadata.annotations[\"nvidia.com/dynamo-kube-discovery-mode\"]: must be 'container', not 'pod': spec.components[0].experimental.failover keeps several engines in one pod, and each must be discovered by itself",
    ),
]
