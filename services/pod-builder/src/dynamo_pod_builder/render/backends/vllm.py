"""vLLM: one engine across several nodes by its own processes or by Ray, or data-parallel engines side by side.

The choice, and the flags of each mode, are the reference's (behaviour, section 4.3).
"""

from dataclasses import dataclass
from enum import StrEnum

from dynamo_shared.api import semver
from dynamo_shared.api.engines.started import SHELL, is_own_launch, line_of, takes_flags
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.registry import env, ports
from dynamo_shared.api.registry.annotations import OPERATOR_ORIGIN_VERSION, VLLM_DISTRIBUTED_EXECUTOR_BACKEND
from dynamo_shared.api.runtime_version import features_of

from dynamo_pod_builder.render.backends import commandline
from dynamo_pod_builder.render.backends.base import EngineBackend, without_probes
from dynamo_pod_builder.render.backends.commandline import CommandLine
from dynamo_pod_builder.render.backends.node_gpus import gpus_of_node
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.pod.env import EnvVar, from_field, var, with_vars
from dynamo_pod_builder.render.pod.placement import Group, PodRole
from dynamo_pod_builder.render.pod.topology_names import missing_topology_names
from dynamo_pod_builder.render.sharing.spec import fails_over_between_pods, fails_over_within_pod, memory_has_pods
from dynamo_pod_builder.render.workloads import leader_wait

#: Graphs that were created by this version or later use vLLM's own processes, earlier ones Ray.
MULTIPROCESSING_SINCE = "1.0.0"

_TENSOR = ("--tensor-parallel-size", "-tp")
_PIPELINE = ("--pipeline-parallel-size", "-pp")
_DATA = ("--data-parallel-size", "-dp")
_ELASTIC = "--enable-elastic-ep"
_DATA_BACKEND = ("--data-parallel-backend", "-dpb")
_RAY_HEAD = f"ray start --head --port={ports.VLLM_RAY.number}"
_EXECUTOR = "--distributed-executor-backend"
#: The beginning of the flags that the platform gives to an engine that spreads by its own processes.
_BY_PROCESSES = f"{_EXECUTOR} mp --nnodes "
_MASTER_PORT, _RPC_PORT = "--master-port", "--data-parallel-rpc-port"
_LOAD_FORMAT = "--load-format"
_SHADOW_MODE = var(env.DYN_VLLM_GMS_SHADOW_MODE, "true")


class MultinodeMode(StrEnum):
    """How one or several engines use the nodes of a group."""

    PROCESSES = "mp"
    RAY = "ray"
    ELASTIC = "elastic"
    DATA_PARALLEL = "data-parallel"
    SEPARATE = ""


