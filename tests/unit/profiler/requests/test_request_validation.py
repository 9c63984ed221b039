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


JOB = "spec.overrides.profilingJob"
CONTAINERS = f"{JOB}.template.spec.containers"


def of_job(**spec: Any) -> dict[str, Any]:
    return {"overrides": {"profilingJob": spec}}


def of_pod(**spec: Any) -> dict[str, Any]:
    return of_job(template={"spec": spec})


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        *(
            ({"sla": {field: value}}, [f"spec.sla.{field}"])
            for field in ("ttft", "itl", "e2eLatency")
            for value in (0, -5.5)
        ),
        *(
            ({"workload": {field: value}}, [f"spec.workload.{field}"])
            for field in ("isl", "osl", "concurrency", "requestRate")
            for value in (0, -1)
        ),
        *(
            ({"hardware": {field: -1}}, [f"spec.hardware.{field}"])
            for field in ("vramMb", "totalGpus", "numGpusPerNode")
        ),
        # Zero is what some clients write for what is not given.
        *(({"hardware": {field: 0}}, []) for field in ("vramMb", "totalGpus", "numGpusPerNode")),
        ({"features": {"planner": {"mode": "both"}}}, ["spec.features.planner.mode"]),
        ({"model": "  "}, ["spec.model"]),
        *(
            ({"modelCache": {"pvcName": "models", "pvcMountPath": path}}, ["spec.modelCache.pvcMountPath"])
            for path in ("", "models", "/a:b")
        ),
        # Asked for one with a slash, the API server does not say that there is none: the request was tried again without
        # end.
        *(({"modelCache": {"pvcName": name}}, ["spec.modelCache.pvcName"]) for name in ("a/b", "..", "a" * 254)),
        ({"modelCache": {"pvcModelPath": "qwen"}}, ["spec.modelCache.pvcName"]),
        (of_job(activeDeadlineSeconds="1h"), [f"{JOB}.activeDeadlineSeconds"]),
        (of_job(activeDeadlineSeconds=-1), [f"{JOB}.activeDeadlineSeconds"]),
        (of_job(backoffLimit=True), [f"{JOB}.backoffLimit"]),
        (of_pod(containers="x"), [CONTAINERS]),
        (of_pod(containers=[None]), [CONTAINERS]),
        (of_pod(imagePullSecrets=["s"]), [f"{JOB}.template.spec.imagePullSecrets"]),
        (of_pod(volumes=[{"name": ["v"]}]), [f"{JOB}.template.spec.volumes"]),
        (of_pod(containers=[{"env": {"A": "b"}}]), [f"{CONTAINERS}[0].env"]),
        (of_pod(containers=[{"env": [{"name": {}}]}]), [f"{CONTAINERS}[0].env"]),
        (of_job(template={"metadata": {"labels": "x"}}), [f"{JOB}.template.metadata.labels"]),
        (of_job(), []),
        (of_job(template=None), []),
        (of_pod(containers=[{"image": "x"}]), []),
        # Every problem is reported.
        (
            {"sla": {"ttft": -1, "itl": 0}, "workload": {"isl": -4}},
            ["spec.sla.ttft", "spec.sla.itl", "spec.workload.isl"],
        ),
        ({"sla": {"ttft": 200.5, "itl": 20}, "workload": {"isl": 1, "osl": 1, "requestRate": 0.01}}, []),
    ],
    ids=str,
)
def test_a_request_is_refused_for_each_wrong_field(spec: dict[str, Any], paths: list[str]) -> None:
    assert refused(**spec) == paths


def test_a_name_too_long_for_a_label_is_rejected() -> None:
    assert refused("a" * 63) == []
    assert refused("a" * 64) == ["metadata.name"]


def test_the_job_of_a_long_name_has_a_name_that_fits_labels() -> None:
    assert names.job("qwen") == "profile-qwen"
    first, second = names.job("a" * 62 + "1"), names.job("a" * 62 + "2")
    assert len(first) == len(second) == 63
    assert first.startswith("profile-aaaa")
    assert first != second
