"""What an intent becomes: each field of the form has its place in the object, or is reported."""

from typing import Any

import pytest
import yaml
from dynamo_dynadmin.deploy import Draft, InvalidIntent, PlatformDefaults, read_intent, translate
from dynamo_dynadmin.deploy.draft import parts_of
from dynamo_dynadmin.deploy.request import with_form_names

PLATFORM = PlatformDefaults()
GRAPH: dict[str, Any] = {"mode": "graph", "name": "qwen", "model": {"name": "Qwen/Qwen3-0.6B"}, "backend": "vllm"}
OBJECTIVE: dict[str, Any] = {"mode": "objective", "name": "qwen", "model": {"name": "Qwen/Qwen3-32B"}}


def merged(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    return {
        **base,
        **{
            key: merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
            for key, value in change.items()
        },
    }


def translated(base: dict[str, Any], change: dict[str, Any] | None = None) -> Draft:
    return translate(read_intent(merged(base, change or {})), "team", PLATFORM)


def refused(sent: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidIntent) as caught:
        translate(read_intent(sent), "team", PLATFORM)
    return {each.pointer: each.detail for each in caught.value.problems}


def at(obj: Any, path: str) -> Any:
    for part in parts_of(path):
        obj = obj[int(part)] if isinstance(obj, list) else obj[part]
    return obj


POD, FRONTEND = (f"spec.components[{number}].podTemplate.spec" for number in (1, 0))
MAIN = f"{POD}.containers[0]"


@pytest.mark.parametrize(
    ("change", "path", "value"),
    [
        ("{}", "metadata.namespace", "team"),
        ("{}", "spec.components[1].type", "worker"),
        ("{}", f"{MAIN}.image", "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.2.0"),
        ("{}", f"{MAIN}.resources.limits[nvidia.com/gpu]", "1"),
        ("{}", "spec.components[1].modelRef.name", "Qwen/Qwen3-0.6B"),
        ("model: {servedName: qwen}", "spec.components[1].modelRef.name", "qwen"),
        ("model: {tokenSecret: mine}", f"{MAIN}.envFrom", [{"secretRef": {"name": "mine"}}]),
        ("model: {cache: {claim: models}}", f"{MAIN}.env[0].name", "HF_HOME"),
        # One variable has one value: that of the user.
        (
            "{model: {cache: {claim: models}}, engine: {env: {HF_HOME: /mine}}}",
            f"{MAIN}.env",
            [{"name": "HF_HOME", "value": "/mine"}],
        ),
        ("model: {cache: {claim: models}}", f"{POD}.volumes[0].persistentVolumeClaim.claimName", "models"),
        ("images: {runtime: 'here/it:1'}", f"{FRONTEND}.containers[0].image", "here/it:1"),
        ("images: {pullSecrets: [reg]}", f"{POD}.imagePullSecrets", [{"name": "reg"}]),
        ("serving: {replicas: {worker: 3}}", "spec.components[1].replicas", 3),
        ("serving: {replicas: {frontend: 2}}", "spec.components[0].replicas", 2),
        ("serving: {router: kv}", f"{FRONTEND}.containers[0].env[0].value", "kv"),
        ("serving: {autoscaling: true}", "spec.components[1].scalingAdapter", {}),
        ("serving: {mode: disaggregated}", "spec.components[2].type", "decode"),
        ("hardware: {gpusPerReplica: 4}", f"{MAIN}.resources.limits[nvidia.com/gpu]", "4"),
        ("hardware: {gpusPerReplica: 16, gpusPerNode: 8}", "spec.components[1].multinode.nodeCount", 2),
        ("hardware: {cpu: '8'}", f"{MAIN}.resources.requests.cpu", "8"),
        ("hardware: {cpu: 0}", f"{MAIN}.resources.requests.cpu", 0),
        ("hardware: {memory: 80Gi}", f"{MAIN}.resources.limits.memory", "80Gi"),
        ("hardware: {sharedMemory: 16Gi}", "spec.components[1].sharedMemorySize", "16Gi"),
        ("hardware: {gpuProduct: H100}", f"{POD}.nodeSelector[nvidia.com/gpu.product]", "H100"),
        ("placement: {priorityClass: high}", f"{FRONTEND}.priorityClassName", "high"),
        ("placement: {priorityClass: high}", "spec.priorityClassName", "high"),
        ("placement: {topology: {name: t, domain: rack}}", "spec.topologyConstraint.packDomain", "rack"),
        ("labels: {team: a}", "spec.labels.team", "a"),
        ("engine: {env: {A: b}}", f"{MAIN}.env[0].value", "b"),
        ("engine: {envSecrets: [s]}", f"{MAIN}.envFrom[0].secretRef.name", "s"),
        ("compilationCache: {claim: kernels}", "spec.components[1].compilationCache.pvcName", "kernels"),
    ],
)
def test_a_field_of_a_graph_has_its_place(change: str, path: str, value: Any) -> None:
    assert at(translated(GRAPH, yaml.safe_load(change)).manifest, path) == value


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("vllm", ["--max-model-len", "4096"]),
        ("sglang", ["--context-length", "4096"]),
        ("trtllm", ["--max-seq-len", "4096"]),
    ],
)
def test_an_option_is_the_argument_that_its_backend_has_for_it(backend: str, expected: list[str]) -> None:
    change = {"backend": backend, "engine": {"contextLength": 4096, "args": ["--further", "x"]}}
    args = at(translated(GRAPH, change).manifest, f"{MAIN}.args")
    assert args[-4:] == [*expected, "--further", "x"]


