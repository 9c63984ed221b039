"""Graphs of layouts, for each backend."""

import json
from dataclasses import replace
from typing import Any

import pytest
from dynamo_profiler.profiling.generation.candidates import unmeasured
from dynamo_profiler.profiling.generation.names import MAX_TOGETHER, graph_name
from dynamo_profiler.profiling.generation.overrides import overridden
from dynamo_profiler.profiling.generation.parts import GenerationInputs
from dynamo_profiler.profiling.models import KnownFrom, ModelArchitecture, known_model
from dynamo_profiler.profiling.objective import objective_of
from dynamo_profiler.profiling.points import Layout
from dynamo_profiler.profiling.results import DeploymentCandidate, ProfilingFailed
from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.engines.images import runtime_image
from dynamo_shared.api.manifest import load_manifest
from dynamo_shared.runtime.settings.planner import Rapid
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.profiler.profiling.profiling_world import layout, request, settings


def parts(name: str = "qwen", *, model: ModelArchitecture | None = None, **spec: Any) -> GenerationInputs:
    asked = replace(request(name, **spec), gpu_product="NVIDIA-H200")
    return GenerationInputs(
        request=asked, objective=objective_of(asked), settings=settings(), version="1.2.0", model=model
    )


def made(what: Layout, **spec: Any) -> DeploymentCandidate:
    return unmeasured(what, parts(**spec))[0]


def component(candidate: DeploymentCandidate, name: str) -> dict[str, Any]:
    results: dict[str, Any] = next(each for each in candidate.dgd["spec"]["components"] if each["name"] == name)
    return results


def main(candidate: DeploymentCandidate, name: str) -> dict[str, Any]:
    results: dict[str, Any] = component(candidate, name)["podTemplate"]["spec"]["containers"][0]
    return results


def flags(candidate: DeploymentCandidate, name: str) -> dict[str, str | None]:
    """Flags of a worker with their values, None where they have none."""
    args = main(candidate, name)["args"]
    results: dict[str, str | None] = {}
    for this, following in zip(args, [*args[1:], "--"], strict=True):
        if this.startswith("--"):
            results[this] = None if following.startswith("--") else following
    return results


DENSE = {"prefill": EngineLayout(tp=2, batch_size=1, gpus=2), "decode": EngineLayout(tp=8, batch_size=192, gpus=8)}
EXPERTS = {
    "prefill": EngineLayout(dp=8, moe_ep=8, batch_size=1, gpus=8),
    "decode": EngineLayout(dp=16, moe_ep=16, batch_size=68, gpus=16),
}


def test_workers_may_have_their_own_image():
    what = parts(image="nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.1.1")
    what = replace(what, request=replace(what.request, workers_image="worker:2"))
    made = unmeasured(layout(**DENSE), what)[0]
    images = [main(made, name)["image"] for name in ("Frontend", "prefill", "decode")]
    assert images == ["nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.1.1", "worker:2", "worker:2"]


@pytest.mark.parametrize(
    "spec",
    [
        {"components": [{"name": "decode", "podTemplate": {"spec": {"imagePullSecrets": [{"name": "mine"}]}}}]},
        {"services": {"decode": {"extraPodSpec": {"imagePullSecrets": [{"name": "mine"}]}}}},
    ],
)
def test_pull_secrets_of_an_override_reach_all_pods(spec: dict[str, Any]):
    job = {"template": {"spec": {"imagePullSecrets": [{"name": "first"}]}}}
    graph = made(layout(**DENSE), overrides={"dgd": {"spec": spec}, "profilingJob": job})
    secrets = {
        each["name"]: [one["name"] for one in each["podTemplate"]["spec"]["imagePullSecrets"]]
        for each in graph.dgd["spec"]["components"]
    }
    # An override replaces the list of its own component.
    assert secrets == {"Frontend": ["first", "mine"], "prefill": ["first", "mine"], "decode": ["mine"]}


