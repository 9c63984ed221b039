"""Turns layouts into candidates: graph, ConfigMaps, figures."""

from dataclasses import replace

from dynamo_shared.api.gpus import of_replica
from dynamo_shared.api.gpus import words as gpu_words
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1.request import Figures

from dynamo_profiler.profiling.generation.finishing import finished
from dynamo_profiler.profiling.generation.graph import graph_of
from dynamo_profiler.profiling.generation.overrides import keeps_containers, overridden
from dynamo_profiler.profiling.generation.parts import GenerationInputs
from dynamo_profiler.profiling.generation.planner_config import config_maps_of, endpoints_lowered
from dynamo_profiler.profiling.points import Layout, sizes
from dynamo_profiler.profiling.results import DeploymentCandidate, Remark
from dynamo_profiler.profiling.selection import Choice


def candidate_of(choice: Choice, parts: GenerationInputs) -> tuple[DeploymentCandidate, tuple[Remark, ...]]:
    """The candidate of a point with its figures, and remarks. Raises ProfilingFailed if admission would refuse the
    graph.
    """
    point = choice.point
    candidate, remarks = unmeasured(point, parts)
    rate = point.requests_per_second
    figures = Figures(
        backend=point.backend,
        serving=point.serving,
        gpus=candidate.figures.gpus,
        meets_sla=choice.meets and choice.served >= 1.0,
        ttft=point.ttft_ms,
        itl=point.itl_ms,
        request_latency=point.latency_ms,
        concurrency=point.concurrency,
        requests_per_second=rate,
        tokens_per_second=None if rate is None else rate * parts.objective.osl,
        tokens_per_second_per_gpu=point.tokens_per_second_per_gpu,
        tokens_per_second_per_user=point.tokens_per_second_per_user,
    )
    return replace(candidate, figures=figures), remarks


def unmeasured(layout: Layout, parts: GenerationInputs) -> tuple[DeploymentCandidate, tuple[Remark, ...]]:
    """A candidate without a simulation: it has no figures, and does not say whether the latencies are kept."""
    graph, maps, remarks = _made(layout, parts)
    gpus = layout.gpus if parts.mocked else _gpus_of(graph)
    figures = Figures(backend=layout.backend, serving=layout.serving, gpus=gpus)
    return DeploymentCandidate(figures=figures, parallelism=_parallelism(layout), dgd=graph, config_maps=maps), remarks


def _made(layout: Layout, parts: GenerationInputs) -> tuple[KubeObject, tuple[KubeObject, ...], tuple[Remark, ...]]:
    made = graph_of(layout, parts)
    spec = parts.request.spec
    graph, remarks = overridden(made, spec.overrides.dgd if spec.overrides else None)
    graph = finished(graph, spec)
    keeps_containers(made, graph)
    taken = layout.gpus if parts.mocked else _gpus_of(graph)
    if taken != layout.gpus:
        text = (
            f"the graph with spec.overrides.dgd takes {gpu_words(taken)}, but {parts.objective.total_gpus} are planned; "
            f"the expected figures are those of {gpu_words(layout.gpus)} without the override"
        )
        remarks = (*remarks, Remark(reason="OverrideChangesGpus", message=text))
    planner = parts.objective.planner
    if planner is not None and (lowered := endpoints_lowered(planner, layout)):
        wants = " and ".join(f"{field} {getattr(planner, field)}" for field in lowered)
        text = (
            f"{gpu_words(parts.objective.total_gpus)} hold {layout.words}, fewer than spec.features.planner requires ({wants}); "
            f"the planner keeps {' and '.join(map(str, lowered.values()))}"
        )
        remarks = (*remarks, Remark(reason="EndpointsLowered", message=text))
    across = {role: engine.nodes(parts.objective.gpus_per_node) for role, engine in layout.engines.items()}
    if any(nodes > 1 for nodes in across.values()) and not parts.mocked:
        words = ", ".join(f"{role} {nodes} nodes" for role, nodes in across.items() if nodes > 1)
        text = f"one engine spans several nodes ({words}): the cluster needs Grove or LeaderWorkerSet"
        remarks = (*remarks, Remark(reason="Multinode", message=text))
    return graph, config_maps_of(layout, str(graph["metadata"]["name"]), parts), remarks


def _gpus_of(graph: KubeObject) -> int:
    """GPUs of all replicas on all their nodes."""
    components = graph["spec"]["components"]
    return sum(of_replica(each).own * (1 if (n := each.get("replicas")) is None else int(n)) for each in components)


def _parallelism(layout: Layout) -> dict[str, dict[str, int]]:
    return {
        role: {
            "replicas": layout.replicas[role],
            **sizes(engine),
            "gpus": engine.gpus,
            **({"batch_size": engine.batch_size} if engine.batch_size else {}),
        }
        for role, engine in layout.engines.items()
    }