def test_disaggregated_engines_know_their_side_and_how_caches_are_sent() -> None:
    manifest = translated(GRAPH, {"serving": {"mode": "disaggregated"}}).manifest
    for index, side in ((1, "prefill"), (2, "decode")):
        args = at(manifest, f"spec.components[{index}].podTemplate.spec.containers[0].args")
        assert args[args.index("--disaggregation-mode") + 1] == side
        assert "NixlConnector" in args[args.index("--kv-transfer-config") + 1]


@pytest.mark.parametrize(
    ("change", "path", "value"),
    [
        ("{}", "spec.model", "Qwen/Qwen3-32B"),
        ("backend: sglang", "spec.backend", "sglang"),
        ("images: {runtime: 'here/it:1'}", "spec.image", "here/it:1"),
        ("hardware: {gpuSku: h100_sxm}", "spec.hardware.gpuSku", "h100_sxm"),
        ("hardware: {gpusPerNode: 8}", "spec.hardware.numGpusPerNode", 8),
        ("objective: {ttftMs: 600, itlMs: 20}", "spec.sla.itl", 20),
        ("objective: {e2eMs: 9000}", "spec.sla.e2eLatency", 9000),
        ("objective: {optimizeFor: latency}", "spec.sla.optimizationType", "latency"),
        ("objective: {autoApply: false}", "spec.autoApply", False),
        ("workload: {isl: 100, requestRate: 3}", "spec.workload.requestRate", 3),
        ("model: {cache: {claim: m, path: a}}", "spec.modelCache.pvcModelPath", "a"),
        ("mocker: true", "spec.features.mocker.enabled", True),
        ("serving: {router: kv}", "spec.features.kvRouter.enabled", True),
        ("labels: {team: a}", "spec.overrides.dgd.spec.labels.team", "a"),
        ("engine: {env: {A: b}}", "spec.overrides.dgd.spec.env[0].value", "b"),
        ("engine: {trustRemoteCode: true}", "spec.overrides.trustRemoteCode", True),
        ("images: {pullSecrets: [reg]}", "spec.overrides.profilingJob.template.spec.imagePullSecrets[0].name", "reg"),
    ],
)
def test_a_field_of_an_objective_has_its_place(change: str, path: str, value: Any) -> None:
    assert at(translated(OBJECTIVE, yaml.safe_load(change)).manifest, path) == value


@pytest.mark.parametrize(
    ("base", "change", "pointer"),
    [
        (GRAPH, {"objective": {"ttftMs": 600}}, "/objective/ttftMs"),
        (GRAPH, {"workload": {"concurrency": 3}}, "/workload/concurrency"),
        (GRAPH, {"hardware": {"totalGpus": 8}}, "/hardware/totalGpus"),
        (GRAPH, {"planner": {}}, "/planner"),
        (GRAPH, {"serving": {"replicas": {"decode": 2}}}, "/serving/replicas/decode"),
        (GRAPH, {"backend": "trtllm", "engine": {"quantization": "fp8"}}, "/engine/quantization"),
        (GRAPH, {"backend": "trtllm", "model": {"revision": "abc"}}, "/model/revision"),
        (OBJECTIVE, {"engine": {"args": ["--x"]}}, "/engine/args"),
        (OBJECTIVE, {"model": {"revision": "abc"}}, "/model/revision"),
        (OBJECTIVE, {"serving": {"replicas": {"worker": 2}}}, "/serving/replicas/worker"),
        (OBJECTIVE, {"serving": {"router": "random"}}, "/serving/router"),
        (OBJECTIVE, {"parallelism": {"tensor": 2}}, "/parallelism/tensor"),
        (OBJECTIVE, {"compilationCache": {"claim": "kernels"}}, "/compilationCache"),
    ],
)
def test_what_a_field_cannot_express_is_reported(base: dict[str, Any], change: dict[str, Any], pointer: str) -> None:
    assert [each.pointer for each in translated(base, change).unexpressed] == [pointer]