def test_vllm_disaggregated():
    graph = made(layout(**DENSE))
    assert [each["name"] for each in graph.dgd["spec"]["components"]] == ["Frontend", "prefill", "decode"]
    assert graph.dgd["spec"]["backendFramework"] == "vllm"
    transfer = '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'
    assert flags(graph, "prefill") == {
        "--model": "Qwen/Qwen3-32B",
        "--served-model-name": "Qwen/Qwen3-32B",
        "--tensor-parallel-size": "2",
        "--block-size": "16",
        "--max-num-batched-tokens": "4096",
        "--disaggregation-mode": "prefill",
        "--kv-transfer-config": transfer,
    }
    decode = flags(graph, "decode")
    assert decode["--tensor-parallel-size"] == "8"
    assert decode["--max-num-seqs"] == "192"
    assert decode["--disaggregation-mode"] == "decode"
    assert decode["--kv-transfer-config"] == transfer
    assert main(graph, "decode")["command"] == ["python3", "-m", "dynamo.vllm"]
    assert main(graph, "decode")["resources"] == {"limits": {"nvidia.com/gpu": "8"}}
    assert component(graph, "decode")["type"] == "decode"


def test_vllm_aggregated():
    graph = made(layout(agg=EngineLayout(tp=4, batch_size=48, gpus=4)))
    assert component(graph, "worker")["type"] == "worker"
    result = flags(graph, "worker")
    assert "--disaggregation-mode" not in result
    assert "--kv-transfer-config" not in result
    assert result["--max-num-seqs"] == "48"
    assert result["--max-num-batched-tokens"] == "4096"


