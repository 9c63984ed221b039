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
                ParetoConfig(config=graph_of(request, point.dgd), figures=rounded(point.figures))
                for point in _that_fit(result)
            ],
            selected_config=graph_of(request, result.selected.dgd),
            selected_figures=rounded(result.selected.figures),
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


def rounded(figures: Figures) -> Figures:
    """The same, to three decimals."""
    return figures.model_copy(update={name: round(each, 3) for name, each in figures if isinstance(each, float)})
