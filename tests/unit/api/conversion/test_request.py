"""Deployment requests: the profiler's settings, its pod, and the result."""

import json
from typing import Any

import pytest
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS

ALPHA, BETA = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"
Object = dict[str, Any]


def alpha(config: Object | None = None, status: Object | None = None, **spec: Any) -> Object:
    profiling = {"profilerImage": "p", **spec.pop("profilingConfig", {})}
    if config is not None:
        profiling["config"] = config
    given = {"model": "m", "backend": "vllm", "autoApply": False, "useMocker": False, "enableGpuDiscovery": True}
    return _request(ALPHA, status, {**given, **spec, "profilingConfig": profiling})


def beta(status: Object | None = None, **spec: Any) -> Object:
    given = {"model": "m", "backend": "vllm", "autoApply": False, "image": "p", "searchStrategy": "thorough"}
    return _request(BETA, status, {**given, **spec})


def _request(version: str, status: Object | None, spec: Object) -> Object:
    type_meta = {"apiVersion": version, "kind": "DynamoGraphDeploymentRequest"}
    return {**type_meta, "metadata": {"name": "r"}, "spec": spec, **({} if status is None else {"status": status})}


OF_PROFILER = {"limits": {"cpu": "4"}, "requests": {"memory": "8Gi"}, "claims": [{"name": "c"}]}
PROFILER = {"name": "profiler", "resources": OF_PROFILER}
PLACES: Object = {"tolerations": [{"key": "k"}], "nodeSelector": {"a": "b"}}
RUNS, MADE = {"name": "g", "created": True, "state": "successful"}, {"kind": "DynamoGraphDeployment"}
SAID_BY_BOTH: list[tuple[str, Object, Object]] = [
    ("least", alpha(), beta()),
    ("simulated", alpha({"sweep": {"useAiConfigurator": True}}), beta(searchStrategy="rapid")),
    ("runtime version", alpha(runtimeVersionOverride="1.5.0"), beta(runtimeVersionOverride="1.5.0")),
    ("no engine to run", alpha(backend="auto"), beta(backend="auto", searchStrategy="rapid")),
    ("mocker", alpha(useMocker=True), beta(features={"mocker": {"enabled": True}}, searchStrategy="rapid")),
    ("planner", alpha({"planner": {"a": 1}}), beta(features={"planner": {"a": 1}})),
    (
        "aims",
        alpha({"sla": {"ttft": 200, "itl": 20.5, "optimizationType": "latency", "isl": 3000, "osl": 150}}),
        beta(sla={"ttft": 200, "itl": 20.5, "optimizationType": "latency"}, workload={"isl": 3000, "osl": 150}),
    ),
    (
        "model cache",
        alpha({"deployment": {"modelCache": {"pvcName": "c", "modelPathInPvc": "a/b", "pvcMountPath": "/models"}}}),
        beta(modelCache={"pvcName": "c", "pvcModelPath": "a/b", "pvcMountPath": "/models"}),
    ),
    (
        "profiler's pod",
        alpha(profilingConfig={"resources": OF_PROFILER, **PLACES}),
        beta(overrides={"profilingJob": {"template": {"spec": {"containers": [PROFILER], **PLACES}}}}),
    ),
    ("result", alpha(status={"state": "Failed"}), beta({"phase": "Failed"})),
    (
        "deployed",
        alpha(status={"state": "Ready", "deployment": RUNS, "generatedDeployment": MADE, "observedGeneration": 2}),
        beta(
            {"phase": "Deployed", "dgdName": "g", "profilingResults": {"selectedConfig": MADE}, "observedGeneration": 2}
        ),
    ),
]


@pytest.mark.parametrize(("old", "new"), [each[1:] for each in SAID_BY_BOTH], ids=[each[0] for each in SAID_BY_BOTH])
def test_fields_of_both_versions_need_no_annotation(old: Object, new: Object) -> None:
    assert convert(old, BETA) == new
    assert convert(new, ALPHA) == old


