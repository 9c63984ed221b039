# ruff: noqa: E501 - messages stand here whole
"""Every kind in every version against its own schema: the error, its place, and the message in that version's terms."""

import copy
import difflib
import itertools
import json
import random
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest
import yaml
from dynamo_shared.api import legacy, v1alpha1, v1beta1
from dynamo_shared.api.crds.kinds import CHECKPOINT, DEFINITIONS, MODEL, WORKER_METADATA
from dynamo_shared.api.field_errors import path_of, suggestion_for
from dynamo_shared.api.manifest import load_manifest, schema_errors
from hypothesis import given
from hypothesis import strategies as st

from tests.building.tables import table_of

CASES = Path(__file__).resolve().parents[4] / "shared" / "conformance" / "cases"


def manifest(kind: str, version: str, spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"nvidia.com/{version}", "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def errors(kind: str, version: str, spec: Any, **options: bool) -> list[str]:
    return [str(error) for error in schema_errors(manifest(kind, version, spec), **options)]


IDENTITY = {"model": "m", "backendFramework": "vllm"}
CHECKPOINTED = {"identity": IDENTITY, "job": {"podTemplateSpec": {"spec": {"containers": []}}}}
GOOD: list[tuple[type, dict[str, Any]]] = [
    (v1beta1.DynamoGraphDeployment, {"components": [{"name": "a"}]}),
    (v1beta1.DynamoComponentDeployment, {"type": "worker"}),
    (v1beta1.DynamoGraphDeploymentScalingAdapter, {"dgdRef": {"name": "g", "componentName": "c"}, "replicas": 2}),
    (v1beta1.DynamoGraphDeploymentRequest, {"model": "m", "overrides": {"profilingJob": {"backoffLimit": 1}}}),
    (v1alpha1.DynamoGraphDeployment, {"services": {"Frontend": {"componentType": "frontend"}}}),
    (v1alpha1.DynamoComponentDeployment, {"extraPodSpec": {"mainContainer": {"image": "x"}, "newer": 1}}),
    (v1alpha1.DynamoGraphDeploymentScalingAdapter, {"dgdRef": {"name": "g", "serviceName": "s"}, "replicas": 0}),
    (
        v1alpha1.DynamoGraphDeploymentRequest,
        {"model": "m", "backend": "auto", "profilingConfig": {"profilerImage": "x", "config": {"sla": {"ttft": 1}}}},
    ),
    *((version.model, {"modelName": "m", "baseModelName": "b"}) for version in MODEL.versions),
    *((version.model, CHECKPOINTED) for version in CHECKPOINT.versions),
    *((version.model, {"data": {"anything": [1]}}) for version in WORKER_METADATA.versions),
    (legacy.DynamoDeployment, {"dynamoNim": "a:b", "services": {"Frontend": {"replicas": 1}}}),
    (legacy.DynamoNimDeployment, {"dynamoNamespace": "d", "dynamoNim": "a--b", "dynamoTag": "m:C", "serviceName": "C"}),
    (legacy.DynamoNimRequest, {"bentoTag": "a:b"}),
]


def version_of(model: Any) -> str:
    return model.model_fields["api_version"].default.removeprefix("nvidia.com/")


@pytest.mark.parametrize(("model", "spec"), GOOD, ids=lambda each: getattr(each, "__qualname__", ""))
def test_a_valid_manifest_becomes_the_type_of_its_version(model: type, spec: dict[str, Any]) -> None:
    written = manifest(model.__name__, version_of(model), spec)
    before = copy.deepcopy(written)
    assert schema_errors(written) == []
    assert type(load_manifest(written)) is model
    assert written == before


def test_there_is_a_valid_manifest_for_each_version_of_each_kind() -> None:
    kinds = {(version.resource.kind, version.resource.version) for each in DEFINITIONS for version in each.versions}
    assert {(model.__name__, version_of(model)) for model, _ in GOOD} == kinds


#: Errors of a spec, by version and kind.
BAD = table_of("""
v1alpha1 DynamoGraphDeployment: {backendFramework: vlm, components: [], services: {Decode: {replicas: '2', replica: 2,
    podTemplate: {}, multinode: {nodeCount: 1}, gpuMemoryService: {}, sharedMemory: {}, resources: {limits: {gpu: 1}},
    checkpoint: {enabled: true}}, x/y: {volumeMounts: [{mountPoint: /x}]}}, pvcs: [{name: a, create: true, size:
    1Gi}]}
  | spec.backendFramework: 'vlm' is not allowed; one of 'sglang', 'vllm', 'trtllm'
  | spec.services.Decode.replicas: must be an integer, not '2'
  | spec.services.Decode.multinode.nodeCount: 1 is too small; at least 2
  | spec.services.Decode.resources.limits.gpu: must be a string, not 1
  | spec.services.Decode.gpuMemoryService.enabled: required, and missing
  | spec.services.Decode.replica: no such field; did you mean replicas?
  | spec.services.Decode.podTemplate: no such field; v1alpha1 has it in extraPodSpec and extraPodMetadata, with mainContainer for the container main
  | spec.services["x/y"].volumeMounts[0].name: required, and missing
  | spec.components: no such field; v1alpha1 has a map, services, whose keys are the names
  | spec.services.Decode.sharedMemory: size must be set, or disabled must be true
  | spec.pvcs[0]: create: true needs storageClass, volumeAccessMode, too
v1alpha1 DynamoGraphDeployment: {services: {a: {pvc: {name: p}, resources: {limits: {nvidia.com/gpu: '1'}}}}}
  | spec.services.a.resources.limits["nvidia.com/gpu"]: no such field; v1alpha1 calls it gpu
  | spec.services.a.pvc: no such field; v1alpha1 has name and create in pvcs of the graph, and name and mountPoint in volumeMounts of the service
v1alpha1 DynamoGraphDeployment: {services: {a: {startupProbe: {}, nodeSelector: {}, pvcs: [{name: p}]}}}
  | spec.services.a.startupProbe: no such field; v1alpha1 has it in extraPodSpec.mainContainer
  | spec.services.a.nodeSelector: no such field; v1alpha1 has it in extraPodSpec
  | spec.services.a.pvcs: no such field; v1alpha1 has it on the graph; a service has volumeMounts
v1beta1 DynamoComponentDeployment: {name: a, image: x, tolerations: []}
  | spec.image: no such field; v1beta1 has it in podTemplate.spec.containers, on the container main
  | spec.tolerations: no such field; v1beta1 has it in podTemplate.spec
v1alpha1 DynamoComponentDeployment: {sharedMemory: {size: 5}, failover: {enabled: true, numShadows: 0}, ingress:
    {hosts: x}}
  | spec.ingress.hosts: no such field; did you mean host?
  | spec.failover.numShadows: 0 is too small; at least 1
  | spec.sharedMemory.size: must be a string, such as "5Gi"; write a number of bytes in quotation marks
v1alpha1 DynamoComponentDeployment: {sharedMemory: {size: -1}}
  | spec.sharedMemory.size: must be a string, such as "8Gi"; write a number of bytes in quotation marks
v1alpha1 DynamoComponentDeployment: {sharedMemory: {size: 17179869184}}
  | spec.sharedMemory.size: must be a string, such as "8Gi"; write a number of bytes in quotation marks
v1alpha1 DynamoComponentDeployment: {sharedMemory: {size: true}}
  | spec.sharedMemory.size: true is not a quantity; examples: 8Gi, 500m, 2, 1e9
v1alpha1 DynamoComponentDeployment: {sharedMemory: {size: 0Gi}}
  | spec.sharedMemory.size: '0Gi' is not allowed; write an amount such as 8Gi, or disabled: true
v1beta1 DynamoGraphDeploymentScalingAdapter: {dgdRef: {name: '', serviceName: s}, replicas: 3000000000}
  | spec.dgdRef.name: must not be empty
  | spec.dgdRef.componentName: required, and missing
  | spec.dgdRef.serviceName: no such field; v1beta1 calls it componentName
  | spec.replicas: 3000000000 is too large; at most 2147483647
v1alpha1 DynamoGraphDeploymentScalingAdapter: {dgdRef: {name: g, componentName: s}, replicas: -1}
  | spec.dgdRef.serviceName: required, and missing
  | spec.dgdRef.componentName: no such field; v1alpha1 calls it serviceName
  | spec.replicas: -1 is too small; at least 0
v1beta1 DynamoGraphDeploymentRequest: {model: '', useMocker: true, sla: {ttft: '1'}, overrides: {dgd: []},
    profilerImage: i}
  | spec.model: must not be empty
  | spec.sla.ttft: must be a number, not '1'
  | spec.overrides.dgd: must be an object, not a list
  | spec.useMocker: no such field; v1beta1 has features.mocker.enabled
  | spec.profilerImage: no such field; v1beta1 calls it image
v1alpha1 DynamoGraphDeploymentRequest: {model: m, backend: llama, sla: {}, profilerImage: i, profilingConfig:
    {resources: {limits: {cpu: 1X}}}}
  | spec.backend: 'llama' is not allowed; one of 'auto', 'vllm', 'sglang', 'trtllm'
  | spec.profilingConfig.profilerImage: required, and missing
  | spec.profilingConfig.resources.limits.cpu: '1X' is not a quantity; examples: 8Gi, 500m, 2, 1e9
  | spec.sla: no such field; v1alpha1 has it in profilingConfig.config
  | spec.profilerImage: no such field; v1alpha1 has it in profilingConfig
v1alpha1 DynamoModel: {modelName: m, modelType: LoRA, source: {}, enabled: true}
  | spec.baseModelName: required, and missing
  | spec.modelType: 'LoRA' is not allowed; one of 'base', 'lora', 'adapter'
  | spec.source.uri: required, and missing
  | spec.enabled: no such field; there are baseModelName, modelName, modelType, source
v1alpha1 DynamoCheckpoint: {identity: {model: m, backendFramework: vllm, maxModelLen: 0}, job: {activeDeadlineSeconds:
    0}}
  | spec.identity.maxModelLen: 0 is too small; at least 1
  | spec.job.podTemplateSpec: required, and missing
  | spec.job.activeDeadlineSeconds: 0 is too small; at least 1
v1beta1 DynamoGraphDeployment: {components: [{name: a, type: worker, labels: {}, annotations: {}}], experimental:
    {kvTransferPolicy: {labelKey: l, domain: zone, preferredWeight: '0.5'}}}
  | spec.components[0].labels: no such field; v1beta1 has it in podTemplate.metadata
  | spec.components[0].annotations: no such field; v1beta1 has it in podTemplate.metadata
  | spec.experimental.kvTransferPolicy.preferredWeight: must be a number, not '0.5'
v1beta1 DynamoComponentDeployment: {experimental: {gpuMemoryService: {extraClientContainers: [a, b, a]}}}
  | spec.experimental.gpuMemoryService.extraClientContainers[2]: 'a' is already item [0]: name it once
v1alpha1 DynamoComponentDeployment: {gpuMemoryService: {enabled: true, extraClientContainers: [1, a, a]}}
  | spec.gpuMemoryService.extraClientContainers[0]: must be a string, not 1
  | spec.gpuMemoryService.extraClientContainers[2]: 'a' is already item [1]: name it once
v1alpha1 DynamoWorkerMetadata: {data: x} | spec.data: must be an object, not 'x'
v1alpha1 DynamoNimRequest: {bentoTag: 1} | spec.bentoTag: must be a string, not 1
""")


@pytest.mark.parametrize(("given", "expected"), BAD.items())
def test_every_error_is_reported_in_the_terms_of_its_version(given: str, expected: tuple[str, ...]) -> None:
    ((name, spec),) = yaml.safe_load(given).items()
    version, kind = name.split()
    assert errors(kind, version, spec) == [*expected]


def test_checks_of_embedded_types_can_be_left_to_the_cluster() -> None:
    spec = {
        "services": {
            "a": {
                "replicas": -1,
                "envs": [{}],
                "extraPodSpec": {"mainContainer": {"env": {}}, "containers": [{"image": "x"}]},
                "eppConfig": {"config": {"plugins": []}},
            }
        }
    }
    assert errors("DynamoGraphDeployment", "v1alpha1", spec) == [
        "spec.services.a.replicas: -1 is too small; at least 0",
        "spec.services.a.envs[0].name: required, and missing",
        "spec.services.a.extraPodSpec.containers[0].name: required, and missing",
        "spec.services.a.extraPodSpec.mainContainer.env: must be a list, not an object",
        "spec.services.a.eppConfig.config.schedulingProfiles: required, and missing",
    ]
    assert errors("DynamoGraphDeployment", "v1alpha1", spec, embedded=False) == [
        "spec.services.a.replicas: -1 is too small; at least 0",
        "spec.services.a.eppConfig.config.schedulingProfiles: required, and missing",
    ]


def test_another_value_in_place_of_an_object_is_rejected_with_and_without_embedded_types() -> None:
    for embedded in (True, False):
        assert errors("DynamoComponentDeployment", "v1beta1", {"podTemplate": "x"}, embedded=embedded) == [
            "spec.podTemplate: must be an object, not 'x'"
        ]


def nested(depth: int, value: dict[str, Any]) -> dict[str, Any]:
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("junk", [None, 3, "x", [], [{}], {}, {"kind": []}, {"kind": "DynamoModel", "apiVersion": {}}])
def test_junk_gives_errors(junk: Any) -> None:
    assert schema_errors(junk)


@pytest.mark.parametrize("end", [{}, {"none": None}])
def test_deeply_nested_values_raise_nothing(end: dict[str, Any]) -> None:
    written = manifest("DynamoComponentDeployment", "v1beta1", {"podTemplate": nested(50_000, end)})
    assert len(schema_errors(written)) <= 1


SPECS = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["services", "sharedMemory", "size", "checkpoint", "pvcs", "envs", "config", "name", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
KINDS = sorted((version.resource.kind, version.resource.version) for each in DEFINITIONS for version in each.versions)


@given(st.sampled_from(KINDS), SPECS, SPECS)
def test_no_manifest_raises(kind: tuple[str, str], spec: Any, status: Any) -> None:
    schema_errors({**manifest(*kind, spec), "status": status})


@pytest.mark.skipif(not CASES.is_dir(), reason="the recorded manifests (../shared/conformance/cases) are not here")
def test_the_references_own_examples_load_without_errors() -> None:
    observed: dict[str, int] = {}
    for case in sorted(CASES.glob("*/*.json")):
        for written in json.loads(case.read_text())["input"]:
            if written["apiVersion"].startswith("nvidia.com/"):
                assert schema_errors(written) == [], case
                load_manifest(written)
                observed[written["kind"]] = observed.get(written["kind"], 0) + 1
    assert observed["DynamoGraphDeployment"] > 40


def test_a_graph_of_25_services_has_no_errors() -> None:
    service = {
        "componentType": "worker",
        "replicas": 2,
        "envs": [{"name": f"V{number}", "value": "x"} for number in range(10)],
        "resources": {"limits": {"gpu": "1", "memory": "20Gi"}, "requests": {"cpu": "4"}},
        "sharedMemory": {"size": "8Gi"},
        "extraPodSpec": {
            "mainContainer": {"image": "x:1", "command": ["python3"], "args": ["-m", "dynamo.vllm"]},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
        },
    }
    written = manifest("DynamoGraphDeployment", "v1alpha1", {"services": {f"s{n}": service for n in range(25)}})
    assert schema_errors(written) == []


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("example.com/a", 'metadata.labels["example.com/a"]'),
        ('a"b', r'metadata.labels["a\"b"]'),
        ("\x1b[31mred\nline", r'metadata.labels["\u001b[31mred\nline"]'),
        ("gnp\u202e", r'metadata.labels["gnp\u202e"]'),
        ("Z\u00fcrich city", 'metadata.labels["Z\u00fcrich city"]'),
    ],
)
def test_unusual_names_in_a_path_are_quoted(key: str, path: str) -> None:
    assert path_of(("metadata", "labels", key)) == path


