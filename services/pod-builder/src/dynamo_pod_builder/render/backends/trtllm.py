"""TensorRT-LLM: mpirun on the leader starts the engine's ranks on the workers, over ssh."""

from collections.abc import Iterable

from dynamo_shared.api.engines.started import SHELL, is_own_launch, line_of
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import env, ports
from dynamo_shared.api.runtime_version import features_of

from dynamo_pod_builder.render.backends import commandline
from dynamo_pod_builder.render.backends.base import EngineBackend
from dynamo_pod_builder.render.backends.node_gpus import gpus_of_node
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.pod.env import var
from dynamo_pod_builder.render.pod.placement import Group, PodRole

_KEYS = "/ssh-pk"
_HOME = "$HOME/.ssh"
_PORT = ports.MPI_SSH.number
#: Variables that engines read in addition to the container's own; mpirun passes on only listed ones.
_PASSED_ON = (
    "CUDA_VISIBLE_DEVICES",
    "HF_DATASETS_CACHE",
    "HF_ENDPOINT",
    "HF_HOME",
    "HF_TOKEN",
    "HOME",
    "HUGGING_FACE_HUB_TOKEN",
    "LD_LIBRARY_PATH",
    "MODEL_PATH",
    "NCCL_DEBUG",
    "NCCL_IB_DISABLE",
    "NCCL_P2P_DISABLE",
    "PATH",
    "PYTHONPATH",
    "TENSORRT_LLM_CACHE_DIR",
    "TOKENIZERS_PARALLELISM",
    "TRANSFORMERS_CACHE",
    "TRTLLM_USE_UCX_KVCACHE",
    "USER",
)
#: Further variables, for runtimes whose images set them.
_COMPILERS = ("CPATH", "TRITON_PTXAS_PATH")
#: How long workers' names may take to resolve. Seconds.
_NAMES_WITHIN = 300
_SSHD_ANSWERS = {
    "tcpSocket": {"port": _PORT},
    "initialDelaySeconds": 20,
    "periodSeconds": 20,
    "timeoutSeconds": 5,
    "failureThreshold": 10,
}


class TrtLlm(EngineBackend):
    """TensorRT-LLM workers."""

    name = "trtllm"

    def update_container(self, container: KubeObject, context: PodContext) -> None:
        """The leader runs the engine on all nodes; a worker waits for it with sshd (behaviour, section 4.5)."""
        placement = context.placement
        if placement.group is None:
            return
        mount = {"name": context.config.ssh_secret, "mountPath": _KEYS, "readOnly": True}
        container["volumeMounts"] = [*container.get("volumeMounts", ()), mount]
        # If mpirun cut a name at its first dot, the cluster's DNS would not know it.
        container["env"].append(var(env.OMPI_MCA_ORTE_KEEP_FQDN_HOSTNAMES, "1"))
        if context.has_own_commands:
            if placement.role is PodRole.WORKER:
                container["readinessProbe"] = {**_SSHD_ANSWERS}
            return
        if placement.role is PodRole.LEADER:
            script = _leader(container, context, placement.group)
        else:
            script = _worker()
            container.pop("livenessProbe", None)
            container.pop("startupProbe", None)
            container["readinessProbe"] = {**_SSHD_ANSWERS}
        container["command"], container["args"] = [*SHELL], [script]

    def update_pod(self, pod: KubeObject, context: PodContext) -> None:
        """Mount the keys, from a Secret that the namespace's graphs share."""
        if context.placement.group is None:
            return
        name = context.config.ssh_secret
        keys = {"name": name, "secret": {"secretName": name, "defaultMode": 0o644}}
        pod["volumes"] = [*pod.get("volumes", ()), keys]


