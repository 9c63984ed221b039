"""Which engine a component runs, and what that engine needs: rendering would refuse the rest later."""

from collections.abc import Iterator

from dynamo_shared.api import gpus
from dynamo_shared.api.engines import BACKENDS, CHOICE
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.objects import MAIN
from dynamo_shared.api.registry.annotations import KAI_SCHEDULER_QUEUE, VOLCANO_QUEUE
from dynamo_shared.api.untrusted.reading import annotation, items, mapping, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.pods import main_claims, main_resources
from dynamo_shared.api.validation.rule_set import COMPONENT, GRAPH, RuleSet, Violations, broken, listed, path
from dynamo_shared.api.validation.view import ComponentView, GraphView, of_each_role

RUNNING_OF_GRAPHS = RuleSet("What runs", (GRAPH,))
RUNNING = RuleSet("What runs", (GRAPH, COMPONENT))
RUNNING_ALONE = RuleSet("What runs", (COMPONENT,))
RUNTIME_RULES = RuleSet("What runs", (GRAPH, COMPONENT))


@RUNNING_OF_GRAPHS.rule("starts {engine}, but {first} starts {other}: a graph has one engine", added=True)
def workers_run_one_engine(graph: GraphView, _facts: Facts) -> Violations:
    """All workers of a graph start the same engine."""
    if graph.backend:
        # Another rule compares each of them with the named engine.
        return
    first: ComponentView | None = None
    for component in (each for one in graph.components for each in one.of_each_role):
        if len(component.started) != 1:
            continue
        first = first or component
        if component.started != first.started:
            where = path(first.main.at if first.has_own_template else first.at)
            yield broken(component.main.at, engine=component.engine, first=where, other=first.engine)


@RUNNING_OF_GRAPHS.rule("a pod has one scheduler, but {other} names another one: leave one of the two out", added=True)
def pods_have_one_scheduler(graph: GraphView, _facts: Facts) -> Violations:
    """A graph's pods wait in a queue of Volcano or of KAI, not of both."""
    queues = [(annotation(graph.annotations, name) or "").strip() for name in (VOLCANO_QUEUE, KAI_SCHEDULER_QUEUE)]
    if all(queues):
        yield broken(("metadata", "annotations", VOLCANO_QUEUE), other=KAI_SCHEDULER_QUEUE)


_ENGINES_DIFFER = (
    "starts {engine}, but backendFramework is {backend}: change one of them, or leave backendFramework out"
)
_SEVERAL_ENGINES = "starts several engines ({engines}), but a component has one: write a component for each engine"


@RUNNING.rule(_ENGINES_DIFFER, _SEVERAL_ENGINES, added=True)
@of_each_role
def engine_is_the_one_that_is_named(component: ComponentView, _facts: Facts) -> Violations:
    """The command of a worker starts one engine: the one in backendFramework, if that is set."""
    if len(component.started) == 1:
        # Another rule refuses a backend that does not exist.
        if component.backend in BACKENDS and component.engine != component.backend:
            message = _ENGINES_DIFFER.format(engine=component.engine, backend=component.backend)
            yield component.main.at, message
    elif component.started and not component.backend:
        yield component.main.at, _SEVERAL_ENGINES.format(engines=listed(sorted(component.started)))


_NO_ENGINE_TYPE = (
    "not allowed for {type} {observed}, which runs no engine that could use several nodes: write 'worker', "
    "'prefill' or 'decode', or leave multinode out"
)
_NO_ENGINE = (
    "the engine connects the {nodes} nodes of a replica, but the platform does not know the engine: set "
    "backendFramework to {choice}, or start the engine with python3 -m dynamo.<engine>"
)


