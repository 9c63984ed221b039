"""Taking a checkpoint: its identity, its Job, its storage, and the DynamoCheckpoint that a component creates."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from dynamo_pod_builder import render
from dynamo_pod_builder.render.checkpoint import job, names
from dynamo_pod_builder.render.checkpoint.allowed import DISABLED, GPU_MEMORY, refusal
from dynamo_pod_builder.render.checkpoint.auto import checkpoint_of
from dynamo_pod_builder.render.checkpoint.identity import identity_hash
from dynamo_pod_builder.render.checkpoint.job import PlannedCheckpoint
from dynamo_pod_builder.render.checkpoint.storage import claim_of, storage_of
from dynamo_pod_builder.render.checkpoint.target import Storage
from dynamo_pod_builder.render.config import NEW_COMPONENT, CheckpointDefaults
from dynamo_shared.api.manifest import load_manifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_CHECKPOINTS
from dynamo_shared.api.v1alpha1 import DynamoCheckpoint, parse_checkpoint
from dynamo_shared.api.v1beta1 import CheckpointIdentity, parse_component

from tests.building.objects import object_of

from .building import CONFIG, component, component_deployments, graph, of_kind, variables

LLAMA = {"model": "meta-llama/Llama-2-7b-hf", "backendFramework": "vllm"}
HASH = "96429b2725761a09"
ON = CheckpointDefaults(enabled=True, profile="profiles/block-iouring.json")
TAKING = replace(CONFIG, checkpoints=ON)
STORAGE = Storage("claim", "/checkpoints")


def hash_of(**identity: Any) -> str:
    return identity_hash(CheckpointIdentity.model_validate({**LLAMA, **identity}))


def manifest(main: KubeObject | None = None, *, pod: KubeObject | None = None, **spec: Any) -> KubeObject:
    engine = {"image": "img:1", "command": ["python3"], "args": ["-m", "dynamo.vllm"]}
    container = {"name": "main", **engine, **(main or {})}
    template = {"metadata": {"labels": {"team": "a"}}, "spec": {"containers": [container], **(pod or {})}}
    job = {"podTemplateSpec": template, **spec.pop("job", {})}
    return object_of(DYNAMO_CHECKPOINTS, "llama", uid="u", spec={"identity": LLAMA, "job": job, **spec})


def children(obj: KubeObject, config: render.RenderConfig = TAKING, version: str = "1") -> list[KubeObject]:
    checkpoint = parse_checkpoint(obj)
    assert checkpoint.spec is not None
    planned = PlannedCheckpoint(identity_hash(checkpoint.spec.identity), version, STORAGE)
    return job.children(checkpoint, checkpoint.spec, planned, config)


def job_of(obj: KubeObject, config: render.RenderConfig = TAKING) -> KubeObject:
    (result,) = of_kind(children(obj, config), "Job")
    return result


def main_of(obj: KubeObject, config: render.RenderConfig = TAKING) -> KubeObject:
    container: KubeObject = job_of(obj, config)["spec"]["template"]["spec"]["containers"][0]
    return container


def test_the_hash_of_an_identity_equals_that_of_the_reference() -> None:
    assert hash_of() == HASH


@pytest.mark.parametrize(
    "same",
    [
        {"tensorParallelSize": 1},
        {"pipelineParallelSize": 1},
        {"dtype": ""},
        {"extraParameters": {}},
        {"dynamoVersion": ""},
    ],
)
def test_an_omitted_field_equals_its_default(same: dict[str, Any]) -> None:
    assert hash_of(**same) == HASH


@pytest.mark.parametrize(
    "other",
    [
        {"model": "m"},
        {"backendFramework": "sglang"},
        {"dynamoVersion": "1.0.0"},
        {"tensorParallelSize": 2},
        {"pipelineParallelSize": 2},
        {"dtype": "fp8"},
        {"maxModelLen": 4096},
        {"extraParameters": {"a": "b"}},
    ],
)
def test_each_field_changes_the_identity(other: dict[str, Any]) -> None:
    assert hash_of(**other) != HASH


def test_the_order_of_parameters_does_not_matter() -> None:
    assert hash_of(extraParameters={"b": "2", "a": "1"}) == hash_of(extraParameters={"a": "1", "b": "2"})


@pytest.mark.parametrize(
    ("parameters", "digest"),
    [
        # sha256 of {...,"extraParameters":{"q":"a\u003cb\u0026c\u003ed"}}, and of the unescaped letters.
        ({"q": "a<b&c>d"}, "1e7eaebf5efc11b4"),
        ({"q": "größe"}, "ebd5636ce50d834f"),
    ],
)
def test_texts_are_escaped_as_in_go(parameters: dict[str, str], digest: str) -> None:
    assert hash_of(extraParameters=parameters) == digest


def test_a_job_runs_once_and_is_kept_for_a_while() -> None:
    made = job_of(manifest(job={"activeDeadlineSeconds": 60, "backoffLimit": 5, "ttlSecondsAfterFinished": 1}))
    spec = made["spec"]
    assert made["metadata"]["name"] == f"checkpoint-job-{HASH}-1"
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (0, 60, 300)
    assert job_of(manifest())["spec"]["activeDeadlineSeconds"] == 3600
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("DynamoCheckpoint", "llama", True)


def test_the_agent_gets_the_pod_and_its_task() -> None:
    template = job_of(manifest())["spec"]["template"]
    assert template["metadata"]["labels"] == {
        "team": "a",
        "nvidia.com/dynamo-component": "worker",
        "nvidia.com/snapshot-checkpoint-id": HASH,
        "nvidia.com/snapshot-is-checkpoint-source": "true",
    }
    assert template["metadata"]["annotations"] == {
        "sidecar.istio.io/inject": "false",
        "linkerd.io/inject": "disabled",
        "nvidia.com/snapshot-artifact-version": "1",
        "nvidia.com/snapshot-target-containers": "main",
        "nvidia.com/snapshot-storage-type": "pvc",
        "nvidia.com/snapshot-storage-base-path": "/checkpoints",
    }


def test_the_readiness_of_the_engine_is_that_the_agent_may_start() -> None:
    probe = {"httpGet": {"path": "/", "port": 1}}
    main = main_of(manifest({"livenessProbe": probe, "startupProbe": probe, "readinessProbe": probe}))
    assert main["readinessProbe"] == {
        "exec": {"command": ["cat", "/snapshot-control/ready-for-checkpoint"]},
        "periodSeconds": 1,
    }
    assert "livenessProbe" not in main
    assert "startupProbe" not in main


def test_the_pod_has_storage_a_connection_to_the_agent_and_shared_memory() -> None:
    pod = job_of(manifest(pod={"volumes": [{"name": "data", "emptyDir": {}}]}))["spec"]["template"]["spec"]
    volumes = {each.pop("name"): each for each in map(dict, pod["volumes"])}
    assert list(volumes) == ["data", "shared-memory", "checkpoint-storage", "snapshot-control", "podinfo"]
    assert volumes["checkpoint-storage"] == {"persistentVolumeClaim": {"claimName": "claim"}}
    mounts = {each["name"]: each for each in pod["containers"][0]["volumeMounts"]}
    assert mounts["checkpoint-storage"]["mountPath"] == "/checkpoints"
    assert mounts["snapshot-control"] == {
        "name": "snapshot-control",
        "mountPath": "/snapshot-control",
        "subPath": "main",
    }
    assert mounts["podinfo"]["mountPath"] == "/etc/podinfo"
    files = {each["path"] for each in volumes["podinfo"]["downwardAPI"]["items"]}
    assert files == {
        "pod_name",
        "pod_uid",
        "pod_namespace",
        "dyn_namespace",
        "dyn_namespace_worker_suffix",
        "dyn_component",
        "dyn_parent_dgd_k8s_name",
        "dyn_parent_dgd_k8s_namespace",
    }


@pytest.mark.parametrize(
    ("memory", "size"),
    [({}, "8Gi"), ({"sharedMemory": {"size": "16Gi"}}, "16Gi"), ({"sharedMemory": {"disabled": True}}, None)],
)
def test_shared_memory(memory: KubeObject, size: str | None) -> None:
    volumes = job_of(manifest(job=memory))["spec"]["template"]["spec"]["volumes"]
    result = next((each["emptyDir"]["sizeLimit"] for each in volumes if each["name"] == "shared-memory"), None)
    assert result == size


def test_the_engine_is_a_standalone_worker() -> None:
    config = replace(TAKING, infrastructure=(("NATS_SERVER", "nats://n"),))
    result = variables(main_of(manifest({"env": [{"name": "DYN_SYSTEM_PORT", "value": "1"}]}), config))
    assert result["DYN_SYSTEM_PORT"] == "1"
    assert result["DYN_COMPONENT"] == "worker"
    assert result["NATS_SERVER"] == "nats://n"
    assert result["DYN_SNAPSHOT_CONTROL_DIR"] == "/snapshot-control"
    assert result["DYN_NAMESPACE"] == f"ns-checkpoint-{HASH}"


@pytest.mark.parametrize(
    ("sizes", "command", "args"),
    [
        ({}, ["python3"], ["-m", "dynamo.vllm"]),
        ({"tensorParallelSize": 2}, ["cuda-checkpoint"], ["--launch-job", "python3", "-m", "dynamo.vllm"]),
        ({"pipelineParallelSize": 4}, ["cuda-checkpoint"], ["--launch-job", "python3", "-m", "dynamo.vllm"]),
    ],
)
def test_an_engine_of_several_gpus_is_started_by_cuda_checkpoint(
    sizes: KubeObject, command: list[str], args: list[str]
) -> None:
    main = main_of(manifest(identity={**LLAMA, **sizes}))
    assert (main["command"], main["args"]) == (command, args)


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (manifest({"name": "other"}), r"containers: has no container main"),
        (manifest({"image": ""}), r"containers\[main\].image: is required"),
        (
            manifest({"command": []}, identity={**LLAMA, "tensorParallelSize": 2}),
            r"containers\[main\].command: is required",
        ),
        (manifest(gpuMemoryService={"enabled": True, "mode": "interPod"}), "spec.gpuMemoryService.mode"),
        (manifest(gpuMemoryService={"enabled": True}), "shared GPUs need Dynamic Resource Allocation"),
    ],
)
def test_an_invalid_checkpoint_is_rejected(obj: KubeObject, message: str) -> None:
    with pytest.raises(render.RenderError, match=message):
        children(obj)


def test_the_seccomp_profile_of_the_installation_is_added_to_the_users_security_context() -> None:
    obj = manifest(pod={"securityContext": {"runAsUser": 7}})
    profile = {"type": "Localhost", "localhostProfile": "profiles/block-iouring.json"}
    assert job_of(obj)["spec"]["template"]["spec"]["securityContext"] == {"runAsUser": 7, "seccompProfile": profile}
    without = replace(TAKING, checkpoints=replace(ON, profile=""))
    assert job_of(obj, without)["spec"]["template"]["spec"]["securityContext"] == {"runAsUser": 7}


def test_the_checkpoint_has_its_own_access_to_discovery() -> None:
    made = children(manifest())
    assert [each["kind"] for each in made] == ["ServiceAccount", "Role", "RoleBinding", "Job"]
    assert made[0]["metadata"]["name"] == "llama-k8s-service-discovery"
    assert made[-1]["spec"]["template"]["spec"]["serviceAccountName"] == "llama-k8s-service-discovery"
    own = children(manifest(pod={"serviceAccountName": "mine"}))[-1]
    assert own["spec"]["template"]["spec"]["serviceAccountName"] == "mine"
    by_etcd = children(manifest(), replace(TAKING, discovery_backend="etcd"))
    assert [each["kind"] for each in by_etcd] == ["Job"]
    assert "serviceAccountName" not in by_etcd[0]["spec"]["template"]["spec"]


def test_a_gpu_memory_service_runs_in_the_job_s_pod() -> None:
    config = replace(TAKING, device_claims=True)
    gpus = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
    made = children(manifest(gpus, gpuMemoryService={"enabled": True}), config)
    (template,) = of_kind(made, "ResourceClaimTemplate")
    assert template["metadata"]["name"] == f"checkpoint-{HASH}-worker-gpu"
    pod = made[-1]["spec"]["template"]["spec"]
    assert [each["name"] for each in pod["initContainers"]] == ["gms-server"]
    assert pod["resourceClaims"][0]["resourceClaimTemplateName"] == template["metadata"]["name"]


def test_other_containers_and_the_input_are_not_changed() -> None:
    sidecar = {"name": "log", "image": "log:1"}
    obj = manifest()
    obj["spec"]["job"]["podTemplateSpec"]["spec"]["containers"].insert(0, sidecar)
    before = str(obj)
    containers = job_of(obj)["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in containers] == ["main", "log"]
    assert containers[1] == sidecar
    assert str(obj) == before


@pytest.mark.parametrize(
    ("defaults", "reason"), [(CheckpointDefaults(), DISABLED), (ON, GPU_MEMORY), (replace(ON, gpu_memory=True), None)]
)
def test_checkpoints_with_a_gpu_memory_service_need_support(defaults: CheckpointDefaults, reason: str | None) -> None:
    spec = parse_checkpoint(manifest(gpuMemoryService={"enabled": True})).spec
    assert spec is not None
    result = refusal(spec, defaults)
    assert (result[0] if result else None) == reason


def agent(container: str = "agent", volume: str = "checkpoints", claim: str = "pvc") -> KubeObject:
    pod = {
        "containers": [{"name": container, "volumeMounts": [{"name": volume, "mountPath": "/snap/"}]}],
        "volumes": [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} if claim else {"name": volume}],
    }
    return {"spec": {"template": {"spec": pod}}}


@pytest.mark.parametrize(
    ("defaults", "agents", "storage"),
    [
        (ON, [], None),
        (ON, [agent()], Storage("pvc", "/snap")),
        (
            ON,
            [agent(container="other"), agent(volume="cache"), agent(claim=""), agent(claim="b")],
            Storage("b", "/snap"),
        ),
        (replace(ON, claim="c", base_path="/x/"), [agent()], Storage("c", "/x")),
    ],
    ids=["nowhere", "the agent's", "the agent that has one", "the settings'"],
)
def test_the_storage_of_checkpoints(
    defaults: CheckpointDefaults, agents: list[KubeObject], storage: Storage | None
) -> None:
    assert storage_of(defaults, agents) == storage


@pytest.mark.parametrize(("base", "location"), [("/", "/h/versions/2"), ("/a", "/a/h/versions/2")])
def test_each_version_has_its_directory(base: str, location: str) -> None:
    assert Storage("c", base).location("h", "2") == location


def test_a_claim_is_created_if_the_settings_say_so() -> None:
    assert claim_of(replace(ON, claim="c"), "ns") is None
    made = claim_of(replace(ON, claim="c", create=True, size="1Ti", storage_class="fast"), "ns")
    assert made is not None
    assert made["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Ti"}},
        "storageClassName": "fast",
    }
    assert "ownerReferences" not in made["metadata"]


@pytest.mark.parametrize(
    ("object_labels", "version"),
    [
        ({}, "1"),
        ({"nvidia.com/snapshot-artifact-version": " 7 "}, "7"),
        ({"nvidia.com/snapshot-artifact-version": ""}, "1"),
    ],
)
def test_the_version_of_the_files(object_labels: dict[str, str], version: str) -> None:
    assert names.version_of({"metadata": {"annotations": object_labels}}) == version


def made_for(**fields: Any) -> KubeObject:
    single = component(experimental={"checkpoint": {"identity": LLAMA}}, **fields)
    dcd = component_deployments(graph(single), TAKING)["Worker"]
    identity = CheckpointIdentity.model_validate(LLAMA)
    return checkpoint_of(parse_component(dcd), identity, TAKING, NEW_COMPONENT)


def test_the_checkpoint_of_a_component_depends_only_on_its_engine() -> None:
    made = made_for(sidecars=[{"name": "front", "image": "f:1"}], frontendSidecar="front", sharedMemorySize="2Gi")
    loaded = load_manifest(made)
    assert isinstance(loaded, DynamoCheckpoint)
    assert made["metadata"] == {
        "name": f"checkpoint-{HASH}",
        "namespace": "ns",
        "labels": {"nvidia.com/snapshot-checkpoint-id": HASH},
        "annotations": {"nvidia.com/snapshot-artifact-version": "1"},
    }
    template = made["spec"]["job"]["podTemplateSpec"]
    assert template["metadata"] == {"labels": {"nvidia.com/dynamo-component": "Worker"}}
    pod = template["spec"]
    assert [each["name"] for each in pod["containers"]] == ["main"]
    assert pod["restartPolicy"] == "Never"
    assert "serviceAccountName" not in pod
    assert made["spec"]["job"]["sharedMemory"] == {"size": "2Gi"}
    assert "DYN_NAMESPACE_WORKER_SUFFIX" not in variables(pod["containers"][0])


def test_generations_of_a_component_have_the_same_checkpoint() -> None:
    assert made_for() == made_for(labels={"nvidia.com/dynamo-worker-hash": "other"})


def test_the_job_of_a_components_checkpoint_can_be_rendered() -> None:
    made = {**made_for(), "metadata": {**made_for()["metadata"], "uid": "u"}}
    pod = job_of(made)["spec"]["template"]["spec"]
    assert [each["name"] for each in pod["volumes"]].count("shared-memory") == 1
    assert pod["serviceAccountName"] == f"checkpoint-{HASH}-k8s-service-discovery"


def test_the_example_renders_a_job() -> None:
    text = (Path(__file__).parents[3] / "examples" / "resources" / "checkpoint.yaml").read_text()
    obj = {**yaml.safe_load(text)}
    made = job_of({**obj, "metadata": {**obj["metadata"], "namespace": "ns", "uid": "u"}})
    assert made["metadata"]["name"].startswith("checkpoint-job-")