@pytest.mark.parametrize(
    ("state", "created", "phase"),
    [
        ("Initializing", False, "Pending"),
        ("Pending", False, "Pending"),
        ("Profiling", False, "Profiling"),
        ("Deploying", True, "Deploying"),
        ("Ready", False, "Ready"),
        ("Ready", True, "Deployed"),
        ("DeploymentDeleted", True, "Ready"),
        ("Failed", False, "Failed"),
        ("", False, "Pending"),
    ],
)
def test_states_and_phases(state: str, created: bool, phase: str) -> None:
    obj = alpha(status={"state": state, "deployment": {"name": "g", "created": created, "state": "pending"}})
    made = convert(obj, BETA)
    assert made["status"]["phase"] == phase
    assert convert(made, ALPHA) == obj
    made["status"]["phase"] = "Failed"
    assert convert(made, ALPHA)["status"]["state"] == "Failed"


def test_fields_of_v1alpha1_only_are_preserved_in_the_annotation() -> None:
    obj = alpha(
        {"engine": {"max_context_length": 8192}, "sla": {"ttft": "soon"}},
        status={"state": "Ready", "backend": "vllm", "profilingResults": "configmap/x"},
        enableGpuDiscovery=False,
        profilingConfig={"configMapRef": {"name": "c", "key": "disagg.yaml"}, "outputPVC": "p"},
        deploymentOverrides={"name": "n", "workersImage": "w"},
    )
    made = convert(obj, BETA)
    assert made["spec"] == beta()["spec"]
    assert made["status"] == {"phase": "Ready"}
    assert made["spec"]["searchStrategy"] == "thorough"
    assert list(made["metadata"]["annotations"]) == [PRESERVED_FIELDS]
    assert convert(made, ALPHA) == obj