@pytest.mark.parametrize("known", [100, 5_000])
def test_a_suggestion_compares_only_the_likeliest_words_in_full(known: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    class Counting(SequenceMatcher[str]):
        def ratio(self) -> float:
            nonlocal compared
            compared += 1
            return super().ratio()

    monkeypatch.setattr(difflib, "SequenceMatcher", Counting)
    # All of them have the same letters, so a bound on the letters in common excludes none.
    words = ["".join(random.Random(seed).sample("ab" * 30, 60)) for seed in range(known)]
    assert suggestion_for("".join(random.Random("word").sample("ab" * 30, 60)), words)
    # difflib computes the ratio of a similar word twice.
    assert compared <= 2 * 4


def test_the_most_similar_word_is_suggested() -> None:
    anagrams = ["".join(each) for each in itertools.permutations("sort")][:3]
    assert suggestion_for("volumeMonts", [*anagrams, "volumeDevices", "volumes", "volumeMounts"]) == (
        "; did you mean volumeMounts?"
    )
    # A word that begins with the given one is meant, not one that is as long.
    assert suggestion_for("H200", ["b200_sxm", "h200_sxm", "mi200"]) == "; did you mean h200_sxm?"
    assert suggestion_for("x", []) == suggestion_for("replicas" * 10, ["replicas" * 10]) == ""
