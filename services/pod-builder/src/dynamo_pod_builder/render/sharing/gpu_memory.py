"""The GPU memory service: a process that keeps weights in GPU memory. Engines map them instead of loading their own.

Within a pod it is a container that starts before the engine. Between pods it has one pod per rank, on the same GPUs and
so on the same node as the engines, which reach it through a directory of that node (behaviour, sections 3.2 and 4.6).
"""

from collections.abc import Set

from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.registry import env, labels

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.pod.confinement import confined_like
from dynamo_pod_builder.render.pod.env import EnvVar, from_field, var, with_vars, without_vars
from dynamo_pod_builder.render.pod.placement import PodRole
from dynamo_pod_builder.render.sharing import claims
from dynamo_pod_builder.render.sharing.spec import fails_over_between_pods, memory_has_pods, memory_service

#: Directory in the containers of a pod with the sockets of the service, and the lock of engines that fail over.
SOCKETS_WITHIN_POD = "/gms-intrapod-control"
#: A file next to the sockets; the engine that holds its lock serves.
LOCK_FILE = "failover.lock"
_MODULE = "gpu_memory_service.cli.server"
_CLAIM = "intrapod-shared-gpu"
_VOLUME_WITHIN_POD = "gms-intrapod-control"

#: Between pods: a directory of the node, in which each rank of each replica has its own.
_SOCKETS = "/run/gms/shared"
_NODE_DIRECTORY = "/run/gms"
_VOLUME = "gms-shared"
#: Weights and KV cache each have a socket for every GPU.
_SOCKETS_A_GPU = 2
#: How long the service may take to open the sockets: a probe every 2 seconds, 150 times.
_PERIOD, _TRIES = 2, 150


def share(pod: KubeObject, context: PodContext) -> None:
    """Make a pod part of the service, in place: as its server, as its client, or with both inside."""
    if memory_service(context.spec) is None:
        return
    if not memory_has_pods(context.spec):
        _within_pod(pod, context)
    elif context.placement.role is PodRole.MEMORY:
        _serve(pod, context)
    else:
        _use(pod, context)


def _within_pod(pod: KubeObject, context: PodContext) -> None:
    main, *others = pod["containers"]
    clients = {main["name"], *_other_clients(context, {each["name"] for each in others})}
    pod["containers"] = [_client(each) if each["name"] in clients else each for each in pod["containers"]]
    server = {
        "name": "gms-server",
        "image": main["image"],
        "command": ["python3", "-m", _MODULE],
        "env": [_socket_directory()],
        "resources": {**context.config.memory_server.resources(), "claims": [{"name": _CLAIM}]},
        **confined_like(main),
        # This makes it a sidecar: it starts before the engine, and runs as long as the pod.
        "restartPolicy": "Always",
        "volumeMounts": [_socket_mount()],
    }
    pod["initContainers"] = [*pod.get("initContainers", ()), server]
    pod["volumes"] = [*pod.get("volumes", ()), {"name": _VOLUME_WITHIN_POD, "emptyDir": {}}]
    template = names.claim_template(context.graph, context.component)
    pod["resourceClaims"] = [
        *pod.get("resourceClaims", ()),
        {"name": _CLAIM, "resourceClaimTemplateName": template},
    ]
    claims.tolerate_gpu_nodes(pod)


def _other_clients(context: PodContext, there: Set[str]) -> list[str]:
    """Other containers that use the service. Raises RenderError if the pod has no such container."""
    service = memory_service(context.spec)
    named = (service.extra_client_containers if service is not None else None) or []
    for index, name in enumerate(named):
        if name != MAIN and name not in there:
            raise RenderError(
                context.component,
                f"experimental.gpuMemoryService.extraClientContainers[{index}]",
                f"{name!r} is not a container of the pod template",
                "add it to podTemplate.spec.containers",
            )
    return named


def _client(container: KubeObject) -> KubeObject:
    """Let a container share the GPUs of its pod and reach the sockets of the service."""
    made = {**container}
    claims.without_gpus(made)
    claimed = [each for each in made["resources"].get("claims", ()) if each["name"] != _CLAIM]
    made["resources"]["claims"] = [*claimed, {"name": _CLAIM}]
    made["env"] = with_vars(made.get("env") or (), _socket_directory())
    others = [each for each in made.get("volumeMounts") or () if each["name"] != _VOLUME_WITHIN_POD]
    made["volumeMounts"] = [*others, _socket_mount()]
    return made