def _leader(container: KubeObject, context: PodContext, group: Group) -> str:
    nodes, count = context.placement.nodes, gpus_of_node(container, context, "mpirun starts one rank for each GPU")
    # mpirun starts any program, without adding flags.
    read = commandline.as_written if is_own_launch(line_of(container), TrtLlm.name) else commandline.read
    engine = read(context.component, container).launched("trtllm-llmapi-launch", TrtLlm.name)
    steps = [_keys(_HOME)]
    if group.names_come_late:
        steps.append(_until_names_resolve(group.worker_hosts))
    compilers = _COMPILERS if features_of(context.spec.runtime_version_override).compilers else ()
    # The engine's line is inside single quotes, so a single quote in it must close and reopen them.
    launched = engine.replace("'", "'\"'\"'")
    steps.append(
        'mpirun $([ "$(id -u)" = "0" ] && echo --allow-run-as-root) --oversubscribe '
        f"-n {nodes * count} -H {','.join((group.leader_host, *group.worker_hosts))} --mca pml ob1 "
        f'--mca plm_rsh_args "-p {_PORT} -o StrictHostKeyChecking=no -i {_HOME}/id_rsa" '
        f"{_variables([*_propagated_variables(container), *compilers])} bash -c '{launched}'"
    )
    return " && ".join(steps)


def _propagated_variables(container: KubeObject) -> Iterable[str]:
    """Variables of the leader's container that ranks on other nodes also get: all except its own rank."""
    return (each["name"] for each in container["env"] if each["name"] != env.DYNAMO_RANK)


def _worker() -> str:
    hosts = f"{_HOME}/host_keys"
    kinds = ("rsa", "ecdsa", "ed25519")
    keys = [f"ssh-keygen -t {kind} -f {hosts}/ssh_host_{kind}_key -N ''" for kind in kinds]
    lines = [
        f"Port {_PORT}",
        *(f"HostKey '$HOME'/.ssh/host_keys/ssh_host_{kind}_key" for kind in kinds),
        "PidFile '$HOME'/.ssh/run/sshd.pid",
        "StrictModes no",
        "PermitRootLogin yes",
        "PasswordAuthentication no",
        "PubkeyAuthentication yes",
        "AuthorizedKeysFile '$HOME'/.ssh/authorized_keys",
    ]
    configuration = f"{_printed(lines)} > {_HOME}/sshd_config"
    run = f"/usr/sbin/sshd -D -f {_HOME}/sshd_config"
    return " && ".join([_keys(f"{_HOME} {hosts} {_HOME}/run"), *keys, configuration, run])


def _keys(folders: str) -> str:
    """Commands that put the shared key pair where ssh expects it, with the modes that ssh requires."""
    lines = ["Host *", "IdentityFile '$HOME'/.ssh/id_rsa", "StrictHostKeyChecking no", f"Port {_PORT}"]
    return " && ".join(
        [
            f"mkdir -p {folders}",
            f"ls -la {_KEYS}/",
            f"cp {_KEYS}/private.key {_HOME}/id_rsa",
            f"cp {_KEYS}/private.key.pub {_HOME}/id_rsa.pub",
            f"cp {_KEYS}/private.key.pub {_HOME}/authorized_keys",
            f"chmod 600 {_HOME}/id_rsa {_HOME}/authorized_keys",
            f"chmod 644 {_HOME}/id_rsa.pub",
            f"{_printed(lines)} > {_HOME}/config",
        ]
    )


def _printed(lines: Iterable[str]) -> str:
    return f"printf '{''.join(f'{line}{chr(92)}n' for line in lines)}'"


def _until_names_resolve(hosts: Iterable[str]) -> str:
    return (
        f"TIMEOUT={_NAMES_WITHIN}; START_TIME=$(date +%s); for worker in {' '.join(hosts)}; do "
        'echo "Waiting for DNS: $worker"; until getent hosts $worker >/dev/null 2>&1; do CURRENT_TIME=$(date +%s); '
        'if [ $((CURRENT_TIME - START_TIME)) -gt $TIMEOUT ]; then echo "ERROR: Timeout waiting for DNS: $worker"; exit 1; fi; '
        'echo "DNS not ready for $worker, retrying..."; sleep 2; done; echo "✓ DNS resolved: $worker"; done; '
        'echo "All workers DNS ready"'
    )


def _variables(names: Iterable[str]) -> str:
    return " ".join(f"-x {name}" for name in sorted({*names, *_PASSED_ON}))
