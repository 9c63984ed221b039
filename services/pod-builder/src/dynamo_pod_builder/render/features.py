"""Features of components that this platform cannot run: refused by name, not half done."""

from collections.abc import Iterator

from dynamo_shared.api.objects import RUNTIME, KubeObject
from dynamo_shared.api.replica_limits import MAX_NODES
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, LEADER_WORKER_SETS, POD_CLIQUE_SETS
from dynamo_shared.api.role_templates import ROLES
from dynamo_shared.api.v1beta1 import BackendFramework, ComponentSpec, ComponentType

from dynamo_pod_builder.render.backends import backend_named
from dynamo_pod_builder.render.config import RenderConfig
from dynamo_pod_builder.render.context import WORKERS, has_role_templates, role_template
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.pod.template import runtime_sidecar
from dynamo_pod_builder.render.sharing.spec import fails_over, memory_has_pods, memory_service

#: Limit if each node of a replica has cliques for its GPU memory: a much larger PodCliqueSet cannot be stored.
MOST_NODES_WITH_CLIQUES = 64


def check_component(name: str, spec: ComponentSpec, *, multinode: bool) -> None:
    """Raise RenderError for the first feature of a component that this platform cannot run.

    `multinode`: whether there is an orchestrator for replicas that span nodes.
    """
    if spec.multinode is not None and not multinode:
        raise RenderError(
            name,
            "multinode",
            f"no multinode orchestrator available for {spec.multinode.node_count} nodes a replica",
            "install LeaderWorkerSet or Grove, or remove multinode to run each replica on one node",
        )
    most = MOST_NODES_WITH_CLIQUES if memory_has_pods(spec) else MAX_NODES
    if spec.multinode is not None and spec.multinode.node_count > most:
        raise RenderError(
            name,
            "multinode.nodeCount",
            f"{spec.multinode.node_count} nodes a replica are more than {most}",
            "set a smaller number",
        )

    _check_role_templates(name, spec)
    if has_role_templates(spec) and _shares_memory(spec):
        raise RenderError(
            name,
            "roles",
            "roles with their own pod templates support neither gpuMemoryService nor failover, which change engine commands",
            "set podTemplate of the component instead",
        )
    templates = (spec.pod_template, *(each.pod_template for each in spec.roles or ()))
    if spec.type in WORKERS and any(runtime_sidecar(each or {}) is not None for each in templates):
        for field in _changing_engines(spec):
            raise RenderError(
                name,
                field,
                f"not allowed with the init container {RUNTIME}: {CHANGES_ENGINES}",
                "remove one of the two",
            )


def _check_role_templates(name: str, spec: ComponentSpec) -> None:
    """Raise RenderError if one role has a template and another has none: its pods would get the other role's template."""
    if not has_role_templates(spec) or spec.pod_template is not None:
        return
    for role in ROLES:
        if role_template(spec, role) is None:
            raise RenderError(
                name, f"roles[{role}].podTemplate", "is required", "set it, or podTemplate of the component"
            )


def _shares_memory(spec: ComponentSpec) -> bool:
    return memory_service(spec) is not None or fails_over(spec) is not None


#: Why some features need an engine that Dynamo starts.
CHANGES_ENGINES = "it needs another command or pod of the engine, and with that container the platform changes neither"


def _changing_engines(spec: ComponentSpec) -> Iterator[str]:
    """Fields of a component that require other engines than those that its author starts."""
    if spec.multinode is not None:
        yield "multinode"
    if memory_service(spec) is not None:
        yield "experimental.gpuMemoryService"
    if fails_over(spec) is not None:
        yield "experimental.failover"
    if spec.experimental is not None and spec.experimental.start is not None:
        yield "experimental.checkpoint"


def check_sharing(name: str, spec: ComponentSpec, engine: str, *, claims: bool, grove: bool) -> None:
    """Raise RenderError if engines cannot share GPU memory, or fail over, as a component requests.

    `engine`: the inference engine, "" if unknown; `claims`: whether GPUs can be claimed in this cluster; `grove`:
    whether Grove runs the component.
    """
    service, failover = memory_service(spec), fails_over(spec)
    if service is not None:
        at, backend = "experimental.gpuMemoryService", backend_named(engine)
        if spec.type not in WORKERS:
            raise RenderError(
                name, at, "only a worker, prefill or decode has weights to share", "remove gpuMemoryService"
            )
        if not claims:
            raise RenderError(
                name,
                at,
                "GPUs cannot be shared here: the cluster does not serve resource.k8s.io/v1 (Dynamic Resource Allocation), "
                "or the platform is configured not to use it",
                "use Kubernetes 1.34 or later with a driver for its GPUs, or remove gpuMemoryService",
            )
        if memory_has_pods(spec) and not grove:
            raise RenderError(
                name, f"{at}.mode", "pods share GPU memory only where Grove runs them", "install Grove, or use IntraPod"
            )
        if memory_has_pods(spec) and not backend.traits.shares_memory_between_pods:
            raise RenderError(
                name, f"{at}.mode", f"{_named(engine)} cannot share GPU memory between pods", "use vLLM, or IntraPod"
            )
    if failover is not None:
        at = "experimental.failover"
        if service is None or service.mode is not failover.mode:
            raise RenderError(
                name,
                at,
                "engines that fail over share their weights, through a GPU memory service of the same mode",
                f"set gpuMemoryService with mode {failover.mode.value}",
            )
        if not backend_named(engine).traits.fails_over:
            raise RenderError(name, at, f"{_named(engine)} cannot fail over", "use vLLM, or remove failover")


def _named(engine: str) -> str:
    return f"the engine {engine}" if engine else "an engine that the command line does not name"


def check_picker(name: str, spec: ComponentSpec, config: RenderConfig) -> None:
    """Raise RenderError for an endpoint picker without a gateway that would call it."""
    if spec.type is ComponentType.EPP and not config.inference_pools:
        raise RenderError(
            name,
            "type",
            "an endpoint picker needs an InferencePool, which is not available in this cluster",
            "use a frontend instead",
        )


def needs_ssh_keys(child: KubeObject, secret: str) -> bool:
    """Whether the pods of a rendered object use ssh with the keys of a Secret: TensorRT-LLM on several nodes.

    For a component deployment, its spec decides; for other objects, whether their pods mount the Secret.
    """
    spec = child.get("spec", {})
    if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
        nodes = (spec.get("multinode") or {}).get("nodeCount", 1)
        return bool(nodes > 1 and spec.get("backendFramework") == BackendFramework.TRTLLM)
    pods: list[KubeObject] = []
    if child["kind"] == POD_CLIQUE_SETS.kind:
        pods = [each["spec"]["podSpec"] for each in spec["template"]["cliques"]]
    elif child["kind"] == LEADER_WORKER_SETS.kind:
        pods = [spec["leaderWorkerTemplate"]["workerTemplate"]["spec"]]
    mounted = (volume.get("secret") or {} for pod in pods for volume in pod.get("volumes", ()))
    return any(each.get("secretName") == secret for each in mounted)