def _socket_directory() -> EnvVar:
    return var(env.GMS_SOCKET_DIR, SOCKETS_WITHIN_POD)


def _socket_mount() -> KubeObject:
    return {"name": _VOLUME_WITHIN_POD, "mountPath": SOCKETS_WITHIN_POD}


def _serve(pod: KubeObject, context: PodContext) -> None:
    """Make a pod a server. It only holds GPU memory, so the user's other containers stay with the engines."""
    main = pod["containers"][0]
    gpus = claims.gpus_of(context.component, context.template)
    main["command"], main["args"] = ["bash", "-c"], [_SCRIPT]
    for probe in ("livenessProbe", "readinessProbe"):
        main.pop(probe, None)
    main["startupProbe"] = {
        "exec": {"command": ["sh", "-c", _opened(gpus * _SOCKETS_A_GPU)]},
        "periodSeconds": _PERIOD,
        "timeoutSeconds": _PERIOD,
        "failureThreshold": _TRIES,
    }
    main["env"] = with_vars(main["env"], var(env.GMS_SOCKET_DIR, _SOCKETS))
    pod["containers"] = [main]
    pod.pop("initContainers", None)
    _on_node(pod, context)


def _use(pod: KubeObject, context: PodContext) -> None:
    """Make a pod an engine's: it is ready when it holds the lock, whether or not another engine exists."""
    main = pod["containers"][0]
    main["env"] = with_vars(
        without_vars(main["env"], env.DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS),
        from_field(env.ENGINE_ID, f"metadata.labels['{labels.GROVE_POD_INDEX}']"),
        var(env.GMS_SOCKET_DIR, _SOCKETS),
        var(env.FAILOVER_LOCK_PATH, f"{_SOCKETS}/{LOCK_FILE}"),
        var(env.DYN_SYSTEM_STARTING_HEALTH_STATUS, "notready"),
    )
    _on_node(pod, context)
    if fails_over_between_pods(context.spec):
        # The other ranks of a failed engine wait for it without end: the whole engine is replaced, never one container.
        pod["restartPolicy"] = "Never"


def _on_node(pod: KubeObject, context: PodContext) -> None:
    """Mount the directory of the rank, and remove the pod's GPUs: Grove adds the claim that the rank's pods share."""
    main = pod["containers"][0]
    mount = {
        "name": _VOLUME,
        "mountPath": _SOCKETS,
        "subPathExpr": f"$({env.GROVE_PCSG_NAME})-$({env.GROVE_PCSG_INDEX})/rank-{context.placement.memory_rank}",
    }
    opens = {
        "name": "fix-gms-perms",
        "image": main["image"],
        "command": ["sh", "-c", f"chmod 1777 {_SOCKETS}"],
        "resources": context.config.init_container.resources(),
        # The kubelet creates the directory only for root; engines may run as any user.
        "securityContext": {"runAsUser": 0, "runAsNonRoot": False},
        "volumeMounts": [{**mount}],
    }
    claims.without_gpus(main)
    main["volumeMounts"] = [*main.get("volumeMounts", ()), mount]
    directory = {"path": _NODE_DIRECTORY, "type": "DirectoryOrCreate"}
    pod["volumes"] = [*pod.get("volumes", ()), {"name": _VOLUME, "hostPath": directory}]
    pod["initContainers"] = [*pod.get("initContainers", ()), opens]
    claims.tolerate_gpu_nodes(pod)


def _opened(sockets: int) -> str:
    return f"test $(ls {_SOCKETS}/gms_*.sock 2>/dev/null | wc -l) -ge {sockets}"


#: A predecessor's sockets would count as open. The server's exit code is the container's; its children end with it.
_SCRIPT = "\n".join(
    (
        f"rm -f {_SOCKETS}/gms_*.sock",
        "rc=1",
        'cleanup() { kill -- -$$ 2>/dev/null; exit "$rc"; }',
        "trap cleanup SIGTERM SIGINT",
        f"python3 -m {_MODULE} &",
        'echo "Started GMS server pid=$!"',
        "wait -n",
        "rc=$?",
        'echo "GMS server exited (code=$rc), shutting down"',
        "cleanup",
    )
)
