"""The profiling Job, what overrides make of it, and what is concluded from how it goes."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from dynamo_profiler.profiling.results import ProfilingRequest
from dynamo_profiler.requests.thorough import MeasuringBudget, relay
from dynamo_profiler.requests.thorough.job import profiling_job
from dynamo_profiler.requests.thorough.outcome import JobOutcome, end_of, failure, step_of
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.request_parts import spec_of
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec, ProfilingPhase
from dynamo_shared.runtime.settings.operator import Infrastructure

from tests.building.objects import object_of

INFRASTRUCTURE = Infrastructure(nats_address="nats://nats:4222", prometheus_endpoint="http://prometheus:9090")
IMAGE = "nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.1.1"


def made(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    body = {"model": "Qwen/Qwen3-32B", "backend": "sglang", "searchStrategy": "thorough", **spec}
    obj = object_of(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, "qwen", uid="u-1", annotations=annotations or {}, spec=body)
    request = ProfilingRequest(name="qwen", namespace="ns", spec=DynamoGraphDeploymentRequestSpec.model_validate(body))
    return profiling_job(obj, request, INFRASTRUCTURE, image=IMAGE, deadline=14_400)


def test_the_job_equals_the_references_plus_the_relay() -> None:
    job = made(modelCache={"pvcName": "models", "pvcMountPath": "/opt/model"})
    assert job["metadata"]["name"] == "profile-qwen"
    assert job["metadata"]["labels"] == {
        "app": "dynamo-profiler",
        "dgdr": "qwen",
        "dgdr.nvidia.com/name": "qwen",
        "dgdr.nvidia.com/namespace": "ns",
        "nvidia.com/managed-by": "dynamo-operator",
    }
    assert job["spec"]["backoffLimit"] == 0
    pod = job["spec"]["template"]["spec"]
    assert (pod["serviceAccountName"], pod["restartPolicy"]) == ("dgdr-profiling-job", "Never")
    user = {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000}
    assert pod["securityContext"] == {**user, "seccompProfile": {"type": "RuntimeDefault"}}
    (profiler,) = pod["containers"]
    assert profiler["command"] == ["python", "-m", "dynamo.profiler"]
    assert profiler["args"][0] == "--config"
    assert json.loads(profiler["args"][1])["model"] == "Qwen/Qwen3-32B"
    assert profiler["args"][2:] == ["--output-dir", "/data"]
    assert [(each["name"], each.get("value")) for each in profiler["env"]] == [
        ("DGDR_NAME", "qwen"),
        ("DGDR_NAMESPACE", "ns"),
        ("DGDR_UID", "u-1"),
        ("HUGGING_FACE_HUB_TOKEN", None),
        ("NATS_SERVER", "nats://nats:4222"),
        ("PROMETHEUS_ENDPOINT", "http://prometheus:9090"),
    ]
    assert {"name": "model-cache", "mountPath": "/opt/model", "readOnly": True} in profiler["volumeMounts"]
    (relay,) = pod["initContainers"]
    assert (relay["name"], relay["restartPolicy"]) == ("output-copier", "Always")
    config_map = json.loads(relay["env"][0]["value"])
    assert config_map["metadata"]["name"] == "dgdr-output-qwen"
    for each in (config_map, job):
        (owner,) = each["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == ("u-1", True)


def of_v1alpha1(**spec: Any) -> dict[str, Any]:
    """The Job of a v1alpha1 request, through the conversion that stores it."""
    spec = {"model": "Qwen/Qwen3-32B", "backend": "sglang", **spec}
    stored = convert(
        object_of(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.at("v1alpha1"), "qwen", uid="u-1", spec=spec), "nvidia.com/v1beta1"
    )
    request = ProfilingRequest(name="qwen", namespace="ns", spec=spec_of(stored))
    return profiling_job(stored, request, INFRASTRUCTURE, image=request.spec.image or "", deadline=14_400)


def test_fields_of_v1alpha1_reach_the_job() -> None:
    profiling = {
        "profilerImage": "profiler:1",
        "configMapRef": {"name": "base", "key": "graph.yaml"},
        "outputPVC": "results",
        "resources": {"limits": {"cpu": "4"}},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "nodeSelector": {"pool": "gpu"},
        "config": {
            "sla": {"isl": 3000, "osl": 150, "ttft": 200, "itl": 20},
            "sweep": {"prefillInterpolationGranularity": 8, "decodeInterpolationGranularity": 3},
            "hardware": {"gpuType": "h200_sxm", "numGpusPerNode": 8},
        },
    }
    job = of_v1alpha1(profilingConfig=profiling, deploymentOverrides={"name": "mine"})
    pod = job["spec"]["template"]["spec"]
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert volumes["profiling-output"]["persistentVolumeClaim"] == {"claimName": "results"}
    assert volumes["profiling-config"]["configMap"]["items"] == [{"key": "graph.yaml", "path": "disagg.yaml"}]
    assert (pod["tolerations"], pod["nodeSelector"]) == (profiling["tolerations"], {"pool": "gpu"})
    (profiler,) = pod["containers"]
    assert (profiler["image"], profiler["resources"]) == ("profiler:1", {"limits": {"cpu": "4"}})
    assert profiler["args"][4:] == [
        "--prefill-interpolation-granularity",
        "8",
        "--decode-interpolation-granularity",
        "3",
    ]
    reported = json.loads(profiler["args"][1])
    assert reported["hardware"] == {"gpuSku": "h200_sxm", "numGpusPerNode": 8}
    assert reported["overrides"]["dgd"] == {"metadata": {"name": "mine"}}
    assert (reported["workload"]["isl"], reported["sla"]["ttft"]) == (3000, 200)


def test_config_maps_of_the_go_operator_are_mounted() -> None:
    job = made(
        {
            "nvidia.com/dgdr-config-map-ref": '{"name": "base", "key": "graph.yaml"}',
            "nvidia.com/dgdr-output-pvc": "results",
        }
    )
    pod = job["spec"]["template"]["spec"]
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert volumes["profiling-output"]["persistentVolumeClaim"] == {"claimName": "results"}
    assert volumes["profiling-config"]["configMap"]["items"] == [{"key": "graph.yaml", "path": "disagg.yaml"}]


def test_overrides_replace_defaults_and_keep_labels() -> None:
    toleration = {"key": "gpu", "operator": "Exists"}
    env = [{"name": "DGDR_NAME", "value": "x"}, {"name": "MORE", "value": "y"}]
    container = {"name": "whatever", "image": "mine:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}, "env": env}
    desired = {
        "tolerations": [toleration],
        "nodeSelector": {"pool": "gpu"},
        "imagePullSecrets": [{"name": "mine"}],
        "securityContext": {"runAsUser": 7},
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
    }
    own = {"team": "chat", "app": "mine", "dgdr.nvidia.com/name": "mine"}
    template = {"metadata": {"labels": own}, "spec": desired}
    override = {"backoffLimit": 2, "activeDeadlineSeconds": 600, "template": template}
    job = made(overrides={"profilingJob": override})
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (2, 600)
    object_labels = spec["template"]["metadata"]["labels"]
    assert (object_labels["team"], object_labels["app"], object_labels["dgdr.nvidia.com/name"]) == (
        "chat",
        "dynamo-profiler",
        "qwen",
    )
    assert (pod["tolerations"], pod["nodeSelector"]) == ([toleration], {"pool": "gpu"})
    assert pod["imagePullSecrets"] == [{"name": "nvcr-imagepullsecret"}, {"name": "mine"}]
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["fsGroup"]) == (7, 1000)
    (profiler,), (relay,) = pod["containers"], pod["initContainers"]
    assert (profiler["name"], profiler["image"], relay["image"]) == ("profiler", "mine:1", "mine:1")
    assert {each["name"]: each.get("value") for each in profiler["env"]}["DGDR_NAME"] == "x"
    assert any(mount["name"] == "output-copier-kube-api-access" for mount in relay["volumeMounts"])
    assert all(mount["name"] != "output-copier-kube-api-access" for mount in profiler["volumeMounts"])


COPIER = {"name": "output-copier", "image": "mine/kubectl:1", "resources": {"limits": {"memory": "1Gi"}}}


@pytest.mark.parametrize(
    ("given", "image"),
    [
        ((), IMAGE),
        (({"image": "mine:1"},), "mine:1"),
        (({"name": "whatever", "image": "mine:1"}, {"name": "another", "image": "other:1"}), "mine:1"),
        (({"name": "another", "image": "other:1"}, {"name": "profiler", "image": "mine:1"}), "mine:1"),
    ],
)
def test_overrides_of_the_output_copier_do_not_reach_the_profiler(
    given: tuple[dict[str, Any], ...], image: str
) -> None:
    job = made(overrides={"profilingJob": {"template": {"spec": {"containers": [COPIER, *given]}}}})
    pod = job["spec"]["template"]["spec"]
    (profiler,), (relay,) = pod["containers"], pod["initContainers"]
    assert (profiler["image"], relay["image"]) == (image, image)
    assert (profiler.get("resources"), relay["resources"]) == (None, COPIER["resources"])


def test_an_override_may_shorten_the_deadline_but_not_extend_it() -> None:
    job = made(overrides={"profilingJob": {"activeDeadlineSeconds": 999_999, "template": {}}})
    assert job["spec"]["activeDeadlineSeconds"] == 14_400


@pytest.mark.parametrize(
    ("budget", "gpus", "seconds"), [((14_400, 0), 8, 14_400), ((14_400, 2), 8, 900), ((60, 9), 1, 60)]
)
def test_budgets_of_gpu_hours_become_deadlines(budget: tuple[float, float], gpus: int, seconds: int) -> None:
    assert MeasuringBudget(*budget).deadline(gpus) == seconds


def job_status(type_: str, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"status": {"conditions": [{"type": type_, "status": "True", "reason": reason, "message": message}]}}


def pod(message: str = "", exit_code: int = 1, reason: str = "Error", **status: Any) -> dict[str, Any]:
    ended = {"terminated": {"exitCode": exit_code, "reason": reason, "message": message}}
    return {"status": {"containerStatuses": [{"name": "profiler", "state": ended}], **status}}


NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)


def end_of_job(job: dict[str, Any]) -> JobOutcome | None:
    return end_of(job, NOW)


@pytest.mark.parametrize(("since", "fails"), [("00:54:59", True), ("00:55:01", False), ("", False)])
def test_a_job_that_waits_for_a_pod_on_a_lost_node_has_failed_after_a_while(since: str, fails: bool) -> None:
    """Kubernetes says that a Job has failed when its pods have ended, which a node that is lost does not confirm."""
    job = job_status("FailureTarget", "BackoffLimitExceeded", "limit reached")
    job["status"]["conditions"][0]["lastTransitionTime"] = since and f"2026-01-01T{since}Z"
    ended = end_of_job(job)
    words = "limit reached; the Job's pod is still running: check whether the pod's node is lost"
    assert ended == (JobOutcome(False, "BackoffLimitExceeded", words) if fails else None)
    job["spec"] = {"template": {"spec": {"terminationGracePeriodSeconds": 600}}}
    assert end_of_job(job) is None, "its pod may take longer"


def test_the_profilers_message_has_precedence_over_the_jobs() -> None:
    output = {"data": {"profiler_status": "failed", "profiler_error": "no candidate fits", "phase": "SweepingDecode"}}
    failed = failure(output, end_of_job(job_status("Complete")), [])
    assert failed is not None
    assert str(failed) == "no candidate fits"


def test_a_job_that_failed_reports_the_last_lines_of_its_pod() -> None:
    failed = failure(
        None, end_of_job(job_status("Failed", "BackoffLimitExceeded", "limit reached")), [pod("CUDA error\n")]
    )
    assert failed is not None
    assert str(failed) == (
        "the profiling Job failed: limit reached; last lines of its log: CUDA error; "
        "see `kubectl logs` of the profiling pod"
    )
    late = failure(None, end_of_job(job_status("Failed", "DeadlineExceeded", "too long")), [pod()])
    assert late is not None
    assert late.reason == "BudgetExceeded"
    assert "exit code 1" in str(late)


EVICTED = {"reason": "Evicted", "message": "The node was low on resource: memory."}
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "m"}


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ({"status": EVICTED}, "its pod was terminated: Evicted: The node was low on resource: memory."),
        (pod(exit_code=143, conditions=[PREEMPTED]), "its pod was terminated: PreemptionByScheduler: m"),
        (
            pod(exit_code=137, reason="OOMKilled"),
            "container profiler ran out of memory (OOMKilled): raise its limit with spec.overrides.profilingJob",
        ),
        (
            pod("loading weights", 137, "OOMKilled"),
            "spec.overrides.profilingJob; last lines of its log: loading weights",
        ),
    ],
    ids=["evicted", "preempted", "no words", "out of memory"],
)
def test_a_job_whose_pod_was_ended_reports_the_cause(ended: dict[str, Any], said: str) -> None:
    """Its log ends in the middle, and the Job knows its limit of attempts alone."""
    failed = failure(None, end_of_job(job_status("Failed", "BackoffLimitExceeded", "limit reached")), [ended])
    assert failed is not None
    assert said in str(failed)


def test_a_running_job_reports_its_progress() -> None:
    assert failure(None, end_of_job({"status": {}}), []) is None
    output = {"data": {"phase": "SweepingDecode", "message": "4 of 9"}}
    assert step_of(output, []) == (ProfilingPhase.SWEEPING_DECODE, "4 of 9")
    assert step_of({"data": {"phase": "Nonsense", "message": "?"}}, [])[0] is ProfilingPhase.INITIALIZING
    stuck = {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}]}}
    assert step_of(None, [stuck]) == (ProfilingPhase.INITIALIZING, "the profiling pod is not scheduled: 0/3 nodes")
    pulling = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    waiting = {"status": {"initContainerStatuses": [{"name": "output-copier", **pulling}]}}
    assert step_of(None, [waiting])[1] == "container output-copier waits: ImagePullBackOff: no such image"
    assert step_of(None, [])[1] == "the profiling pod is starting"
    assert step_of(None, [], suspended=True)[1].startswith("the profiling Job is suspended")
    refused = {
        "reason": "FailedCreate",
        "note": 'Error creating: pods "profile-qwen-x7" is forbidden: exceeded quota: q',
    }
    assert step_of(None, [], [refused])[1] == "the API server refuses the profiling pod: exceeded quota: q"
    assert step_of(None, [], [{"reason": "FailedCreate", "note": "no"}, {"reason": "Other"}])[1].endswith(" pod: no")


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ({"final_config.yaml": 600_000, "webui_data.json": 600_000}, {"final_config.yaml"}),
        ({"final_config.yaml": 600_000, "webui_data.json": 200_000}, {"final_config.yaml", "webui_data.json"}),
        ({"final_config.yaml": 950_000, "webui_data.json": 200_000}, {"webui_data.json"}),
        ({"final_config.yaml": 10}, {"final_config.yaml"}),
    ],
)
@pytest.mark.parametrize("character", ["x", "é"])
def test_the_output_of_the_relay_fits_a_config_map(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sizes: dict[str, int], kept: set[str], character: str
) -> None:
    monkeypatch.setattr(relay, "OUTPUT", tmp_path)
    (tmp_path / "profiler_status.yaml").write_text(f"phase: Done\nstatus: success\nmessage: {'m' * 50_000}\n")
    for name, size in sizes.items():
        (tmp_path / name).write_text(character * (size // len(character.encode())), encoding="utf-8")
    data = relay.results()
    assert sum(len(text.encode()) for text in data.values()) <= 1 << 20
    assert kept == set(data) & {"final_config.yaml", "webui_data.json"}
    assert data["profiler_status"] == ("success" if "final_config.yaml" in kept else "failed")
