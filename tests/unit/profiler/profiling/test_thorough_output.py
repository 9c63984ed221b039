"""What a thorough profiling Job leaves, and what it would measure."""

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml
from dynamo_profiler.profiling.results import ProfilingFailed
from dynamo_profiler.profiling.thorough import read_output
from dynamo_profiler.profiling.thorough_candidates import require_candidates
from dynamo_shared.runtime.settings.planner import Rapid

from tests.unit.profiler.profiling.profiling_world import request


def service(kind: str, sub: str | None = None, gpus: int | None = None, replicas: int = 1) -> dict[str, Any]:
    results: dict[str, Any] = {"componentType": kind, "replicas": replicas}
    if sub:
        results["subComponentType"] = sub
    if gpus:
        results["resources"] = {"limits": {"gpu": str(gpus)}}
    module = "dynamo.frontend" if kind == "frontend" else "dynamo.sglang"
    results["extraPodSpec"] = {
        "mainContainer": {"image": "r.io/i:1", "command": ["python3", "-m", module], "args": ["--tp", "2"]}
    }
    return results


def graph(prefill: int = 2, decode: int = 4, replicas: int = 3) -> dict[str, Any]:
    services = {
        "Frontend": service("frontend"),
        "prefill": service("worker", "prefill", prefill),
        "decode": service("worker", "decode", decode, replicas),
    }
    metadata = {"name": "sglang-disagg", "namespace": "elsewhere"}
    spec = {"services": services}
    return {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": spec}


CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "planner-config-ab12", "namespace": "elsewhere", "uid": "1"},
    "data": {"planner_config.json": "{}"},
}


def output(*objects: dict[str, Any], rows: list[list[Any]] | None = None) -> dict[str, str]:
    data = {"final_config.yaml": yaml.safe_dump_all(objects)}
    if rows is not None:
        data["webui_data.json"] = json.dumps({"cost": {"table": {"data": rows}}})
    return data


def test_the_last_graph_is_used_with_its_config_maps():
    result = read_output(request(backend="sglang"), output(CONFIG_MAP, graph(replicas=1), graph()))
    selected = result.selected
    assert result.source == "thorough"
    assert selected.dgd["apiVersion"] == "nvidia.com/v1beta1"
    assert selected.dgd["metadata"] == {"name": "qwen-dgd", "namespace": "default"}
    assert selected.figures.serving == "disagg"
    assert selected.figures.backend == "sglang"
    assert selected.figures.gpus == 2 + 3 * 4
    assert selected.parallelism == {"prefill": {"replicas": 1, "gpus": 2}, "decode": {"replicas": 3, "gpus": 4}}
    assert selected.config_maps == (
        {**CONFIG_MAP, "metadata": {"name": "planner-config-ab12", "namespace": "default"}},
    )
    assert result.pareto == (selected,)


def test_the_graph_gets_metadata_and_workers_image_of_a_v1alpha1_request():
    labels, annotations = {"team": "chat"}, {"owner": "jane"}
    asked = replace(
        request(backend="sglang", overrides={"dgd": {"metadata": {"labels": labels, "annotations": annotations}}}),
        workers_image="worker:2",
    )
    made = read_output(asked, output(graph())).selected.dgd
    assert (made["metadata"]["labels"], made["metadata"]["annotations"]) == (labels, annotations)
    images = {
        each["name"]: each["podTemplate"]["spec"]["containers"][0]["image"] for each in made["spec"]["components"]
    }
    assert images == {"Frontend": "r.io/i:1", "prefill": "worker:2", "decode": "worker:2"}


def test_the_workers_image_applies_to_all_roles() -> None:
    given = graph()
    decode = given["spec"]["services"]["decode"]
    main = {"name": "main", **decode.pop("extraPodSpec")["mainContainer"]}
    del decode["resources"]
    decode["multinode"] = {"nodeCount": 2}
    decode["roles"] = [
        {"name": role, "podTemplate": {"spec": {"containers": [dict(main)]}}} for role in ("leader", "worker")
    ]
    asked = replace(request(backend="sglang"), workers_image="r.io/workers:2")
    made = {each["name"]: each for each in read_output(asked, output(given)).selected.dgd["spec"]["components"]}
    of_roles = [each["podTemplate"]["spec"]["containers"][0]["image"] for each in made["decode"]["roles"]]
    assert of_roles == ["r.io/workers:2"] * 2


def test_pull_secrets_of_an_override_reach_all_pods():
    services = {"decode": {"extraPodSpec": {"imagePullSecrets": [{"name": "mine"}]}}}
    asked = request(backend="sglang", overrides={"dgd": {"spec": {"services": services}}})
    made = read_output(asked, output(graph())).selected.dgd["spec"]["components"]
    assert [each["podTemplate"]["spec"]["imagePullSecrets"] for each in made] == [[{"name": "mine"}]] * 3


