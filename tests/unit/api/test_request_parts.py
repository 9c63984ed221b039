"""Fields of a request that only v1alpha1 has, as conversion preserves them, and the spec that its reconcilers read."""

import json
from typing import Any

import pytest
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.request_parts import RequestParts, in_request_fields, parts_of, spec_of

BETA = "nvidia.com/v1beta1"


def stored(
    config: dict[str, Any] | None = None, profiling: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """A v1alpha1 request as it is stored."""
    settings = {"profilerImage": "profiler:1", **({"config": config} if config else {}), **(profiling or {})}
    spec = {"model": "Qwen/Qwen3-0.6B", "backend": "vllm", "profilingConfig": settings, **spec}
    type_meta = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeploymentRequest"}
    return convert({**type_meta, "metadata": {"name": "qwen", "namespace": "ns"}, "spec": spec}, BETA)


def test_a_request_without_such_fields_has_no_parts() -> None:
    assert parts_of(stored()) == RequestParts()
    assert spec_of(stored()).search_strategy == "thorough"


def test_overrides_of_the_graph_are_merged_into_the_override_of_v1beta1() -> None:
    annotations = {"owner": "jane"}
    overrides = {"name": "mine", "labels": {"team": "chat"}, "annotations": annotations, "workersImage": "worker:2"}
    obj = stored(deploymentOverrides=overrides)
    spec = spec_of(obj)
    assert spec.overrides is not None
    assert spec.overrides.dgd == {
        "metadata": {"name": "mine", "labels": {"team": "chat"}, "annotations": {"owner": "jane"}}
    }
    assert parts_of(obj).workers_image == "worker:2"
    assert spec.image == "profiler:1"


def test_an_override_of_v1beta1_wins() -> None:
    obj = stored(deploymentOverrides={"name": "mine", "labels": {"team": "chat"}})
    obj["spec"]["overrides"] = {"dgd": {"metadata": {"name": "theirs"}, "spec": {"x": 1}}}
    spec = spec_of(obj)
    assert spec.overrides is not None
    assert spec.overrides.dgd == {"metadata": {"name": "theirs", "labels": {"team": "chat"}}, "spec": {"x": 1}}


def test_the_image_of_all_components_is_used_for_workers_without_an_image() -> None:
    assert parts_of(stored({"deployment": {"dgdImage": "all:1"}})).workers_image == "all:1"


@pytest.mark.parametrize(
    ("config", "given", "expected"),
    [
        ({"hardware": {"gpuType": "h200_sxm", "numGpusPerNode": 8}}, {}, ("h200_sxm", 8, None)),
        ({"hardware": {"gpu_type": "l40s", "max_num_gpus_per_engine": 4}}, {}, ("l40s", None, 8)),
        ({"sweep": {"aicSystem": "a100_sxm", "useAiConfigurator": True}}, {}, ("a100_sxm", None, None)),
        ({"hardware": {"gpuType": "h200_sxm"}}, {"gpuSku": "l4", "totalGpus": 2}, ("l4", None, 2)),
    ],
)
def test_hardware_in_the_configuration(
    config: dict[str, Any], given: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    obj = stored(config)
    obj["spec"]["hardware"] = given
    hardware = spec_of(obj).hardware
    assert hardware is not None
    assert (hardware.gpu_sku, hardware.num_gpus_per_node, hardware.total_gpus) == expected


def test_the_engine_of_the_configuration_is_profiled_if_the_request_leaves_it_open() -> None:
    assert spec_of(stored({"engine": {"backend": "sglang"}}, backend="auto")).backend == "sglang"
    assert spec_of(stored({"engine": {"backend": "sglang"}})).backend == "vllm"


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ({"sweep": {"prefillInterpolationGranularity": 8, "decodeInterpolationGranularity": 3}}, "p 8 d 3"),
        ({"sweep": {"decode_interpolation_granularity": 16, "dryRun": True}}, "d 16 dry"),
        ({"deployment": {"deploymentTimeout": 90}, "deployment_ready_timeout_s": 60}, "t 90"),
        ({"deployment_ready_timeout_s": 60}, "t 60"),
        ({"sla": {"isl": 1}}, ""),
        ({"sweep": {"prefillInterpolationGranularity": "many"}}, ""),
    ],
)
def test_options_of_the_profiler(config: dict[str, Any], options: str) -> None:
    short = {
        "--prefill-interpolation-granularity": "p",
        "--decode-interpolation-granularity": "d",
        "--deployment-timeout": "t",
        "--dry-run": "dry",
    }
    arguments = parts_of(stored(config)).profiler_arguments
    assert " ".join(short.get(each, each) for each in arguments) == options


