"""What is told of an objective: kept, missed, or that nobody can tell."""

from __future__ import annotations

import pytest
from dynamo_planner.profiling.results import Candidate, Note, ProfilingResult
from dynamo_planner.requests.reconciler import _objective


@pytest.mark.parametrize(
    ("meets", "status", "reason", "message"),
    [
        (True, True, "ObjectiveMet", "a graph"),
        (False, False, "ObjectiveNotMet", "what to know"),
        (None, None, "NotEstimated", "what to know"),
    ],
)
def test_the_condition_of_a_result(meets: bool | None, status: bool | None, reason: str, message: str) -> None:
    candidate = Candidate(backend="vllm", serving="agg", gpus=1, parallelism={}, dgd={}, meets_sla=meets)
    result = ProfilingResult(selected=candidate, notes=(Note(reason="Any", message="what to know"),))
    assert _objective(result, "a graph") == (status, reason, message)
