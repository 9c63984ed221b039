# ruff: noqa: E501 - messages stand here whole
"""Cases about the pods of roles: rules of pods apply to each template, and common violations are reported once."""

from typing import Any

from .building import GROVE, MAIN, Case, annotated, components, manifest, service, services

VLLM = {"command": ["python3", "-m", "dynamo.vllm"], "args": ["--model", "m"]}
SGLANG = {"command": ["python3", "-m", "dynamo.sglang"]}


def role(name: str, main: dict[str, Any] | None = None, *, metadata: Any = None, **pod: Any) -> dict[str, Any]:
    """A role with a template; `others` are containers next to main."""
    others = pod.pop("others", [])
    template: dict[str, Any] = {"spec": {"containers": [{**MAIN, **(main or {})}, *others], **pod}}
    return {"name": name, "podTemplate": template if metadata is None else {"metadata": metadata, **template}}


def spread(*roles: Any, **fields: Any) -> dict[str, Any]:
    """A worker over two nodes whose roles have templates."""
    return {"name": "a", "type": "worker", "multinode": {"nodeCount": 2}, "roles": list(roles), **fields}


def wrong(name: str) -> dict[str, Any]:
    """A role that violates all rules of pods."""
    return role(
        name,
        {
            **VLLM,
            "resources": {"requests": {"nvidia.com/gpu": "1"}},
            "volumeMounts": [{"name": "no_claim", "mountPath": "/a"}],
            "startupProbe": {"periodSeconds": 5},
        },
        restartPolicy="Never",
        activeDeadlineSeconds=60,
        initContainers=[{"name": "init", "volumeMounts": [{"name": "cach", "mountPath": "/c"}]}],
        volumes=[{"name": "cache", "emptyDir": {}}],
    )


def refused(at: str, *, probe: bool = True) -> tuple[str, ...]:
    """The errors of `wrong`. Pods that serve have a default startup probe, so `probe` is False for them."""
    pods = "without Grove, pods belong to a LeaderWorkerSet, which"
    return (
        f"error: {at}.spec.restartPolicy: must be Always, not Never: {pods} restarts them; leave it out",
        f"error: {at}.spec.activeDeadlineSeconds: not allowed without Grove: {pods.partition(', ')[2]} runs them without end; leave it out",
        f"error: {at}.spec.initContainers[0].image: required: only the image of the engine's container may be added later",
        f'error: {at}.spec.containers[0].resources.requests["nvidia.com/gpu"]: needs a limit of the same amount: nvidia.com/gpu cannot be overcommitted',
        *(
            [
                f"error: {at}.spec.containers[0].startupProbe: has no action, and the platform has no default for it: add httpGet, exec, tcpSocket or grpc"
            ]
            if probe
            else []
        ),
        f"error: {at}.spec.containers[0].volumeMounts[0].name: is read as the name of a claim, because the pod has no volume of this name, and 'no_claim' is not a valid object name: lower-case letters, digits, '-' and '.', a letter or digit first and last",
        f"error: {at}.spec.initContainers[0].volumeMounts[0].name: 'cach' is not a volume of the pod; did you mean cache?: add it to {at}.spec.volumes; only main can mount claims by name",
    )


