"""The PlannerConfig of a generated graph and the profile of its engines, as ConfigMaps of the graph."""

import json

from dynamo_shared.api.contracts.planner import PlannerConfig, PlanningPolicy, Sweeping, Target
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.planner_names import planner_config_name, profile_data_name
from dynamo_shared.api.registry.labels import REQUEST_NAME, REQUEST_NAMESPACE

from dynamo_profiler.profiling.generation.parts import GenerationInputs
from dynamo_profiler.profiling.objective import AGG
from dynamo_profiler.profiling.points import DECODE, PREFILL, WORKER, Layout, sizes

CONFIG_KEY = "planner_config.json"


def config_maps_of(layout: Layout, graph: str, parts: GenerationInputs) -> tuple[KubeObject, ...]:
    """The ConfigMaps that a graph's annotation, and the volumes of simulated engines, refer to."""
    name = planner_config_name(graph)
    made = []
    if parts.objective.planner is not None:
        config = _config(parts.objective.planner, layout, parts)
        made.append(_config_map(name, {CONFIG_KEY: _json(config)}, parts))
    if parts.curves is not None and (parts.objective.planner is not None or parts.mocked):
        data = {file: _json(arrays) for file, arrays in parts.curves.items()}
        made.append(_config_map(profile_data_name(name), data, parts))
    return tuple(made)


def _config(asked: PlannerConfig, layout: Layout, parts: GenerationInputs) -> KubeObject:
    """The requested configuration, completed with the facts of the layout: engines, GPUs, model, budget, latencies."""
    given = asked.model_dump(mode="json", exclude_unset=True)
    objective = parts.objective
    engines = layout.engines
    decode = engines.get(DECODE) or engines[WORKER]
    computed: KubeObject = {
        "backend": "mocker" if parts.mocked else layout.backend,
        "mode": AGG if layout.serving == AGG else given.get("mode", "disagg"),
        "decode_engine_num_gpu": decode.gpus,
    }
    computed |= endpoints_lowered(asked, layout)
    if PREFILL in engines:
        computed["prefill_engine_num_gpu"] = engines[PREFILL].gpus
    defaults: KubeObject = {"model_name": parts.request.spec.model, "max_gpu_budget": objective.total_gpus}
    works_towards_times = asked.policy is PlanningPolicy.ADAPTIVE or asked.optimization_target is Target.SLA
    if works_towards_times and objective.tune_for is None:
        ttft, itl = objective.times_of_roles()
        defaults |= {"ttft_ms": ttft, "itl_ms": itl}
    if parts.interpolation is not None and asked.pre_deployment_sweeping_mode is not Sweeping.NONE:
        defaults["aic_interpolation"] = {
            **parts.interpolation,
            "prefill_pick": sizes(engines.get(PREFILL) or decode),
            "decode_pick": sizes(decode),
        }
    return {**defaults, **given, **computed}


def endpoints_lowered(asked: PlannerConfig, layout: Layout) -> dict[str, int]:
    """Fields for the number of engines that a planner keeps, lowered to the layout's number: the planner would
    otherwise end all of them.
    """
    lowered: dict[str, int] = {}
    for role, count in layout.replicas.items():
        own = "prefill_min_endpoint" if role == PREFILL else "decode_min_endpoint"
        field = "min_endpoint" if getattr(asked, own) is None else own
        if getattr(asked, field) > count:
            lowered[field] = min(count, lowered.get(field, count))
    return lowered


def _config_map(name: str, data: dict[str, str], parts: GenerationInputs) -> KubeObject:
    labels = {REQUEST_NAME: parts.request.name, REQUEST_NAMESPACE: parts.request.namespace}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        # A label is shorter than a name may be.
        "metadata": {
            "name": name,
            "namespace": parts.request.namespace,
            "labels": {key: value for key, value in labels.items() if len(value) <= 63},
        },
        "data": data,
    }


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
