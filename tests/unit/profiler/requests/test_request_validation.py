"""What a request is refused for before anything is profiled."""

from typing import Any

import pytest
from dynamo_profiler.requests.thorough import names
from dynamo_profiler.requests.validation import problems
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS
from dynamo_shared.api.validation import Facts

from tests.building.objects import object_of


def refused(name: str = "qwen", **spec: Any) -> list[str]:
    request = object_of(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, name, spec={"model": "Qwen/Qwen3-32B", **spec})
    return [error.path for error in problems(request, Facts())]


@pytest.mark.parametrize("field", ["ttft", "itl", "e2eLatency"])
@pytest.mark.parametrize("value", [0, -5.5])
def test_times_are_positive(field: str, value: float) -> None:
    assert refused(sla={field: value}) == [f"spec.sla.{field}"]


@pytest.mark.parametrize("field", ["isl", "osl", "concurrency", "requestRate"])
@pytest.mark.parametrize("value", [0, -1])
def test_loads_are_positive(field: str, value: int) -> None:
    assert refused(workload={field: value}) == [f"spec.workload.{field}"]


@pytest.mark.parametrize("field", ["vramMb", "totalGpus", "numGpusPerNode"])
def test_hardware_is_not_negative(field: str) -> None:
    assert refused(hardware={field: -1}) == [f"spec.hardware.{field}"]
    # Zero is what some clients write for what is not given.
    assert refused(hardware={field: 0}) == []


def test_a_planner_has_a_known_mode() -> None:
    assert refused(features={"planner": {"mode": "both"}}) == ["spec.features.planner.mode"]


def test_every_problem_is_reported() -> None:
    assert refused(sla={"ttft": -1, "itl": 0}, workload={"isl": -4}) == [
        "spec.sla.ttft",
        "spec.sla.itl",
        "spec.workload.isl",
    ]


def test_a_blank_model_is_refused() -> None:
    assert refused(model="  ") == ["spec.model"]


def test_a_name_too_long_for_a_label_is_rejected() -> None:
    assert refused("a" * 63) == []
    assert refused("a" * 64) == ["metadata.name"]


def test_a_typical_request_is_planned() -> None:
    assert refused(sla={"ttft": 200.5, "itl": 20}, workload={"isl": 1, "osl": 1, "requestRate": 0.01}) == []


def test_the_job_of_a_long_name_has_a_name_that_fits_labels() -> None:
    assert names.job("qwen") == "profile-qwen"
    first, second = names.job("a" * 62 + "1"), names.job("a" * 62 + "2")
    assert len(first) == len(second) == 63
    assert first.startswith("profile-aaaa")
    assert first != second


@pytest.mark.parametrize("path", ["", "models", "/a:b"])
def test_volumes_are_mounted_at_absolute_paths(path: str) -> None:
    assert refused(modelCache={"pvcName": "models", "pvcMountPath": path}) == ["spec.modelCache.pvcMountPath"]


@pytest.mark.parametrize("name", ["a/b", "..", "a" * 254])
def test_a_volume_has_a_valid_object_name(name: str) -> None:
    """Asked for one with a slash, the API server does not say that there is none: the request was tried again without end."""
    assert refused(modelCache={"pvcName": name}) == ["spec.modelCache.pvcName"]


def test_a_model_path_requires_a_volume() -> None:
    assert refused(modelCache={"pvcModelPath": "qwen"}) == ["spec.modelCache.pvcName"]


JOB = "spec.overrides.profilingJob"


@pytest.mark.parametrize(
    ("job", "path"),
    [
        ({"activeDeadlineSeconds": "1h"}, "activeDeadlineSeconds"),
        ({"activeDeadlineSeconds": -1}, "activeDeadlineSeconds"),
        ({"backoffLimit": True}, "backoffLimit"),
        ({"template": {"spec": {"containers": "x"}}}, "template.spec.containers"),
        ({"template": {"spec": {"containers": [None]}}}, "template.spec.containers"),
        ({"template": {"spec": {"imagePullSecrets": ["s"]}}}, "template.spec.imagePullSecrets"),
        ({"template": {"spec": {"volumes": [{"name": ["v"]}]}}}, "template.spec.volumes"),
        ({"template": {"spec": {"containers": [{"env": {"A": "b"}}]}}}, "template.spec.containers[0].env"),
        ({"template": {"spec": {"containers": [{"env": [{"name": {}}]}]}}}, "template.spec.containers[0].env"),
        ({"template": {"metadata": {"labels": "x"}}}, "template.metadata.labels"),
    ],
)
def test_a_job_override_that_cannot_be_merged_is_rejected(job: dict[str, Any], path: str) -> None:
    assert refused(overrides={"profilingJob": job}) == [f"{JOB}.{path}"]


@pytest.mark.parametrize("job", [{}, {"template": None}, {"template": {"spec": {"containers": [{"image": "x"}]}}}])
def test_a_partial_job_override_is_accepted(job: dict[str, Any]) -> None:
    assert refused(overrides={"profilingJob": job}) == []
