# ruff: noqa: E501 - messages stand here whole
"""Cases about engines that cannot run as specified, which Kubernetes or rendering would refuse later."""

from dataclasses import replace

from .building import (
    ALPHA,
    BETA,
    CONTAINER_DISCOVERY,
    GROVE,
    IDENTITY,
    MULTINODE,
    PLAIN,
    Case,
    alone,
    alpha,
    alpha_pod,
    beta,
    beta_pod,
    both,
    component,
    components,
    service,
    services,
)
from .cases_sidecar import STAYS

SGLANG = ["sh", "-c", "exec python3 -m dynamo.sglang --model x"]


CASES: list[Case] = [
    Case(
        "alpha: what Grove does not run",
        services({"a": service(replicas=0), "b": alpha_pod(schedulerName="own")}),
        "warning: spec.services.b.extraPodSpec.schedulerName: Grove rejects graphs whose pods have several schedulers, and not all pods of this graph name 'own': name one scheduler for all pods, or disable Grove for this graph",
        facts=GROVE,
    ),
    Case(
        "beta: what Grove does not run",
        components(component("a", replicas=0), beta_pod("b", schedulerName="own"), beta_pod("c", schedulerName="own")),
        "warning: spec.components[1].podTemplate.spec.schedulerName: Grove rejects graphs whose pods have several schedulers, and not all pods of this graph name 'own': name one scheduler for all pods, or disable Grove for this graph",
        "warning: spec.components[2].podTemplate.spec.schedulerName: Grove rejects graphs whose pods have several schedulers, and not all pods of this graph name 'own': name one scheduler for all pods, or disable Grove for this graph",
        facts=GROVE,
    ),
    Case(
        "beta: one scheduler for all pods, on Grove",
        components(beta_pod("a", schedulerName="own"), beta_pod("b", schedulerName="own")),
        facts=GROVE,
    ),
    Case(
        "beta: the scheduler that pods may have anyway, on Grove",
        components(beta_pod("a", schedulerName="kai-scheduler"), beta_pod("b")),
        facts=GROVE,
    ),
    Case(
        "alpha: several nodes without an engine",
        alpha("a: {kind: default, multinode: {nodeCount: 2}}"),
        "error: spec.services.a.multinode: not allowed for componentType none, which runs no engine that could use several nodes: write 'worker', 'prefill' or 'decode', or leave multinode out",
        facts=GROVE,
    ),
    Case(
        "beta: several nodes of an engine that another worker starts",
        components(beta_pod("a", {"args": SGLANG[2:]}), component("b", multinode=MULTINODE)),
        facts=GROVE,
    ),
    Case(
        "alpha: several nodes without GPUs",
        alpha(
            """
            a: {multinode: {nodeCount: 2}}
            b: {gpus: '8', multinode: {nodeCount: 2}}
            c: {multinode: {nodeCount: 2}, resources: {limits: {custom: {amd.com/gpu: '8'}}}}
            d:
              multinode: {nodeCount: 2}
              main: {resources: {claims: [{name: gpus}]}}
              pod: {resourceClaims: [{name: gpus, resourceClaimTemplateName: four}]}
            """,
            backendFramework="trtllm",
        ),
        "error: spec.services.a.multinode: trtllm on several nodes needs the number of GPUs of each node: set it in resources.limits.gpu",
        facts=GROVE,
    ),
    Case(
        "beta: no place for the flags of an engine",
        beta(
            """
            a:
              gpus: '8'
              multinode: {nodeCount: 2}
              experimental: {gpuMemoryService: {mode: InterPod}}
              main: {command: [sh, -c, ./start]}
            """,
            backendFramework="vllm",
        ),
        "error: spec.components[0].podTemplate.spec.containers[0]: starts a script without its engine, to which the platform cannot add the flags for gpuMemoryService: set command to python3 -m dynamo.vllm, or to a shell with a script that starts it",
        "warning: spec.components[0].podTemplate.spec.containers[0]: starts a script without its engine, to which the platform cannot add flags for several nodes: the program must connect the nodes itself, by DYNAMO_RANK and DYNAMO_LEADER_ADDRESS; or set command to python3 -m dynamo.vllm",
        facts=GROVE,
    ),
    Case(
        "alpha: programs that must connect their nodes themselves",
        alpha(
            "a: {multinode: {nodeCount: 2}, main: {command: [./start]}}",
            "b: {multinode: {nodeCount: 2}, main: {args: [exec serve]}}",
            "c: {multinode: {nodeCount: 2}, main: {command: [sh, start.sh]}}",
            "d: {multinode: {nodeCount: 2}, main: {command: [sh, -c, exec python3 -m dynamo.vllm]}, gpus: '8'}",
            "e: {main: {command: [./start]}}",
            backendFramework="vllm",
        ),
        "warning: spec.services.a.extraPodSpec.mainContainer: starts './start', to which the platform cannot add flags for several nodes: the program must connect the nodes itself, by DYNAMO_RANK and DYNAMO_LEADER_ADDRESS; or set command to python3 -m dynamo.vllm",
        "warning: spec.services.b.extraPodSpec.mainContainer: starts a script without its engine, to which the platform cannot add flags for several nodes: the program must connect the nodes itself, by DYNAMO_RANK and DYNAMO_LEADER_ADDRESS; or set command to python3 -m dynamo.vllm",
        "warning: spec.services.c.extraPodSpec.mainContainer: starts 'sh', to which the platform cannot add flags for several nodes: the program must connect the nodes itself, by DYNAMO_RANK and DYNAMO_LEADER_ADDRESS; or set command to python3 -m dynamo.vllm",
        facts=GROVE,
    ),
    Case(
        "alpha: flags without a program",
        alpha(
            "a: {main: {args: [--model, x]}}",
            "b: {kind: frontend, main: {args: [--router-mode, kv]}}",
            "c: {main: {command: [/start], args: [--model, x]}}",
            "d: {kind: planner, main: {args: [--config, x]}}",
            backendFramework="sglang",
        ),
        "warning: spec.services.a.extraPodSpec.mainContainer.args[0]: without a command, /bin/sh -c runs '--model' as a script, even if the image has an entrypoint: set command to the program for these args, such as python3 -m dynamo.sglang",
        "warning: spec.services.d.extraPodSpec.mainContainer.args[0]: without a command, /bin/sh -c runs '--config' as a script, even if the image has an entrypoint: set command to the program for these args, such as python3 -m dynamo.planner",
    ),
    Case(
        "beta: flags without a program",
        components(
            beta_pod("a", {"args": ["--model", "x"]}),
            beta_pod(
                "b", {"args": ["--model", "x"], "readinessProbe": {"tcpSocket": {"port": 1}}}, initContainers=[STAYS]
            ),
        ),
        "warning: spec.components[0].podTemplate.spec.containers[0].args[0]: without a command, /bin/sh -c runs '--model' as a script, even if the image has an entrypoint: set command to the program for these args, such as python3 -m dynamo.vllm",
    ),
    Case(
        "beta: mpirun starts any program",
        beta("a: {gpus: '8', multinode: {nodeCount: 2}, main: {command: [./start]}}", backendFramework="trtllm"),
        facts=GROVE,
    ),
    Case(
        "beta: failover of no known engine",
        beta(
            """
            a:
              gpus: '1'
              experimental: {gpuMemoryService: {mode: IntraPod}, failover: {mode: IntraPod}}
              main: {command: [./start]}
            """,
            metadata=CONTAINER_DISCOVERY,
        ),
        "error: spec.components[0].experimental.failover: only vLLM can fail over within a pod, but the engine is not known: leave failover out",
    ),
    *both(
        "several nodes of a component deployment, and no LeaderWorkerSet",
        alone(ALPHA, backendFramework="sglang", **service(multinode=MULTINODE)),
        alone(BETA, backendFramework="sglang", **component("a", multinode=MULTINODE)),
        "warning: spec.multinode: replicas of several nodes cannot run here: install LeaderWorkerSet, or leave multinode out",
        facts=replace(GROVE, leader_worker_sets=False),
    ),
    *both(
        "a checkpoint where there are none",
        services({"a": service(checkpoint={"enabled": True, **IDENTITY})}),
        components(component("a", experimental={"checkpoint": IDENTITY})),
        "warning: {at}.checkpoint: has no effect, because checkpoints are disabled on this platform: set checkpoint.enabled in the operator configuration, or leave the checkpoint out",
        at=("spec.services.a", "spec.components[0].experimental"),
        facts=replace(PLAIN, checkpoints=False),
    ),
]