@RUNNING.rule(_NO_ENGINE_TYPE, _NO_ENGINE, added=True, of="multinode")
def nodes_are_connected_by_an_engine(component: ComponentView, _facts: Facts) -> Violations:
    """Replicas can span nodes only if the platform knows the engine, because each engine has its own flags to connect nodes."""
    # Another rule covers endpoint pickers.
    if component.nodes < 2 or component.type == "epp":
        return
    # If roles have templates, their author connects the nodes.
    if not component.is_worker:
        observed = shown(component.type) if component.type else "none"
        yield (component.field("multinode"), _NO_ENGINE_TYPE.format(type=component.words.type, observed=observed))
    elif not component.engine and not component.started and not component.role_templates:
        yield component.field("multinode"), _NO_ENGINE.format(nodes=component.nodes, choice=CHOICE)


#: Engines whose layout over nodes depends on the number of GPUs of a node.
_COUNT_GPUS = frozenset({"vllm", "trtllm"})


@RUNNING.rule("{engine} on several nodes needs the number of GPUs of each node: set it in {gpus}", added=True)
def nodes_have_a_number_of_gpus(component: ComponentView, _facts: Facts) -> Violations:
    """On several nodes, vLLM and TensorRT-LLM need the number of GPUs of one node, from resources or from claims."""
    if component.nodes < 2 or component.engine not in _COUNT_GPUS or component.gms is not None:
        return
    if component.role_templates or (component.engine == "vllm" and component.is_own_launch):
        return
    # The claims may not exist yet: the pod builder reads them later, and reports claims without GPUs.
    if not gpus.count({"resources": main_resources(component)}) and not main_claims(component):
        yield broken(component.field("multinode"), engine=component.engine, gpus=component.words.gpus)


@RUNNING.rule(
    "starts {program}, to which the platform cannot add the flags for {features}: set command to python3 -m "
    "dynamo.{engine}, or to a shell with a script that starts it",
    added=True,
)
def flags_have_a_place(component: ComponentView, _facts: Facts) -> Violations:
    """Shared GPU memory between pods, failover and multinode need flags, which only Python or a shell script gets."""
    features = ", ".join(_features_with_flags(component))
    # A command may be added later, like an image.
    if component.engine in BACKENDS and features and component.has_command and not component.takes_flags:
        yield broken(component.main.at, program=component.program, features=features, engine=component.engine)


def _features_with_flags(component: ComponentView) -> Iterator[str]:
    # A program of the user may connect the nodes itself.
    if component.nodes > 1 and not component.role_templates and not component.is_own_launch:
        yield "multinode"
    if component.engine == "vllm" and component.gms is not None and component.gms.inter_pod:
        yield "gpuMemoryService"
    if component.engine == "vllm" and component.failover is not None and not component.failover.inter_pod:
        yield "failover"


@RUNNING.rule("only vLLM can fail over within a pod, but the engine is {engine}: leave failover out", added=True)
def engines_can_fail_over(component: ComponentView, _facts: Facts) -> Violations:
    """Within a pod, only vLLM can fail over. Another rule covers failover between pods, for the whole graph."""
    failover = component.failover
    if failover is None or failover.inter_pod or not component.is_worker:
        return
    known = BACKENDS.get(component.engine)
    if not known.pods.fails_over if known is not None else component.has_command:
        yield broken(failover.at, engine=component.engine or "not known")


_NO_MODEL = "not allowed for {type} {observed}, which loads no model: leave the checkpoint out"
_SEVERAL_NODES = "cannot be combined with multinode: a checkpoint contains one pod; leave one of the two out"


@RUNNING.rule(_NO_MODEL, _SEVERAL_NODES, added=True, of="checkpoint")
def checkpoints_are_of_one_pod_with_a_model(component: ComponentView, _facts: Facts) -> Violations:
    """A component that starts from a checkpoint loads a model, and runs in one pod."""
    if component.checkpoint is None:
        return
    if component.type in ("frontend", "planner", "epp"):
        yield component.checkpoint, _NO_MODEL.format(type=component.words.type, observed=shown(component.type))
    if component.nodes > 1:
        yield component.checkpoint, _SEVERAL_NODES


