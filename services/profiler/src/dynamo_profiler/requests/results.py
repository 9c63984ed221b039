"""The result of profiling, as a request's status reports it."""

import json
from collections.abc import Iterator

from dynamo_shared.api.model import to_dict
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.request_graphs import graph_of
from dynamo_shared.api.v1beta1.request import Figures, ParetoConfig, ProfilingResults

from dynamo_profiler.profiling.results import DeploymentCandidate, ProfilingResult

#: Graphs of the Pareto front that a status holds: an object of Kubernetes has its limits.
MAX_POINTS = 32
#: Together they stay well below the 1.5 MiB that etcd takes of one object; large overrides are in each. Bytes.
MAX_BYTES = 768 * 1024


def results_status(request: KubeObject, result: ProfilingResult) -> KubeObject:
    """`status.profilingResults`: the selected graph, and the Pareto front in the profiler's order; each with its figures.

    As many points of the front as an object has room for: the first ones. Graphs have what identifies them as made for the
    request, so that one that a user applies is known.
    """
    return to_dict(
        ProfilingResults(
            pareto=[
                ParetoConfig(config=graph_of(request, point.dgd), figures=figures_of(point))
                for point in _that_fit(result)
            ],
            selected_config=graph_of(request, result.selected.dgd),
            selected_figures=figures_of(result.selected),
            source=result.source,
        )
    )


def _that_fit(result: ProfilingResult) -> Iterator[DeploymentCandidate]:
    room = MAX_BYTES - _size(result.selected)
    for point in result.pareto[:MAX_POINTS]:
        room -= _size(point)
        if room < 0:
            return
        yield point


def _size(candidate: DeploymentCandidate) -> int:
    return len(json.dumps(candidate.dgd).encode())


def figures_of(candidate: DeploymentCandidate) -> Figures:
    """What a candidate is expected to do, to three decimals."""
    return Figures(
        backend=candidate.backend,
        serving=candidate.serving,
        gpus=candidate.gpus,
        meets_sla=candidate.meets_sla,
        ttft=_rounded(candidate.ttft_ms),
        itl=_rounded(candidate.itl_ms),
        request_latency=_rounded(candidate.request_latency_ms),
        concurrency=_rounded(candidate.concurrency),
        requests_per_second=_rounded(candidate.requests_per_second),
        tokens_per_second=_rounded(candidate.tokens_per_second),
        tokens_per_second_per_gpu=_rounded(candidate.tokens_per_second_per_gpu),
        tokens_per_second_per_user=_rounded(candidate.tokens_per_second_per_user),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
