"""Generates a v1beta1 graph from a layout. Pure: equal inputs give equal graphs."""

from dynamo_shared.api.engines import BACKENDS, Command, Role, mocker
from dynamo_shared.api.engines.command import EngineSpec
from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.engines.images import runtime_image
from dynamo_shared.api.engines.storage import model_path, mount_model
from dynamo_shared.api.gpus import NVIDIA_GPU
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.planner_names import planner_config_name, profile_data_name
from dynamo_shared.api.registry.annotations import PLANNER_CONFIG
from dynamo_shared.api.registry.labels import GPU_PRODUCT
from dynamo_shared.api.untrusted.reading import items, mapping

from dynamo_profiler.profiling.generation.names import desired_name, graph_name
from dynamo_profiler.profiling.generation.parts import GenerationInputs
from dynamo_profiler.profiling.points import Layout

FRONTEND = "Frontend"
#: Role -> name and type of the component.
COMPONENTS = {"prefill": ("prefill", "prefill"), "decode": ("decode", "decode"), "agg": ("worker", "worker")}
_PROFILE_VOLUME, _PROFILE_FOLDER = "profile-data", "/workspace/profile-data"
_USABLE = 0.9
"""Share of a GPU's memory that vLLM uses by default."""
_OTHER_USE = 3 * 1024**3
"""Approximate bytes of a GPU for activations, graphs and communication."""
_MARGIN = 0.9
"""Share of the estimate to use: with a slightly short length vLLM serves, with a too long one it does not start."""
_STEP = 256
_MIB = 1024 * 1024


def graph_of(layout: Layout, parts: GenerationInputs) -> KubeObject:
    """The graph, before the request's overrides."""
    per_node = parts.objective.gpus_per_node
    spans = [(COMPONENTS[role][0], engine.nodes(per_node) > 1) for role, engine in layout.engines.items()]
    name = graph_name(parts.request.name, desired_name(parts.request.spec), [(FRONTEND, False), *spans])
    metadata: KubeObject = {"name": name, "namespace": parts.request.namespace}
    if parts.objective.planner is not None:
        metadata["annotations"] = {PLANNER_CONFIG: planner_config_name(name)}
    image = runtime_image(
        layout.backend, parts.request.spec.image, repository=parts.settings.image_repository, version=parts.version
    )
    workers = [_worker(layout, role, name, parts.request.workers_image or image, parts) for role in layout.engines]
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": metadata,
        "spec": {"backendFramework": layout.backend, "components": [_frontend(image, parts), *workers]},
    }


def _frontend(image: str, parts: GenerationInputs) -> KubeObject:
    pod, _ = _pod(image, parts)
    return {"name": FRONTEND, "type": "frontend", "replicas": 1, "podTemplate": {"spec": pod}}


def _worker(layout: Layout, role: str, graph: str, image: str, parts: GenerationInputs) -> KubeObject:
    engine = layout.engines[role]
    name, kind = COMPONENTS[role]
    nodes = engine.nodes(parts.objective.gpus_per_node)
    pod, container = _pod(image, parts)
    desired = EngineSpec(
        role=Role(role),
        engine=engine,
        model=parts.request.spec.model,
        path=model_path(parts.request.spec),
        isl=parts.objective.isl,
        latent=parts.model is not None and parts.model.latent,
        longest=_longest(engine, parts),
    )
    command = (
        _mocked(desired, graph, pod, container, parts) if parts.mocked else BACKENDS[layout.backend].command(desired)
    )
    container["command"], container["args"] = list(command.command), list(command.args)
    if command.working_dir:
        container["workingDir"] = command.working_dir
    component: KubeObject = {"name": name, "type": kind, "replicas": layout.replicas[role]}
    if parts.objective.planner is not None:
        # The planner owns the replicas from now on: applying the graph again must not reset them.
        component["scalingAdapter"] = {}
    if not parts.mocked:
        container["resources"] = {"limits": {NVIDIA_GPU: str(engine.gpus // nodes)}}
        if parts.request.gpu_product:
            # The figures hold for one kind of GPU, and a cluster may have several.
            pod["nodeSelector"] = {GPU_PRODUCT: parts.request.gpu_product}
        if nodes > 1:
            component["multinode"] = {"nodeCount": nodes}
    return {**component, "podTemplate": {"spec": pod}}


def _mocked(
    desired: EngineSpec, graph: str, pod: KubeObject, container: KubeObject, parts: GenerationInputs
) -> Command:
    if parts.curves is None:
        return mocker.command(desired, profile_folder=None, kv_tokens=parts.kv_tokens)
    config_map = profile_data_name(planner_config_name(graph))
    pod.setdefault("volumes", []).append({"name": _PROFILE_VOLUME, "configMap": {"name": config_map}})
    container.setdefault("volumeMounts", []).append(
        {"name": _PROFILE_VOLUME, "mountPath": _PROFILE_FOLDER, "readOnly": True}
    )
    return mocker.command(desired, profile_folder=_PROFILE_FOLDER, kv_tokens=parts.kv_tokens)


def _pod(image: str, parts: GenerationInputs) -> tuple[KubeObject, KubeObject]:
    """A pod and its main container, with the content that all components of a graph share."""
    container: KubeObject = {"name": MAIN, "image": image}
    if parts.settings.model_secret:
        container["envFrom"] = [{"secretRef": {"name": parts.settings.model_secret, "optional": True}}]
    pod: KubeObject = {"containers": [container]}
    mount_model(pod, container, parts.request.spec)
    for field in ("tolerations", "imagePullSecrets"):
        if given := _of_job(parts, field):
            pod[field] = given
    return pod, container


def _of_job(parts: GenerationInputs, field: str) -> list[KubeObject]:
    """Entries of the profiling job's pod in the request that engines need, too."""
    overrides = parts.request.spec.overrides
    template = mapping(mapping(overrides and overrides.profiling_job).get("template"))
    return [dict(each) for each in items(mapping(template.get("spec")).get(field)) if isinstance(each, dict)]


def _longest(engine: EngineLayout, parts: GenerationInputs) -> int | None:
    """The longest sequence that one engine can hold, tokens: vLLM does not start if its KV cache is too small for the
    model's limit. None if the model's own limit fits, or if too little is known.
    """
    model, vram = parts.model, parts.objective.vram_mib
    if model is None or vram is None or None in (model.max_context, model.weights_bytes, model.cache_bytes):
        return None
    made_for, weights, cache = model.max_context or 0, model.weights_bytes or 0, model.cache_bytes or 0
    of_a_gpu = cache / engine.pp / min(engine.tp, model.cache_heads) / (2 if engine.eight_bit_cache else 1)
    free = _USABLE * vram * _MIB - weights / engine.gpus - _OTHER_USE
    held = int(_MARGIN * free / of_a_gpu) // _STEP * _STEP
    if held >= made_for:
        return None
    typical = -(-(parts.objective.isl + parts.objective.osl) // _STEP) * _STEP
    return min(made_for, max(held, typical))