CASES = [
    Case(
        "beta: what rules of pods refuse, of the workers alone",
        components(spread(role("leader", VLLM), wrong("worker"))),
        *refused("spec.components[0].roles[1].podTemplate"),
    ),
    Case(
        "beta: what rules of pods refuse, of the leader alone",
        components(spread(wrong("leader"), role("worker", VLLM))),
        *refused("spec.components[0].roles[0].podTemplate", probe=False),
    ),
    Case(
        "beta: what rules of pods refuse, of the component's template that workers go by",
        components(spread(role("leader", VLLM), {"name": "worker"}, podTemplate=wrong("worker")["podTemplate"])),
        *refused("spec.components[0].podTemplate"),
    ),
    Case(
        "beta: paths, images and claims of roles",
        components(
            spread(
                role(
                    "leader",
                    {**VLLM, "volumeMounts": [{"name": "models", "mountPath": "data"}]},
                    resourceClaims=[{"name": "g", "resourceClaimName": "gpus"}],
                ),
                role(
                    "worker",
                    {
                        **VLLM,
                        "volumeMounts": [
                            {"name": "models", "mountPath": "/cache"},
                            {"name": "models", "mountPath": "x"},
                        ],
                    },
                    resourceClaims=[
                        {"name": "g", "resourceClaimName": "gpus"},
                        {"name": "own", "resourceClaimName": "alone"},
                    ],
                ),
                compilationCache={"pvcName": "compiled", "mountPath": "/cache"},
            )
        ),
        "error: spec.components[0].compilationCache.mountPath: '/cache' is where 'models' is mounted already (spec.components[0].roles[1].podTemplate.spec.containers[0].volumeMounts[0]): mount one of them elsewhere",
        "warning: spec.components[0].roles[0].podTemplate.spec.resourceClaims[0].resourceClaimName: all 2 pods share the devices of ResourceClaim 'gpus', and more pods get no more devices; with resourceClaimTemplateName each pod gets its own",
        "warning: spec.components[0].roles[1].podTemplate.spec.resourceClaims[0].resourceClaimName: all 2 pods share the devices of ResourceClaim 'gpus', and more pods get no more devices; with resourceClaimTemplateName each pod gets its own",
        "warning: spec.components[0].roles[0].podTemplate.spec.containers[0].volumeMounts[0].mountPath: is relative to the root of the container: write '/data'",
        "warning: spec.components[0].roles[1].podTemplate.spec.containers[0].volumeMounts[1].mountPath: is relative to the root of the container: write '/x'",
    ),
    Case(
        "beta: what has no effect in templates of roles",
        components(
            spread(
                role("leader", {**VLLM, "volumeMounts": [{"name": "s", "mountPath": "/dev/shm"}]}),
                role(
                    "worker",
                    {**VLLM, "volumeMounts": [{"name": "s", "mountPath": "/dev/shm"}]},
                    metadata={
                        "name": "n",
                        "annotations": {
                            "nvidia.com/dynamo-discovery-backend": "consul",
                            "nvidia.com/vllm-distributed-executor-backend": "threads",
                            "nvidia.com/deployment-rolling-update-max-surge": "many",
                        },
                    },
                    terminationGracePeriodSeconds=0,
                ),
            )
        ),
        "error: spec.components[0].roles[1].podTemplate.metadata.annotations[\"nvidia.com/vllm-distributed-executor-backend\"]: 'threads' is not allowed; one of 'mp', 'ray'",
        "error: spec.components[0].roles[1].podTemplate.metadata.annotations[\"nvidia.com/deployment-rolling-update-max-surge\"]: 'many' is neither a number of pods nor a percentage; write 1 or 25%",
        "warning: spec.components[0].roles[1].podTemplate.metadata.annotations[\"nvidia.com/dynamo-discovery-backend\"]: 'consul' is not a known backend, so pods get no rights to discover each other; one of 'kubernetes', 'etcd'",
        "warning: spec.components[0].roles[1].podTemplate.spec.terminationGracePeriodSeconds: 0 has no effect: pods get the default of their type; write 1 or more",
        "warning: spec.components[0].roles[0].podTemplate.spec.containers[0].volumeMounts[0]: the platform's /dev/shm replaces it: set the size in sharedMemorySize, or set 0 there to keep this one",
        "warning: spec.components[0].roles[1].podTemplate.spec.containers[0].volumeMounts[0]: the platform's /dev/shm replaces it: set the size in sharedMemorySize, or set 0 there to keep this one",
        "warning: spec.components[0].roles[1].podTemplate.metadata.name: has no effect: pods get only labels and annotations from the metadata of their template",
    ),
    Case(
        "beta: engines of roles",
        components(spread(role("leader", VLLM), role("worker", SGLANG))),
        "error: spec.components[0].roles[1].podTemplate.spec.containers[0]: starts sglang, but spec.components[0].roles[0].podTemplate.spec.containers[0] starts vllm: a graph has one engine",
    ),
    Case(
        "beta: the engine of a role is not the one that is named",
        components(spread(role("leader", VLLM), role("worker", SGLANG)), backendFramework="vllm"),
        "error: spec.components[0].roles[1].podTemplate.spec.containers[0]: starts sglang, but backendFramework is vllm: change one of them, or leave backendFramework out",
    ),
    Case(
        "beta: Grove places the pods of all roles",
        components(spread(role("leader", VLLM), role("worker", VLLM, schedulerName="mine", nodeName="node-1"))),
        "warning: spec.components[0].roles[1].podTemplate.spec.schedulerName: Grove rejects graphs whose pods have several schedulers, and not all pods of this graph name 'mine': name one scheduler for all pods, or disable Grove for this graph",
        "warning: spec.components[0].roles[1].podTemplate.spec.nodeName: Grove places pods itself and rejects new graphs whose pods set this field: leave it out, or disable Grove for this graph",
        facts=GROVE,
    ),
    Case(
        "alpha: fields of a service are of the pods without a template of their role",
        services(
            {
                "a": service(
                    multinode={"nodeCount": 2},
                    roles=[role("leader", VLLM), {"name": "worker"}],
                    resources={"requests": {"gpu": "1"}},
                    volumeMounts=[{"name": "no_claim", "mountPoint": "/x"}],
                    frontendSidecar={"image": "front:1"},
                )
            }
        ),
        "error: spec.services.a.roles[0].podTemplate.spec.containers: lacks 'sidecar-frontend', a container that frontendSidecar requires in the pods of all roles: add it, or leave frontendSidecar out",
        "error: spec.services.a.resources.requests.gpu: needs a limit of the same amount: nvidia.com/gpu cannot be overcommitted",
        "error: spec.services.a.volumeMounts[0].name: is read as the name of a claim, because the pod has no volume of this name, and 'no_claim' is not a valid object name: lower-case letters, digits, '-' and '.', a letter or digit first and last",
    ),
    Case(
        "alpha: a compilation cache is of the pods of all roles",
        services(
            {
                "a": {
                    "componentType": "worker",
                    "multinode": {"nodeCount": 2},
                    "roles": [role("leader", VLLM), role("worker", VLLM, metadata={"name": "n"})],
                    "volumeMounts": [{"name": "compiled", "useAsCompilationCache": True}],
                }
            }
        ),
        "warning: spec.services.a.roles[1].podTemplate.metadata.name: has no effect: pods get only labels and annotations from the metadata of their template",
    ),
    Case(
        "alpha: a frontend sidecar is a container of the service, which no role goes by",
        services(
            {
                "a": {
                    "componentType": "worker",
                    "multinode": {"nodeCount": 2},
                    "roles": [role("leader", VLLM), role("worker", VLLM)],
                    "frontendSidecar": {"image": "front:1"},
                }
            }
        ),
        "error: spec.services.a.frontendSidecar: cannot be combined with templates of all roles, which replace it: leave it out",
    ),
    Case(
        "beta: annotations of a component deployment whose leader has a template",
        manifest(
            "DynamoComponentDeployment",
            "v1beta1",
            spread(role("leader", VLLM), role("worker", VLLM)),
            **annotated(vllm_distributed_executor_backend="mp"),
        ),
        'warning: metadata.annotations["nvidia.com/vllm-distributed-executor-backend"]: has no effect here: write it in spec.roles[0].podTemplate.metadata.annotations',
    ),
]