def test_fields_of_v1beta1_only_are_preserved_in_the_annotation() -> None:
    job = {
        "backoffLimit": 2,
        "template": {"spec": {"containers": [{"name": "mine", "env": [{"name": "A"}]}, {"name": "more"}]}},
    }
    obj = beta(
        {"phase": "Profiling", "profilingPhase": "Done", "profilingJobName": "j", "deploymentInfo": {"replicas": 1}},
        hardware={"gpuSku": "h100_sxm", "vramMb": 80000.5},
        searchStrategy="thorough",
        overrides={"dgd": {"spec": {}}, "profilingJob": job},
        sla={"e2eLatency": 100},
        workload={"isl": 4000, "osl": 1000, "concurrency": 2},
    )
    made = convert(obj, ALPHA)
    assert made["spec"]["profilingConfig"] == {"profilerImage": "p", "config": {"sla": {"isl": 4000, "osl": 1000}}}
    assert convert(made, BETA) == obj
    # An addition in v1alpha1 is merged with the preserved fields: one container is the profiler's.
    made["spec"]["profilingConfig"]["resources"] = {"limits": {"cpu": "1"}}
    there = convert(made, BETA)["spec"]["overrides"]
    assert there["dgd"] == {"spec": {}}
    assert there["profilingJob"]["backoffLimit"] == 2
    assert there["profilingJob"]["template"]["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}


def test_the_image_is_the_profilers_or_else_the_workers() -> None:
    obj = alpha(deploymentOverrides={"workersImage": "w"}, profilingConfig={"profilerImage": ""})
    made = convert(obj, BETA)
    assert made["spec"]["image"] == "w"
    assert convert(made, ALPHA) == obj
    made["spec"]["image"] = "new"
    back = convert(made, ALPHA)["spec"]
    assert back["profilingConfig"]["profilerImage"] == "new"
    assert back["deploymentOverrides"] == {"workersImage": "w"}


def test_different_defaults_are_written_explicitly() -> None:
    """An omitted autoApply is true in v1beta1 and false in v1alpha1, so the other version states it."""
    spec = {"model": "m", "backend": "auto"}
    old = {"apiVersion": ALPHA, "kind": "DynamoGraphDeploymentRequest", "metadata": {}, "spec": spec}
    assert convert(old, BETA)["spec"]["autoApply"] is False
    new = {**old, "apiVersion": BETA}
    assert convert(new, ALPHA)["spec"]["autoApply"] is True
    assert json.loads(convert(new, ALPHA)["metadata"]["annotations"][PRESERVED_FIELDS])["for"] == "v1beta1"


def reported(reason: str) -> list[Object]:
    return [{"type": "DeploymentReady", "status": "False", "reason": reason}]


GRAPH: Object = {"kind": "DynamoGraphDeployment", "spec": {"backendFramework": "sglang"}}


@pytest.mark.parametrize(
    ("status", "state", "deployment"),
    [
        ({}, "Initializing", None),
        ({"phase": "Pending"}, "Initializing", None),
        ({"phase": "Pending", "observedGeneration": 1}, "Pending", None),
        ({"phase": "Profiling", "observedGeneration": 1}, "Profiling", None),
        ({"phase": "Ready", "dgdName": "g"}, "Ready", {"state": "initializing", "name": "g"}),
        ({"phase": "Deploying", "dgdName": "g"}, "Deploying", {"state": "initializing", "name": "g"}),
        (
            {"phase": "Deploying", "dgdName": "g", "conditions": reported("DeploymentCreationFailed")},
            "Deploying",
            {"state": "initializing", "name": "g"},
        ),
        (
            {"phase": "Deploying", "dgdName": "g", "conditions": reported("DeploymentInProgress")},
            "Deploying",
            {"state": "pending", "name": "g", "created": True},
        ),
        ({"phase": "Deployed", "dgdName": "g"}, "Ready", {"state": "successful", "name": "g", "created": True}),
        (
            {"phase": "Failed", "dgdName": "g", "conditions": reported("DeploymentRejected")},
            "Failed",
            {"state": "failed", "name": "g"},
        ),
        ({"phase": "Failed", "conditions": reported("DeploymentDeleted")}, "DeploymentDeleted", None),
    ],
)
def test_every_state_is_reached(status: Object, state: str, deployment: Object | None) -> None:
    obj = beta(status)
    obj["metadata"]["namespace"] = "ns"
    old = convert(obj, ALPHA)
    assert old["status"]["state"] == state
    assert old["status"].get("deployment") == (deployment and {**deployment, "namespace": "ns"})
    assert convert(old, BETA) == obj


def test_the_status_names_the_engine_and_the_place_of_results() -> None:
    rapid = convert(beta({"phase": "Ready", "profilingResults": {"selectedConfig": GRAPH}}), ALPHA)["status"]
    assert (rapid["backend"], rapid["profilingResults"]) == ("sglang", "status.generatedDeployment")
    measured = {"phase": "Ready", "profilingJobName": "profile-r", "profilingResults": {"selectedConfig": GRAPH}}
    assert convert(beta(measured), ALPHA)["status"]["profilingResults"] == "configmap/dgdr-output-r"
    assert convert(convert(beta(measured), ALPHA), BETA) == beta(measured)


@pytest.mark.parametrize("router", [{}, {"enabled": False}, {"enabled": True}])
def test_v1alpha1_preserves_the_routing_mode_of_frontends(router: Object) -> None:
    obj = beta(features={"kvRouter": router, "planner": {"a": 1}})
    there = convert(obj, ALPHA)
    assert "kvRouter" in there["metadata"]["annotations"][PRESERVED_FIELDS]
    assert convert(there, BETA) == obj
    # An edit in v1alpha1 takes effect next to it.
    edited = {**there, "spec": {**there["spec"], "useMocker": True}}
    assert convert(edited, BETA)["spec"]["features"] == {**obj["spec"]["features"], "mocker": {"enabled": True}}


def test_v1alpha1_preserves_whether_model_code_may_run() -> None:
    obj = beta(overrides={"trustRemoteCode": True})
    there = convert(obj, ALPHA)
    assert "trustRemoteCode" in there["metadata"]["annotations"][PRESERVED_FIELDS]
    assert convert(there, BETA) == obj