def test_the_request_names_the_graph():
    named = request(backend="sglang", overrides={"dgd": {"metadata": {"name": "mine"}}})
    assert read_output(named, output(graph())).selected.dgd["metadata"]["name"] == "mine"


def test_other_objects_are_ignored_and_reported():
    result = read_output(request(), output({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}, graph()))
    assert result.remarks[0].reason == "ObjectsLeftOut"
    assert "Secret" in result.remarks[0].message


def test_further_graphs_are_points_of_the_front():
    text = "# GPUs: 8\n" + yaml.safe_dump(graph(decode=8))
    rows: list[list[Any]] = [
        [1, 2, 3, 4, 5, 6, text],
        [1, 2],
        [1, 2, 3, 4, 5, 6, "}"],
        [1, 2, 3, 4, 5, 6, yaml.safe_dump(graph())],
    ]
    result = read_output(request(), output(graph(), rows=rows))
    assert [point.figures.gpus for point in result.pareto] == [14, 26]


@pytest.mark.parametrize("text", ["", "[]", '{"cost": 1}', "}"])
def test_a_table_of_another_format_is_ignored(text: str):
    assert len(read_output(request(), {**output(graph()), "webui_data.json": text}).pareto) == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "has no DynamoGraphDeployment"),
        ({"final_config.yaml": "}"}, "^final_config.yaml of the profiling job: is not valid YAML: line 1"),
        ({"final_config.yaml": " " * (1 << 21)}, "^final_config.yaml of the profiling job: longer than"),
        (output(CONFIG_MAP), "has no DynamoGraphDeployment"),
        (output({**graph(), "spec": {"services": {"Frontend": service("frontend")}}}), "has no workers"),
        (output({**graph(), "apiVersion": "nvidia.com/v9"}), "cannot be read"),
    ],
)
def test_invalid_results_are_rejected(data: dict[str, str], said: str):
    with pytest.raises(ProfilingFailed, match=said) as failed:
        read_output(request(), data)
    assert failed.value.reason == "GenerationFailed"


def test_gpus_of_all_vendors_count():
    amd = graph()
    for service in amd["spec"]["services"].values():
        for amounts in service.get("resources", {}).values():
            if "gpu" in amounts:
                amounts["custom"] = {"amd.com/gpu": amounts.pop("gpu")}
    assert read_output(request(), output(amd)).selected.figures.gpus == 2 + 3 * 4


def test_a_graph_that_admission_would_reject_is_not_offered():
    wrong = graph()
    wrong["spec"]["services"]["decode"]["replicas"] = -1
    with pytest.raises(ProfilingFailed, match="would refuse"):
        read_output(request(), output(wrong))


@pytest.mark.parametrize("given", [{}, {"model": "deepseek-ai/DeepSeek-R1", "backend": "sglang"}])
def test_a_model_that_fits_is_measured(given):
    require_candidates(request(**given), Rapid())


@pytest.mark.parametrize(
    ("model", "sku", "gpus", "match"),
    [
        ("deepseek-ai/DeepSeek-R1", "l40s", 1, r"DeepSeek-R1 \(653.9 GiB of weights\) fit 1 GPU l40s"),
        # Prefill and decode must both fit.
        ("meta-llama/Meta-Llama-3.1-70B", "h100_sxm", 2, r"fit 2 GPUs h100_sxm"),
    ],
)
def test_a_model_that_no_engine_holds_fails_with_the_reason(model: str, sku: str, gpus: int, match: str):
    asked = request(model=model, hardware={"gpuSku": sku, "totalGpus": gpus, "numGpusPerNode": gpus})
    with pytest.raises(ProfilingFailed, match=match) as failed:
        require_candidates(asked, Rapid())
    assert failed.value.reason == "NoCandidates"


@pytest.mark.parametrize(
    "added",
    [
        {**CONFIG_MAP, "metadata": "x"},
        {**CONFIG_MAP, "metadata": {"name": "a/b"}},
        {**CONFIG_MAP, "metadata": {"name": "a", "labels": "x"}},
        {**CONFIG_MAP, "metadata": {"name": "a", "annotations": ["x"]}},
        {"kind": "ConfigMap", "data": {"a": "b"}},
        {**graph(), "metadata": "x"},
    ],
)
def test_objects_whose_metadata_are_not_valid_are_reported(added: dict[str, Any]):
    with pytest.raises(ProfilingFailed, match="the profiling job") as failed:
        read_output(request(), output(graph(), added))
    assert failed.value.reason == "GenerationFailed"


def test_an_old_profiler_that_ignores_directives_is_reported():
    given = graph()
    given["spec"]["services"]["decode"]["extraPodSpec"]["mainContainer"]["$patch"] = {"args": "append"}
    with pytest.raises(ProfilingFailed, match=r"use an image of Dynamo 1\.5 or newer") as failed:
        read_output(request(backend="sglang"), output(given))
    assert failed.value.reason == "InvalidOverride"
