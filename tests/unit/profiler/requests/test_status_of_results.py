"""What the status reports of a result: whether the objective is met, missed, or cannot be judged; cut to the size limit."""

from __future__ import annotations

import pytest
from dynamo_profiler.profiling.results import DeploymentCandidate, ProfilingResult, Remark
from dynamo_profiler.requests.reconciler import _objective
from dynamo_profiler.requests.results import MAX_BYTES, results_status


@pytest.mark.parametrize(
    ("meets", "status", "reason", "message"),
    [
        (True, True, "ObjectiveMet", "a graph"),
        (False, False, "ObjectiveNotMet", "what to know"),
        (None, None, "NotEstimated", "what to know"),
    ],
)
def test_the_condition_of_a_result(meets: bool | None, status: bool | None, reason: str, message: str) -> None:
    candidate = DeploymentCandidate(backend="vllm", serving="agg", gpus=1, parallelism={}, dgd={}, meets_sla=meets)
    result = ProfilingResult(selected=candidate, remarks=(Remark(reason="Any", message="what to know"),))
    assert _objective(result, "a graph") == (status, reason, message)


@pytest.mark.parametrize(("size", "points"), [(1_000, 20), (MAX_BYTES // 5, 3), (MAX_BYTES, 0)])
def test_a_status_holds_as_many_points_as_an_object_may(size: int, points: int) -> None:
    """Overrides are in each graph, and may be large."""
    one = DeploymentCandidate(backend="vllm", serving="agg", gpus=1, parallelism={}, dgd={"spec": "x" * size})
    status = results_status(ProfilingResult(selected=one, pareto=(one,) * 20))
    assert len(status.get("pareto", [])) == points
    assert status["selectedConfig"] == one.dgd