def test_vllm_experts_across_nodes():
    graph = made(layout(**EXPERTS))
    result = flags(graph, "decode")
    assert result["--data-parallel-size"] == "16"
    assert result["--tensor-parallel-size"] == "1"
    assert "--enable-expert-parallel" in result
    assert component(graph, "decode")["multinode"] == {"nodeCount": 2}
    assert main(graph, "decode")["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert "multinode" not in component(graph, "prefill")


def test_an_engine_of_eight_gpus_uses_two_nodes_of_four():
    graph = made(
        layout(agg=EngineLayout(tp=8, gpus=8)), hardware={"gpuSku": "h200_sxm", "totalGpus": 16, "numGpusPerNode": 4}
    )
    assert component(graph, "worker")["multinode"] == {"nodeCount": 2}
    assert main(graph, "worker")["resources"]["limits"] == {"nvidia.com/gpu": "4"}


def test_sglang_counts_all_gpus_as_tensor_parallel():
    graph = made(layout("sglang", **EXPERTS), backend="sglang")
    result = flags(graph, "decode")
    assert result["--tp"] == "16"
    assert result["--dp"] == "16"
    assert result["--ep-size"] == "16"
    assert "--enable-dp-attention" in result
    assert result["--max-running-requests"] == str(68 * 16)
    assert result["--disaggregation-mode"] == "decode"
    assert result["--disaggregation-transfer-backend"] == "nixl"
    assert flags(graph, "prefill")["--max-prefill-tokens"] == "4096"


def test_trtllm_disaggregated():
    graph = made(layout("trtllm", **DENSE), backend="trtllm")
    prefill, decode = flags(graph, "prefill"), flags(graph, "decode")
    assert prefill["--tensor-parallel-size"] == "2"
    assert decode["--max-batch-size"] == "192"
    assert json.loads(prefill["--override-engine-args"] or "") == {
        "cache_transceiver_config": {"backend": "DEFAULT"},
        "disable_overlap_scheduler": True,
        "enable_chunked_prefill": True,
    }
    assert json.loads(decode["--override-engine-args"] or "") == {"cache_transceiver_config": {"backend": "DEFAULT"}}


def test_trtllm_accepts_prompts_longer_than_the_typical_length():
    """They are cut into parts of --max-num-tokens, where kernels can."""
    result = flags(made(layout("trtllm", agg=EngineLayout(tp=2, batch_size=48, gpus=2)), backend="trtllm"), "worker")
    assert json.loads(result["--override-engine-args"] or "") == {"enable_chunked_prefill": True}
    latent = parts(backend="trtllm", model=ModelArchitecture(name="m", known=KnownFrom.FOLDER, latent=True))
    graph, _ = unmeasured(layout("trtllm", agg=EngineLayout(tp=2, batch_size=48, gpus=2)), latent)
    assert "--override-engine-args" not in flags(graph, "worker")


def test_trtllm_experts():
    result = flags(made(layout("trtllm", **EXPERTS), backend="trtllm"), "decode")
    assert result["--tensor-parallel-size"] == "16"
    assert result["--expert-parallel-size"] == "16"
    assert "--enable-attention-dp" in result


def test_a_compressed_cache_has_larger_blocks():
    graph, _ = unmeasured(
        layout(**EXPERTS), parts(model=ModelArchitecture(name="m", known=KnownFrom.FOLDER, latent=True))
    )
    assert flags(graph, "decode")["--block-size"] == "64"


@pytest.mark.parametrize(
    ("sku", "engine", "tokens"),
    [
        # 80 GiB hold 61 of weights, and of 40960 tokens as many as the rest is enough for.
        ("h100_sxm", EngineLayout(tp=1, gpus=1), "28160"),
        ("h100_sxm", EngineLayout(tp=1, gpus=1, eight_bit_cache=True), None),
        ("h100_sxm", EngineLayout(tp=2, gpus=2), None),
        ("h200_sxm", EngineLayout(tp=1, gpus=1), None),
        # Where the estimate has no room at all, typical sequences must fit: the sweep says that they do.
        ("l40s", EngineLayout(tp=1, gpus=1), "5120"),
    ],
)
def test_the_sequence_length_is_limited_by_the_cache(sku: str, engine: EngineLayout, tokens: str | None):
    model = known_model("Qwen/Qwen3-32B", Rapid())
    hardware = {"gpuSku": sku, "totalGpus": 8, "numGpusPerNode": 8}
    graph, _ = unmeasured(layout(agg=engine), parts(model=model, hardware=hardware))
    assert flags(graph, "worker").get("--max-model-len") == tokens


def test_engines_use_the_cache_format_of_the_simulation():
    engines = {"agg": EngineLayout(tp=2, batch_size=48, gpus=2, eight_bit_cache=True)}
    assert flags(made(layout(**engines)), "worker")["--kv-cache-dtype"] == "fp8"
    assert flags(made(layout("sglang", **engines), backend="sglang"), "worker")["--kv-cache-dtype"] == "fp8_e4m3"
    reported = flags(made(layout("trtllm", **engines), backend="trtllm"), "worker")["--override-engine-args"]
    cache = {"dtype": "fp8", "free_gpu_memory_fraction": 0.9, "tokens_per_block": 32}
    assert json.loads(reported or "") == {"enable_chunked_prefill": True, "kv_cache_config": cache}


@pytest.mark.parametrize("backend", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("engines", [DENSE, EXPERTS, {"agg": EngineLayout(tp=2, pp=2, gpus=4)}])
def test_every_generated_graph_passes_admission(backend: str, engines: dict[str, EngineLayout]):
    load_manifest(made(layout(backend, **engines), backend=backend).dgd)


CACHE = {"pvcName": "models", "pvcModelPath": "/model/Qwen3-32B"}


@pytest.mark.parametrize(
    ("cache", "path"),
    [
        (CACHE, "/opt/model-cache/model/Qwen3-32B"),
        ({**CACHE, "pvcModelPath": "model/Qwen3-32B/"}, "/opt/model-cache/model/Qwen3-32B"),
        # With the mount before it already: it is not doubled.
        ({**CACHE, "pvcModelPath": "/opt/model-cache/model/Qwen3-32B"}, "/opt/model-cache/model/Qwen3-32B"),
        ({**CACHE, "pvcMountPath": "/data/"}, "/data/model/Qwen3-32B"),
        ({**CACHE, "pvcModelPath": "../../etc"}, "/opt/model-cache/etc"),
    ],
)
@pytest.mark.parametrize(
    ("backend", "flag"), [("vllm", "--model"), ("sglang", "--model-path"), ("trtllm", "--model-path")]
)
def test_the_model_is_read_from_the_volume(cache: dict[str, str], path: str, backend: str, flag: str):
    graph = made(layout(backend, **DENSE), backend=backend, modelCache=cache)
    for name in ("prefill", "decode"):
        assert flags(graph, name)[flag] == path
        assert flags(graph, name)["--served-model-name"] == "Qwen/Qwen3-32B"
    for each in graph.dgd["spec"]["components"]:
        spec = each["podTemplate"]["spec"]
        assert spec["volumes"] == [{"name": "model-cache", "persistentVolumeClaim": {"claimName": "models"}}]
        mount = cache.get("pvcMountPath", "/opt/model-cache")
        assert spec["containers"][0]["volumeMounts"] == [{"name": "model-cache", "mountPath": mount}]


def test_a_volume_without_a_path_is_the_download_cache():
    graph = made(layout(**DENSE), modelCache={"pvcName": "models", "pvcMountPath": "/opt/model"})
    assert flags(graph, "decode")["--model"] == "Qwen/Qwen3-32B"
    assert main(graph, "decode")["env"] == [{"name": "HF_HOME", "value": "/opt/model"}]


def test_every_component_gets_the_tolerations_and_pull_secrets_of_the_job():
    tolerations = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    pod = {"tolerations": tolerations, "imagePullSecrets": [{"name": "regcred"}], "containers": [{"name": "profiler"}]}
    graph = made(layout(**DENSE), overrides={"profilingJob": {"template": {"spec": pod}}})
    for each in graph.dgd["spec"]["components"]:
        spec = each["podTemplate"]["spec"]
        assert spec["tolerations"] == pod["tolerations"]
        assert spec["imagePullSecrets"] == pod["imagePullSecrets"]


def test_every_component_refers_to_the_hugging_face_token():
    for each in made(layout(**DENSE)).dgd["spec"]["components"]:
        container = each["podTemplate"]["spec"]["containers"][0]
        assert container["envFrom"] == [{"secretRef": {"name": "hf-token-secret", "optional": True}}]


def test_engines_run_only_on_nodes_with_the_planned_gpus():
    graph = made(layout(**DENSE))
    assert component(graph, "decode")["podTemplate"]["spec"]["nodeSelector"] == {
        "nvidia.com/gpu.product": "NVIDIA-H200"
    }
    assert "nodeSelector" not in component(graph, "Frontend")["podTemplate"]["spec"]


@pytest.mark.parametrize(
    ("named", "image"),
    [
        ("nvcr.io/nvidia/ai-dynamo/dynamo-frontend:latest", "nvcr.io/nvidia/ai-dynamo/vllm-runtime:latest"),
        ("nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:1.1.1", "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.1.1"),
        ("localhost:5000/dynamo-planner", "localhost:5000/vllm-runtime:latest"),
        ("dynamo-planner:1.0", "vllm-runtime:1.0"),
        ("r.io/a/vllm-runtime:1@sha256:00", "r.io/a/vllm-runtime:1@sha256:00"),
        # A digest is of one image alone.
        ("r.io/a/dynamo-planner:1@sha256:00", "r.io/a/vllm-runtime:1"),
        ("r.io/a/dynamo-planner@sha256:00", "r.io/a/vllm-runtime:1.2.0"),
        (None, "r.io/b/vllm-runtime:1.2.0"),
    ],
)
def test_images_are_in_the_repository_of_the_named_image(named: str | None, image: str):
    assert runtime_image("vllm", named, repository="r.io/b", version="1.2.0") == image


PLANNER = {"planner": {"optimization_target": "sla", "mode": "disagg", "max_gpu_budget": 12}}


def test_an_annotation_names_the_planner():
    graph = made(layout(**DENSE), features=PLANNER, sla={"itl": 50})
    name = graph.dgd["metadata"]["annotations"]["nvidia.com/planner-config"]
    assert graph.config_maps[0]["metadata"]["name"] == name == "planner-config-qwen-dgd"
    config = json.loads(graph.config_maps[0]["data"]["planner_config.json"])
    assert (
        config
        | {
            "backend": "vllm",
            "mode": "disagg",
            "prefill_engine_num_gpu": 2,
            "decode_engine_num_gpu": 8,
            "max_gpu_budget": 12,
            "ttft_ms": 2000.0,
            "itl_ms": 50.0,
            "model_name": "Qwen/Qwen3-32B",
        }
        == config
    )
    assert component(graph, "decode")["scalingAdapter"] == {}
    assert "scalingAdapter" not in component(graph, "Frontend")


@pytest.mark.parametrize(
    ("planner", "sla", "times"),
    [
        ({}, {"ttft": 300, "itl": 20}, (300, 20)),
        ({"ttft_ms": 900}, {"ttft": 300, "itl": 20}, (900, 20)),
        ({"policy": "reference", "optimization_target": "sla"}, {"ttft": 300, "itl": 20}, (300, 20)),
        # It would not read them.
        ({"policy": "reference"}, {"ttft": 300, "itl": 20}, (None, None)),
        # A quarter of the time for the prompt, as its engine was chosen by.
        ({}, {"e2eLatency": 40_000}, (10_000, 30_000 / 999)),
        ({}, {"optimizationType": "latency"}, (None, None)),
    ],
)
def test_a_planner_gets_the_latency_targets_of_the_request(
    planner: dict[str, Any], sla: dict[str, Any], times: tuple[float | None, float | None]
):
    graph = made(layout(**DENSE), features={"planner": planner}, sla=sla)
    config = json.loads(graph.config_maps[0]["data"]["planner_config.json"])
    assert (config.get("ttft_ms"), config.get("itl_ms")) == times


def test_the_minimum_of_a_planner_is_at_most_the_number_of_engines():
    graph, remarks = unmeasured(layout(**DENSE), parts(features={"planner": {"min_endpoint": 2}}))
    assert json.loads(graph.config_maps[0]["data"]["planner_config.json"])["min_endpoint"] == 1
    assert [remark.reason for remark in remarks] == ["EndpointsLowered"]


def test_the_minimum_of_a_role_is_at_most_its_number_of_engines():
    asked = {"min_endpoint": 0, "prefill_min_endpoint": 3, "decode_min_endpoint": 2}
    graph, (remark,) = unmeasured(layout(**DENSE), parts(features={"planner": asked}))
    config = json.loads(graph.config_maps[0]["data"]["planner_config.json"])
    assert {key: config[key] for key in asked} == {**asked, "prefill_min_endpoint": 1, "decode_min_endpoint": 1}
    assert remark.reason == "EndpointsLowered"
    assert "(prefill_min_endpoint 3 and decode_min_endpoint 2); the planner keeps 1 and 1" in remark.message


def test_no_planner_is_named_without_a_planner():
    graph = made(layout(**DENSE))
    assert "annotations" not in graph.dgd["metadata"]
    assert graph.config_maps == ()


def test_mocked_engines_need_no_gpu():
    graph = made(layout(**DENSE), features={"mocker": {"enabled": True}})
    assert main(graph, "decode")["command"] == ["python3", "-m", "dynamo.mocker"]
    assert "resources" not in main(graph, "decode")
    assert flags(graph, "decode")["--disaggregation-mode"] == "decode"
    assert flags(graph, "decode")["--model-name"] == "Qwen/Qwen3-32B"


_names = st.from_regex(r"[a-z]([-a-z0-9.]{0,60}[a-z0-9])?", fullmatch=True)


@given(_names, st.booleans())
def test_names_leave_room_for_suffixes(name: str, spans: bool):
    made = graph_name(name, None, [("Frontend", False), ("prefill", spans)])
    longest = max(len("Frontend"), len("prefill") + (len("prefill-ldr") if spans else 0))
    assert len(made) + longest <= MAX_TOGETHER
    assert made.endswith("-dgd")
    assert "." not in made


def test_a_name_begins_with_a_letter():
    assert graph_name("3qwen", None, [("decode", False)]) == "dgdr-3qwen-dgd"


def test_long_names_stay_distinct():
    first, second = ("a" * 60 + "-1", "a" * 60 + "-2")
    assert graph_name(first, None, [("decode", False)]) != graph_name(second, None, [("decode", False)])


def test_a_desired_name_is_never_shortened():
    assert graph_name("request", "mine", [("decode", False)]) == "mine"
    with pytest.raises(ProfilingFailed, match=r"spec\.overrides\.dgd\.metadata\.name.*may have 39"):
        graph_name("request", "m" * 40, [("decode", False)])


def test_a_remark_lists_only_some_of_thousands_of_unknown_components():
    graph: dict[str, Any] = {"metadata": {"name": "g"}, "spec": {"components": [{"name": "Frontend"}]}}
    components = [{"name": f"c{number}" * 100} for number in range(5000)]
    override = {"apiVersion": "nvidia.com/v1beta1", "spec": {"components": components}}
    (remark,) = overridden(graph, override)[1]
    assert remark.message.endswith(", 4990 more, only Frontend")
    assert len(remark.message) < 1000