@pytest.mark.parametrize(
    ("sent", "pointers"),
    [
        ({}, {"/mode", "/name", "/model"}),
        ({**GRAPH, "name": "Q"}, {"/name"}),
        ({**GRAPH, "bakend": "vllm"}, {"/bakend"}),
        ({**GRAPH, "backend": None}, {"/backend"}),
        ({**GRAPH, "backend": "auto"}, {"/backend"}),
        ({**GRAPH, "hardware": {"sharedMemory": "much"}}, {"/hardware/sharedMemory"}),
        ({**GRAPH, "hardware": {"cpu": "many", "memory": "-1Gi"}}, {"/hardware/cpu", "/hardware/memory"}),
        ({**GRAPH, "hardware": {"gpusPerReplica": 3}, "parallelism": {"pipeline": 2}}, {"/hardware/gpusPerReplica"}),
        ({**OBJECTIVE, "objective": {"ttftMs": -1}, "workload": {"isl": 0}}, {"/objective/ttftMs", "/workload/isl"}),
        ({**OBJECTIVE, "objective": {"search": "thorough"}}, {"/objective/search"}),
        # No number of nodes in between divides them: a search among a thousand million would keep all callers waiting.
        (
            {
                **GRAPH,
                "parallelism": {"tensor": 1021, "pipeline": 1019, "data": 1013},
                "hardware": {"gpusPerNode": 1012},
            },
            {"/hardware/gpusPerNode"},
        ),
    ],
)
def test_every_error_is_reported_at_the_field_that_was_sent(sent: dict[str, Any], pointers: set[str]) -> None:
    assert set(refused(sent)) == pointers


def test_a_name_with_other_characters_says_which_are_allowed() -> None:
    message = "'Qwen_3' is not allowed; lower-case letters, digits and '-', and a letter or digit first and last"
    assert refused({**GRAPH, "name": "Qwen_3"}) == {"/name": message}


def test_a_refused_field_of_the_object_is_reported_at_the_field_it_came_from() -> None:
    made = translated(GRAPH, {"serving": {"replicas": {"worker": 2}}, "engine": {"env": {"A": "b"}}})
    refused_fields = ("spec.components[1].replicas", f"{MAIN}.env[0].name", "spec.elsewhere")
    result = [made.pointer_of(path) for path in refused_fields]
    assert result == ["/serving/replicas/worker", "/engine/env/A", ""]


def test_the_same_intent_gives_the_same_object() -> None:
    change = {"engine": {"env": {"B": "1", "A": "2"}, "contextLength": 10, "dtype": "auto"}}
    turned = {"engine": {"dtype": "auto", "contextLength": 10, "env": {"A": "2", "B": "1"}}}
    assert translated(GRAPH, change).manifest == translated(GRAPH, turned).manifest


def test_of_tens_of_thousands_of_mistakes_the_number_is_said() -> None:
    problems = refused({**GRAPH, **{f"x{number}": 1 for number in range(20_000)}})
    assert problems == {"": "20000 errors, more than the 10000 that are listed; correct repeated mistakes first"}


def test_parts_of_an_intent_that_are_passed_on_unchanged_are_limited() -> None:
    many = {"a": [0] * 5000}
    assert refused(merged(GRAPH, {"placement": {"tolerations": [many]}})) == {
        "/placement/tolerations": "more than 5000 values"
    }
    assert refused(merged(OBJECTIVE, {"planner": many})) == {"/planner": "more than 5000 values"}


def test_a_message_about_the_request_names_fields_of_the_form() -> None:
    said = "spec.hardware.numGpusPerNode, spec.sla.ttft not given; xspec.sla.ttft, spec.sla.ttfts and spec.model stay"
    assert with_form_names(said) == (
        "hardware.gpusPerNode, objective.ttftMs not given; xspec.sla.ttft, spec.sla.ttfts and spec.model stay"
    )


def test_a_number_that_is_far_too_large_is_said_to_be() -> None:
    with pytest.raises(InvalidIntent) as caught:
        read_intent(merged(OBJECTIVE, {"workload": {"osl": 1e308}}))
    assert str(caught.value) == "/workload/osl: 1e+308 is too large"
