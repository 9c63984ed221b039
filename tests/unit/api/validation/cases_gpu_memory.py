# ruff: noqa: E501 - messages stand here whole
"""Cases about shared GPUs: claims, shared GPU memory, failover, and their checkpoints."""

from dataclasses import replace
from typing import Any

from .building import GROVE, MAIN, PLAIN, Case, alpha, annotated, beta, component, components

_IDENTITY: dict[str, Any] = {"model": "m", "backendFramework": "vllm"}

CASES = [
    Case(
        "alpha: what later releases say of a checkpoint",
        alpha(
            "a: {checkpoint: {enabled: true, checkpointRef: c, startupPolicy: WaitForCheckpoint}}",
            "b: {checkpoint: {enabled: true, identity: {model: m, backendFramework: vllm}, targetContainerName: log, job: {}}}",
            "c: {checkpoint: {enabled: true, identity: {model: m, backendFramework: vllm}, deletionPolicy: Delete}}",
            "d: {checkpoint: {enabled: false, startupPolicy: WaitForCheckpoint}}",
            "e: {checkpoint: {enabled: true, deletionPolicy: Delete, targetContainerName: log}}",
            "f: {kind: '', checkpoint: {enabled: true}}",
            "g: {checkpoint: {enabled: true, job: {gmsClientContainers: [log]}}}",
            "h: {checkpoint: {enabled: true, checkpointRef: c, job: {}}}",
        ),
        "error: spec.services.b.checkpoint.targetContainerName: 'log' cannot be restored: a DynamoCheckpoint restores only the container main; leave this field or identity out",
        "error: spec.services.f.checkpoint: the platform checkpoints only workers: set componentType to worker, prefill or decode, or name a checkpoint",
        "error: spec.services.g.checkpoint.job.gmsClientContainers: the platform does not checkpoint engines with a GPU memory service: leave this field out",
        "error: spec.services.h.checkpoint.job: cannot be combined with checkpointRef, which names an existing checkpoint: leave one of the two out",
        "warning: spec.services.b.checkpoint.job: has no effect: the DynamoCheckpoint of this identity has its own Job; leave one of the two out",
        "warning: spec.services.c.checkpoint.deletionPolicy: has no effect: a checkpoint of an identity serves every component with that identity, and outlives this component",
    ),
    Case(
        "beta: what later releases say of a checkpoint",
        components(
            *(
                component(name, experimental={"checkpoint": {"enabled": True, **checkpoint}})
                for name, checkpoint in (
                    ("a", {"checkpointRef": "c", "startupPolicy": "WaitForCheckpoint"}),
                    ("b", {"identity": _IDENTITY, "targetContainerName": "log", "job": {}}),
                    ("c", {"identity": _IDENTITY, "deletionPolicy": "Delete"}),
                    ("d", {"identity": _IDENTITY, "deletionPolicy": "Retain", "startupPolicy": "Immediate"}),
                    ("e", {"checkpointRef": "c", "deletionPolicy": "Delete", "targetContainerName": "log"}),
                    ("f", {"deletionPolicy": "Delete", "startupPolicy": "WaitForCheckpoint"}),
                    ("g", {"job": {"gmsClientContainers": ["log"]}}),
                    ("h", {"checkpointRef": "c", "job": {}}),
                )
            ),
            {
                "name": "i",
                "podTemplate": {"spec": {"containers": [MAIN]}},
                "experimental": {"checkpoint": {"enabled": True}},
            },
            component("j", experimental={"checkpoint": {}}),
        ),
        "error: spec.components[1].experimental.checkpoint.targetContainerName: 'log' cannot be restored: a DynamoCheckpoint restores only the container main; leave this field or identity out",
        "error: spec.components[6].experimental.checkpoint.job.gmsClientContainers: the platform does not checkpoint engines with a GPU memory service: leave this field out",
        "error: spec.components[7].experimental.checkpoint.job: cannot be combined with checkpointRef, which names an existing checkpoint: leave one of the two out",
        "error: spec.components[8].experimental.checkpoint: the platform checkpoints only workers: set type to worker, prefill or decode, or name a checkpoint",
        "error: spec.components[9].experimental.checkpoint: enabled: true, checkpointRef or identity must be set",
        "warning: spec.components[1].experimental.checkpoint.job: has no effect: the DynamoCheckpoint of this identity has its own Job; leave one of the two out",
        "warning: spec.components[2].experimental.checkpoint.deletionPolicy: has no effect: a checkpoint of an identity serves every component with that identity, and outlives this component",
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
        alpha("""
            a:
              gpus: '1'
              gpuMemoryService: {enabled: true, mode: intraPod, extraClientContainers: [main, log, gone]}
              pod: {containers: [{name: log, image: l}]}
        """),
        "error: spec.services.a.gpuMemoryService.extraClientContainers[2]: 'gone' is not a container of extraPodSpec.containers (log): add it there, or leave it out",
    ),
    Case(
        "alpha: replicas that share a claim",
        alpha("""
            w:
              replicas: 3
              pod: {resourceClaims: [{name: a, resourceClaimTemplateName: t}, {name: b, resourceClaimName: c}]}
        """),
        "warning: spec.services.w.extraPodSpec.resourceClaims[1].resourceClaimName: all 3 pods share the devices of ResourceClaim 'c', and more pods get no more devices; with resourceClaimTemplateName each pod gets its own",
    ),
    Case(
        "beta: replicas and nodes that share a claim, and one pod that has a claim alone",
        beta(
            "a: {replicas: 2, multinode: {nodeCount: 2}, pod: {resourceClaims: [{name: a, resourceClaimName: c}]}}",
            "b: {pod: {resourceClaims: [{name: a, resourceClaimName: c}]}}",
            backendFramework="sglang",
        ),
        "warning: spec.components[0].podTemplate.spec.resourceClaims[0].resourceClaimName: all 4 pods share the devices of ResourceClaim 'c', and more pods get no more devices; with resourceClaimTemplateName each pod gets its own",
        facts=GROVE,
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
        "error: metadata.annotations[\"nvidia.com/dynamo-kube-discovery-mode\"]: must be 'container', not 'pod': spec.components[0].experimental.failover runs several engines in one pod, and discovery must register each of them",
    ),
]