@dataclass(frozen=True, slots=True)
class ParallelLayout:
    """The parallel layout that the engine's flags request, and the GPUs of a node."""

    line: CommandLine
    gpus: int
    #: GPUs of one engine.
    world: int
    #: Engines that share the requests.
    engines: int

    @property
    def engines_a_node(self) -> int:
        """Whole engines that fit on a node."""
        return max(1, self.gpus // self.world)


class Vllm(EngineBackend):
    """vLLM workers."""

    name = "vllm"

    def update_container(self, container: KubeObject, context: PodContext) -> None:
        """Add the flags of a group and of shared GPU memory, and the directory of the compilation cache."""
        placement = context.placement
        if placement.memory_rank is not None:
            if placement.role is not PodRole.MEMORY:
                _load_from_memory(container, context)
            # With this variable an engine waits for another one to fail, even if there is no other.
            if fails_over_between_pods(context.spec):
                container["env"] = with_vars(container["env"], _SHADOW_MODE)
        if placement.group is not None and context.has_own_commands:
            _meet_at_port(container, context)
            container["env"] += _side_channel(context)
        elif placement.group is not None:
            if is_own_launch(line_of(container), self.name):
                container["env"] += missing_topology_names(container, context)
            else:
                layout = _layout(container, context)
                mode = mode_of(layout, context)
                _check_engines(context, mode)
                _distribute(container, context, layout, placement.group, mode)
            if placement.role is PodRole.WORKER:
                without_probes(container)
            container["env"] += _side_channel(context)
        elif has_ray_head(container, context):
            _check_engines(context, MultinodeMode.ELASTIC)
            _head_alone(container, context)
        cache = context.spec.compilation_cache
        if cache is not None and all(each["name"] != env.VLLM_CACHE_ROOT for each in container["env"]):
            container["env"].append(var(env.VLLM_CACHE_ROOT, cache.mount_path or self.traits.compilation_cache_path))

    def update_engine(self, engine: KubeObject, number: int, context: PodContext) -> None:
        """Set separate ports, because the engines of a pod share the pod's address."""
        variables = [
            _SHADOW_MODE,
            var(env.VLLM_NIXL_SIDE_CHANNEL_PORT, str(ports.VLLM_NIXL_SIDE_CHANNEL.number + number)),
            var(env.DYN_VLLM_KV_EVENT_PORT, str(ports.VLLM_KV_EVENTS.number + number)),
        ]
        if context.nodes > 1:
            variables.append(var(env.NNODES, str(context.nodes)))
        engine["env"] = with_vars(engine["env"], *variables)
        if number:
            _move_ports(engine, context.component, number)

    def update_pod(self, pod: KubeObject, context: PodContext) -> None:
        """Make a worker wait for its leader, because its processes end when they do not find the leader.

        They meet at the port of their mode: at any other port a worker would wait without end.
        """
        placement = context.placement
        if placement.group is None or placement.role is not PodRole.WORKER or not context.of_graph:
            return
        main = next(each for each in pod["containers"] if each["name"] == MAIN)
        words, master = line_of(main), _master_port(main, context)
        if master == ports.VLLM_MASTER.number if context.has_own_commands else _BY_PROCESSES in " ".join(words):
            port, how = master, MultinodeMode.PROCESSES
        elif _ray_worker(placement.group) in words and features_of(context.spec.runtime_version_override).ray_waits:
            port, how = ports.VLLM_RAY.number, MultinodeMode.RAY
        else:
            return
        if port is None:
            return
        resources = context.config.init_container.resources()
        leader_wait.for_leader(pod, context.graph, main, placement.group, port, how=how, resources=resources)


def _side_channel(context: PodContext) -> list[EnvVar]:
    return [from_field(env.VLLM_NIXL_SIDE_CHANNEL_HOST, "status.podIP")] if multiprocessing(context) else []


def _meet_at_port(container: KubeObject, context: PodContext) -> None:
    """Set the port at which processes meet, if the command's author omits it: workers wait for their leader there."""
    line = commandline.as_written(context.component, container)
    if line.flag(_EXECUTOR) == "mp" and line.flag(_MASTER_PORT) is None and takes_flags(line_of(container)):
        port = [_MASTER_PORT, str(ports.VLLM_MASTER.number)]
        container["command"], container["args"] = line.with_flags(port, Vllm.name)


def _master_port(container: KubeObject, context: PodContext) -> int | None:
    """The port at which processes meet; None if only the container will know it, or if they do not meet.

    In a script the author's flags follow those of the platform, and of repeated flags the last one counts.
    """
    line = commandline.as_written(context.component, container)
    port = line.number(_MASTER_PORT)
    return port if port > 1 and line.flag(_EXECUTOR) == "mp" else None


def multiprocessing(context: PodContext) -> bool:
    """Whether vLLM spreads by its own processes: by the annotation, otherwise by the version that created the graph."""
    annotations = context.template_annotations
    chosen = annotations.get(VLLM_DISTRIBUTED_EXECUTOR_BACKEND, "").lower()
    if chosen in ("mp", "ray"):
        return chosen == "mp"
    return semver.at_least(annotations.get(OPERATOR_ORIGIN_VERSION), MULTIPROCESSING_SINCE)


def has_ray_head(container: KubeObject, context: PodContext) -> bool:
    """Whether an engine on one node starts a Ray head first: it has elastic experts, which it spreads by Ray.

    Without a command, its image has the entry point, and nothing can be started before that.
    """
    if context.nodes > 1 or memory_has_pods(context.spec) or not container.get("command"):
        return False
    if context.runtime_sidecar is not None:
        # The engine does not belong to Dynamo, and starts as its author wrote it.
        return False
    if not features_of(context.spec.runtime_version_override).ray_head:
        return False
    line = commandline.as_written(context.component, container)
    return _ELASTIC in line.words and line.flag(*_DATA_BACKEND) == "ray"


def _head_alone(container: KubeObject, context: PodContext) -> None:
    """Start Ray under the pod's address, and then the engine as the container's own process, so that it gets SIGTERM.

    With one engine, vLLM expects the head only at VLLM_DP_MASTER_IP.
    """
    there = {each["name"] for each in container["env"]}
    address = [from_field(name, "status.podIP") for name in (env.POD_IP, env.VLLM_DP_MASTER_IP) if name not in there]
    container["env"] += address
    head = f'{_RAY_HEAD} --node-ip-address="${env.POD_IP}" --block'
    script = f"{head} & {_ray_is_up()} && exec {commandline.as_written(context.component, container).quoted}"
    container["command"], container["args"] = [*SHELL], [script]


def mode_of(layout: ParallelLayout, context: PodContext) -> MultinodeMode:
    """How a graph's flags use several nodes."""
    if layout.world > layout.gpus:
        return MultinodeMode.PROCESSES if multiprocessing(context) else MultinodeMode.RAY
    if _ELASTIC in layout.line.words:
        return MultinodeMode.ELASTIC
    if layout.world * layout.engines > layout.gpus:
        return MultinodeMode.DATA_PARALLEL
    return MultinodeMode.SEPARATE


def _check_engines(context: PodContext, mode: MultinodeMode) -> None:
    if fails_over_within_pod(context.spec) and mode in (MultinodeMode.RAY, MultinodeMode.ELASTIC):
        raise RenderError(
            context.component,
            "experimental.failover",
            "both engines of a pod would start Ray on the same port",
            f"set the annotation {VLLM_DISTRIBUTED_EXECUTOR_BACKEND} to mp"
            if mode is MultinodeMode.RAY
            else f"remove failover or {_ELASTIC}",
        )


def _layout(container: KubeObject, context: PodContext) -> ParallelLayout:
    line = commandline.read(context.component, container)
    count = gpus_of_node(
        container, context, "the distribution of an engine over nodes depends on the GPUs of each node"
    )
    return ParallelLayout(line, count, line.number(*_TENSOR) * line.number(*_PIPELINE), line.number(*_DATA))


def _load_from_memory(container: KubeObject, context: PodContext) -> None:
    """Load weights from the GPU memory service, unless the flags name another source."""
    line = commandline.read(context.component, container)
    if line.flag(_LOAD_FORMAT) is None:
        container["command"], container["args"] = line.with_flags([_LOAD_FORMAT, "gms"], Vllm.name)


def _move_ports(engine: KubeObject, component: str, number: int) -> None:
    """Give an engine, and engines side by side, other ports than those of the pod's first engine."""
    apart = number * (ports.VLLM_SHADOW_MASTER.number - ports.VLLM_MASTER.number)
    line = commandline.read(component, engine)
    master = [_MASTER_PORT, str(ports.VLLM_MASTER.number + apart)]
    engine["command"], engine["args"] = line.raised(_MASTER_PORT, apart) or line.with_flags(master, Vllm.name)
    coordinating = commandline.read(component, engine).raised(_RPC_PORT, apart)
    if coordinating is not None:
        engine["command"], engine["args"] = coordinating


def _distribute(
    container: KubeObject, context: PodContext, layout: ParallelLayout, group: Group, mode: MultinodeMode
) -> None:
    leads = context.placement.role is PodRole.LEADER
    match mode:
        case MultinodeMode.PROCESSES:
            _processes(container, context, layout, group)
        case MultinodeMode.DATA_PARALLEL:
            _data_parallel(container, context, layout, group)
        case MultinodeMode.RAY if leads:
            started = layout.line.behind(f"{_RAY_HEAD} &&", [_EXECUTOR, "ray"], Vllm.name)
            container["command"], container["args"] = started
        case MultinodeMode.ELASTIC if leads:
            container["command"], container["args"] = layout.line.behind(f"{_RAY_HEAD} --block & {_ray_is_up()} &&")
        case MultinodeMode.RAY:
            container["command"], container["args"] = [*SHELL], [_ray_worker(group)]
        case MultinodeMode.ELASTIC:
            # If a worker joined before the engine runs, the engine would count it as a node that it may use at once.
            script = f"{_leader_is_live(group)} && {_ray_worker(group)}"
            container["command"], container["args"] = [*SHELL], [script]


def _processes(container: KubeObject, context: PodContext, layout: ParallelLayout, group: Group) -> None:
    placement = context.placement
    flags = [_EXECUTOR, "mp", "--nnodes", str(placement.nodes), "--master-addr", group.leader_host]
    flags += [_MASTER_PORT, str(ports.VLLM_MASTER.number), "--node-rank", placement.rank]
    if placement.role is PodRole.WORKER:
        flags.append("--headless")
    container["command"], container["args"] = layout.line.with_flags(flags, Vllm.name, shell=placement.rank_needs_shell)


def _data_parallel(container: KubeObject, context: PodContext, layout: ParallelLayout, group: Group) -> None:
    placement, local = context.placement, layout.engines_a_node
    worker = placement.role is PodRole.WORKER
    first = f"$(( {local} * {group.shell_rank} ))" if worker else "0"
    flags = ["--data-parallel-hybrid-lb", "--data-parallel-size-local", str(local), "--data-parallel-start-rank", first]
    flags += ["--data-parallel-address", group.leader_host]
    flags += [_RPC_PORT, str(ports.VLLM_DATA_PARALLEL_RPC.number)]
    container["command"], container["args"] = layout.line.with_flags(flags, Vllm.name, shell=worker)


def _ray_worker(group: Group) -> str:
    return f"ray start --address={group.leader_host}:{ports.VLLM_RAY.number} --block"


def _ray_is_up() -> str:
    """A shell loop that ends when Ray's head answers on this node, and fails after five minutes."""
    return (
        f"{{ tries=0; until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {ports.VLLM_RAY.number}), 2)' "
        "2>/dev/null; do tries=$((tries+1)); [ $tries -lt 150 ] || exit 1; sleep 2; done; }"
    )


def _leader_is_live(group: Group) -> str:
    """A shell loop that ends when the leader's engine is live, and fails after three hours, because loading takes long."""
    live = f"http://{group.leader_host}:{ports.SYSTEM.number}/live"
    return (
        f"{{ tries=0; until python3 -c 'import urllib.request; urllib.request.urlopen(\"{live}\", timeout=5)' "
        "2>/dev/null; do tries=$((tries+1)); [ $tries -lt 720 ] || exit 1; sleep 15; done; }"
    )