@pytest.mark.parametrize(
    ("spec", "discovers"), [({}, True), ({"enableGpuDiscovery": True}, True), ({"enableGpuDiscovery": False}, False)]
)
def test_discovery_of_gpus_can_be_switched_off(spec: dict[str, Any], discovers: bool) -> None:
    assert parts_of(stored(**spec)).discovers_gpus is discovers


def test_volumes_of_the_job() -> None:
    parts = parts_of(stored(profiling={"configMapRef": {"name": "base"}, "outputPVC": "files"}))
    assert (parts.base_graph, parts.output_claim) == (("base", "disagg.yaml"), "files")


def test_fields_preserved_by_the_go_operator_count_if_the_platform_preserved_none() -> None:
    obj = stored(enableGpuDiscovery=False)
    obj["metadata"]["annotations"] |= {
        "nvidia.com/dgdr-config-map-ref": json.dumps({"name": "base", "key": "graph.yaml"}),
        "nvidia.com/dgdr-output-pvc": "files",
        "nvidia.com/dgdr-enable-gpu-discovery": "true",
        "nvidia.com/dgdr-deployment-overrides": json.dumps({"name": "mine"}),
        "nvidia.com/dgdr-profiling-config": json.dumps({"sweep": {"dryRun": True}}),
    }
    parts = parts_of(obj)
    assert (parts.base_graph, parts.output_claim) == (("base", "graph.yaml"), "files")
    assert parts.discovers_gpus is False
    assert parts.metadata == {"name": "mine"}
    assert parts.profiler_arguments == ("--dry-run",)


@pytest.mark.parametrize("text", ["{", "[1]", '"x"', "null", '{"name": 3}'])
def test_junk_in_annotations_is_ignored(text: str) -> None:
    obj = stored()
    names = ("config-map-ref", "output-pvc", "enable-gpu-discovery", "deployment-overrides", "profiling-config")
    obj["metadata"]["annotations"] = {f"nvidia.com/dgdr-{name}": text for name in names}
    parts = parts_of(obj)
    assert (parts.base_graph, parts.discovers_gpus) == (None, True)
    spec_of(obj)


@pytest.mark.parametrize(
    ("said", "own"),
    [
        (
            "spec.hardware.gpuSku, spec.hardware.totalGpus not given",
            "spec.profilingConfig.config.hardware.gpuType, spec.profilingConfig.config.hardware.maxNumGpusPerEngine not given",
        ),
        ("or larger GPUs in spec.hardware, or", "or larger GPUs in spec.profilingConfig.config.hardware, or"),
        ("spec.overrides.dgd.metadata.name: 'x' is long", "spec.deploymentOverrides.name: 'x' is long"),
        ("spec.workload.isl: 0 tokens", "spec.profilingConfig.config.sla.isl: 0 tokens"),
        ("spec.features.planner.ttft: bad", "spec.profilingConfig.config.planner.ttft: bad"),
        ("spec.modelCache.pvcName: there is", "spec.profilingConfig.config.deployment.modelCache.pvcName: there is"),
        ("spec.autoApply, spec.hardwareStore, and x.spec.sla", "spec.autoApply, spec.hardwareStore, and x.spec.sla"),
    ],
)
def test_messages_name_fields_of_the_version_in_which_the_request_was_written(said: str, own: str) -> None:
    obj = stored()
    assert in_request_fields(said, obj) == own
    kept_by_go = {"metadata": {"annotations": {"nvidia.com/dgdr-config-map-ref": "{}"}}}
    assert in_request_fields(said, kept_by_go) == own
    assert in_request_fields(said, {"metadata": {}}) == said
