"""The result of profiling in a request's status."""

import json
from collections.abc import Iterator

from dynamo_shared.api.model import to_dict
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.request_graphs import graph_of
from dynamo_shared.api.v1beta1.request import Figures, ParetoConfig, ProfilingResults

from dynamo_profiler.profiling.results import DeploymentCandidate, ProfilingResult

#: Largest number of graphs of the Pareto front in a status, because the size of a Kubernetes object is limited.
MAX_POINTS = 32
#: Their total size stays well below etcd's limit of 1.5 MiB for an object; each contains large overrides. Bytes.
MAX_BYTES = 768 * 1024


def results_status(request: KubeObject, result: ProfilingResult) -> KubeObject:
    """`status.profilingResults`: the selected graph, and the Pareto front in the profiler's order, each with its
    figures.

    Has the first points of the front that fit into an object. The labels of graphs name the request, so that a graph
    that a user applies is recognized.
    """
    return to_dict(
        ProfilingResults(
            pareto=[
                ParetoConfig(config=graph_of(request, point.dgd), figures=rounded(point.figures))
                for point in _fitting(result)
            ],
            selected_config=graph_of(request, result.selected.dgd),
            selected_figures=rounded(result.selected.figures),
            source=result.source,
        )
    )


def _fitting(result: ProfilingResult) -> Iterator[DeploymentCandidate]:
    room = MAX_BYTES - _size(result.selected)
    for point in result.pareto[:MAX_POINTS]:
        room -= _size(point)
        if room < 0:
            return
        yield point


def _size(candidate: DeploymentCandidate) -> int:
    return len(json.dumps(candidate.dgd).encode())


def rounded(figures: Figures) -> Figures:
    """The figures, rounded to three decimals."""
    return figures.model_copy(update={name: round(each, 3) for name, each in figures if isinstance(each, float)})
