# ruff: noqa: E501 - messages stand here whole
"""Cases about GPUs that several share: claims, shared GPU memory, failover, checkpoints of it."""

from dataclasses import replace
from typing import Any

from .building import GROVE, PLAIN, Case, alpha, annotated, beta, component, components


def _clients(*names: str, between: bool = False) -> dict[str, Any]:
    return {"mode": "InterPod" if between else "IntraPod", "extraClientContainers": list(names)}


_IDENTITY: dict[str, Any] = {"model": "m", "backendFramework": "vllm"}

CASES = [
    Case(
        "alpha: what later releases say of a checkpoint",
        alpha(
            "a: {checkpoint: {enabled: true, checkpointRef: c, startupPolicy: WaitForCheckpoint}}",
            "b: {checkpoint: {enabled: true, checkpointRef: c, targetContainerName: log, deletionPolicy: Delete}}",
            "c: {checkpoint: {enabled: true, identity: {model: m, backendFramework: vllm}, deletionPolicy: Delete}}",
            "d: {checkpoint: {enabled: false, startupPolicy: WaitForCheckpoint}}",
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
        beta("""
            a:
              kind: frontend
              experimental: {checkpoint: {enabled: false, checkpointRef: c, startupPolicy: WaitForCheckpoint}}
        """),
        facts=replace(PLAIN, checkpoints=False),
    ),
    Case(
        "alpha: containers that share GPU memory",
        alpha(
            """
            a:
              gpus: '1'
              gpuMemoryService: {enabled: true, mode: intraPod, extraClientContainers: [main, log, gone]}
              pod: {containers: [{name: log, image: l}]}
            b: {gpus: '1', gpuMemoryService: {enabled: true, mode: interPod, extraClientContainers: [log]}}
            """,
            backendFramework="vllm",
        ),
        "error: spec.services.a.gpuMemoryService.extraClientContainers[2]: 'gone' is not a container of extraPodSpec.containers (log): add it there, or leave it out",
        "error: spec.services.b.gpuMemoryService.extraClientContainers: not with mode 'interPod': the service is in a pod of its own, and no other container uses it; leave it out",
        facts=GROVE,
    ),
    Case(
        "alpha: replicas that share a claim",
        alpha("""
            w:
              replicas: 3
              pod: {resourceClaims: [{name: a, resourceClaimTemplateName: t}, {name: b, resourceClaimName: c}]}
        """),
        "warning: spec.services.w.extraPodSpec.resourceClaims[1].resourceClaimName: all 3 pods share the devices of ResourceClaim 'c': more of them get no more; with resourceClaimTemplateName each pod gets its own",
    ),
    Case(
        "beta: replicas and nodes that share a claim, and one pod that has a claim alone",
        beta(
            "a: {replicas: 2, multinode: {nodeCount: 2}, pod: {resourceClaims: [{name: a, resourceClaimName: c}]}}",
            "b: {pod: {resourceClaims: [{name: a, resourceClaimName: c}]}}",
            backendFramework="sglang",
        ),
        "warning: spec.components[0].podTemplate.spec.resourceClaims[0].resourceClaimName: all 4 pods share the devices of ResourceClaim 'c': more of them get no more; with resourceClaimTemplateName each pod gets its own",
        facts=GROVE,
    ),
    Case(
        "beta: failover of a planner",
        components(component("a", "planner", "1", experimental={"failover": {"mode": "InterPod"}})),
        "error: spec.components[0].experimental.failover: needs gpuMemoryService in the same mode, InterPod: failover engines take weights over from it",
        "error: spec.components[0].experimental.failover: not for type planner, which runs no engine: leave failover out",
    ),
    Case(
        "beta: a checkpoint with shared GPU memory where it is allowed",
        beta("a: {gpus: '1', experimental: {gpuMemoryService: {}, checkpoint: {checkpointRef: c}}}"),
        facts=replace(PLAIN, gms_snapshot=True),
    ),
    Case(
        "beta: failover in a pod with discovery of pods",
        beta(
            "a: {gpus: '1', experimental: {gpuMemoryService: {}, failover: {}}}",
            metadata=annotated(dynamo_kube_discovery_mode="pod"),
        ),
        "error: metadata.annotations[\"nvidia.com/dynamo-kube-discovery-mode\"]: must be 'container', not 'pod': spec.components[0].experimental.failover keeps several engines in one pod, and each must be discovered by itself",
    ),
]
