"""What the status reports of a result: whether the objective is met, missed, or cannot be judged; cut to the size limit."""

import pytest
from dynamo_profiler.profiling.results import DeploymentCandidate, ProfilingResult, Remark
from dynamo_profiler.requests.reconciler import _objective
from dynamo_profiler.requests.results import MAX_BYTES, results_status
from dynamo_shared.api.request_graphs import is_created_for
from dynamo_shared.api.v1beta1.request import Figures

REQUEST = {"metadata": {"name": "qwen", "namespace": "ns", "uid": "u-1"}}


@pytest.mark.parametrize(
    ("meets", "status", "reason", "message"),
    [
        (True, True, "ObjectiveMet", "a graph"),
        (False, False, "ObjectiveNotMet", "what to know"),
        (None, None, "NotEstimated", "what to know"),
    ],
)
def test_a_result_has_a_condition(meets: bool | None, status: bool | None, reason: str, message: str) -> None:
    candidate = DeploymentCandidate(figures=Figures(meets_sla=meets), parallelism={}, dgd={})
    result = ProfilingResult(selected=candidate, remarks=(Remark(reason="Any", message="what to know"),))
    assert _objective(result, "a graph") == (status, reason, message)


@pytest.mark.parametrize(("size", "points"), [(1_000, 20), (MAX_BYTES // 5, 3), (MAX_BYTES, 0)])
def test_a_status_has_only_as_many_points_as_fit_an_object(size: int, points: int) -> None:
    """Overrides are in each graph, and may be large."""
    one = DeploymentCandidate(figures=Figures(), parallelism={}, dgd={"spec": "x" * size})
    status = results_status(REQUEST, ProfilingResult(selected=one, pareto=(one,) * 20))
    assert len(status.get("pareto", [])) == points
    assert status["selectedConfig"]["spec"] == one.dgd["spec"]


def test_a_graph_applied_by_a_user_is_recognized_as_the_requests() -> None:
    """`kubectl apply` of the selected graph, as Dynamo's guide has it: its ConfigMaps then outlive the request."""
    one = DeploymentCandidate(figures=Figures(), parallelism={}, dgd={"metadata": {"name": "qwen-dgd"}, "spec": {}})
    status = results_status(REQUEST, ProfilingResult(selected=one, pareto=(one,)))
    selected = status["selectedConfig"]
    assert is_created_for(selected, REQUEST)
    assert selected["metadata"]["name"] == "qwen-dgd"
    assert selected["metadata"]["namespace"] == "ns"
    assert selected["metadata"]["labels"]["dgdr.nvidia.com/name"] == "qwen"
    assert "ownerReferences" not in selected["metadata"]
    assert status["pareto"][0]["config"] == selected