@RUNNING.rule(
    "{name} cannot be restored: a DynamoCheckpoint restores only the container main; leave this field or identity out",
    added=True,
    of="checkpoint",
)
def dynamo_checkpoints_are_of_main(component: ComponentView, _facts: Facts) -> Violations:
    """A DynamoCheckpoint restores only the container main."""
    start = component.start
    target = start.get("targetContainerName")
    of_identity = start.get("identity") is not None and not start.get("checkpointRef")
    if component.checkpoint is not None and of_identity and isinstance(target, str) and target not in ("", MAIN):
        yield broken((*component.checkpoint, "targetContainerName"), name=shown(target))


_NO_WORKER = "the platform checkpoints only workers: set {type} to worker, prefill or decode, or name a checkpoint"
_NO_CLIENTS = "the platform does not checkpoint engines with a GPU memory service: leave this field out"


@RUNNING.rule(_NO_WORKER, _NO_CLIENTS, added=True, of="checkpoint")
def checkpoints_are_taken_of_workers(component: ComponentView, _facts: Facts) -> Violations:
    """The platform takes a checkpoint automatically only of a component with the type of a worker."""
    if component.checkpoint is None or not component.takes_checkpoint:
        return
    if not component.type:
        yield component.checkpoint, _NO_WORKER.format(type=component.words.type)
    if mapping(component.start.get("job")).get("gmsClientContainers"):
        yield (*component.checkpoint, "job", "gmsClientContainers"), _NO_CLIENTS


@RUNNING_ALONE.rule("{mode} needs Grove, which runs graphs only: write {other}, or a DynamoGraphDeployment", added=True)
def pods_share_gpu_memory_in_graphs(component: ComponentView, _facts: Facts) -> Violations:
    """Pods of a component deployment cannot share GPU memory with each other."""
    gms = component.gms
    if gms is not None and gms.inter_pod:
        yield broken((*gms.at, "mode"), mode=shown(gms.mode), other=component.words.intra_pod)


@RUNTIME_RULES.rule(
    "has no effect, because checkpoints are disabled on this platform: set checkpoint.enabled in the operator "
    "configuration, or leave the checkpoint out",
    added=True,
    of="checkpoint",
)
def checkpoints_are_enabled(component: ComponentView, facts: Facts) -> Violations:
    """A component starts without its checkpoint while the platform has none. They may be enabled later."""
    if component.checkpoint is not None and facts.checkpoints is False:
        yield broken(component.checkpoint)


#: Engines that connect their processes on several nodes by flags.
_CONNECTED_BY_FLAGS = frozenset({"vllm", "sglang"})


@RUNTIME_RULES.rule(
    "starts {program}, to which the platform cannot add flags for several nodes: the program must connect the "
    "nodes itself, by DYNAMO_RANK and DYNAMO_LEADER_ADDRESS; or set command to python3 -m dynamo.{engine}",
    added=True,
    of="multinode",
)
def own_programs_connect_their_nodes(component: ComponentView, _facts: Facts) -> Violations:
    """The platform adds the flags that connect several nodes only to Python, or to a shell script that starts the engine."""
    if component.nodes < 2 or component.role_templates or component.engine not in _CONNECTED_BY_FLAGS:
        return
    if component.is_own_launch:
        yield broken(component.main.at, program=component.program, engine=component.engine)


@RUNTIME_RULES.rule(
    "without a command, /bin/sh -c runs {flag} as a script, even if the image has an entrypoint: set command to "
    "the program for these args, such as python3 -m dynamo.{module}",
    added=True,
)
@of_each_role
def flags_have_a_program(component: ComponentView, _facts: Facts) -> Violations:
    """Arguments without a command run as a shell script, except for frontends and endpoint pickers: flags alone start nothing."""
    main, at = component.main
    if component.type in ("frontend", "epp") or main.get("command"):
        return
    flag = text(next(iter(items(main.get("args"))), None))
    # If the runtime is a sidecar, the engine starts with the command of its image.
    if flag.startswith("-") and not component.runtime_is_sidecar:
        module = "planner" if component.type == "planner" else component.engine or "vllm"
        yield broken((*at, "args", 0), flag=shown(flag), module=module)
