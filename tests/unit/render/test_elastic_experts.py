"""A vLLM engine on one node with elastic experts: from runtime 1.5.0 on a Ray head, which later pods join."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder.render import RenderError, names
from dynamo_shared.api.objects import KubeObject

from .building import CONFIG, component, graph, graph_children, of_kind, variables, workloads

ON_GROVE = replace(CONFIG, grove=True)
GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
LATER = {"runtimeVersionOverride": "1.5.0"}
RAY = ["--enable-elastic-ep", "--data-parallel-backend", "ray", "--model", "a b"]


def worker(args: list[str] | None = None, command: list[str] | None = None, **fields: Any) -> KubeObject:
    line = {"command": command or ["python3", "-m", "dynamo.vllm"], "args": RAY if args is None else args}
    return component("Worker", main={**line, **GPU}, **{**LATER, **fields})


def main_of(single: KubeObject) -> KubeObject:
    (made, *_) = workloads(graph(single))["Worker"]
    container: KubeObject = made["spec"]["template"]["spec"]["containers"][0]
    return container


def services(single: KubeObject) -> dict[str, KubeObject]:
    return {each["metadata"]["name"]: each for each in of_kind(graph_children(graph(single), ON_GROVE), "Service")}


def test_ray_starts_first_and_the_engine_is_the_main_process_of_the_container() -> None:
    main = main_of(worker())
    assert main["command"] == ["/bin/sh", "-c"]
    (script,) = main["args"]
    assert script.startswith('ray start --head --port=6379 --node-ip-address="$POD_IP" --block & {')
    engine = "python3 -m dynamo.vllm --enable-elastic-ep --data-parallel-backend ray"
    assert script.endswith(f'}} && exec {engine} --model "a b"')
    sources = {each["name"]: each.get("valueFrom") for each in main["env"]}
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    assert sources["POD_IP"] == sources["VLLM_DP_MASTER_IP"] == address


def test_a_script_and_the_authors_variables_are_kept() -> None:
    own = [{"name": "VLLM_DP_MASTER_IP", "value": "10.0.0.1"}]
    single = worker([f"cd /x && python3 -m dynamo.vllm {' '.join(RAY[:3])}"], ["/bin/sh", "-c"])
    single["podTemplate"]["spec"]["containers"][0]["env"] = own
    main = main_of(single)
    assert main["args"][0].endswith(
        '&& exec /bin/sh -c "cd /x && python3 -m dynamo.vllm --enable-elastic-ep --data-parallel-backend ray"'
    )
    assert variables(main)["VLLM_DP_MASTER_IP"] == "10.0.0.1"


@pytest.mark.parametrize("backend", [["-dpb=ray"], ["-dpb", "ray"], ["--data-parallel-backend=ray"]])
def test_each_notation_of_the_flag_counts(backend: list[str]) -> None:
    assert "ray start" in main_of(worker(["--enable-elastic-ep", *backend]))["args"][0]


@pytest.mark.parametrize(
    ("args", "fields"),
    [
        (RAY, {"runtimeVersionOverride": "1.4.9"}),
        (RAY, {"runtimeVersionOverride": None}),
        (["--enable-elastic-ep"], {}),
        (["--enable-elastic-ep", "-dpb", "mp"], {}),
        (["-dpb", "ray"], {}),
        (RAY, {"pod": {"initContainers": [{"name": "runtime", "image": "i", "restartPolicy": "Always"}]}}),
    ],
)
def test_other_engines_start_as_written(args: list[str], fields: dict[str, Any]) -> None:
    single = worker(args, **fields)
    assert main_of(single)["args"] == args
    assert services(single).keys() <= {"graph-worker"}


def test_on_grove_a_headless_service_publishes_it_before_it_is_ready() -> None:
    made = services(worker(annotations={"own.example/a": "b"}, labels={"own.example/c": "d"}))["graph-worker-ray"]
    assert made["metadata"]["annotations"]["own.example/a"] == "b"
    assert made["metadata"]["labels"] == {"own.example/c": "d"}
    spec = made["spec"]
    assert (spec["clusterIP"], spec["publishNotReadyAddresses"]) == ("None", True)
    assert spec["selector"] == {
        "nvidia.com/dynamo-namespace": "ns-graph",
        "nvidia.com/dynamo-component": "Worker",
        "nvidia.com/dynamo-component-type": "worker",
    }
    ports = {each["name"]: (each["port"], each["targetPort"]) for each in spec["ports"]}
    assert ports == {"ray-gcs": (6379, 6379), "system": (9090, "system")}


def test_each_replica_is_its_own_cluster() -> None:
    single = worker(replicas=2)
    assert "ray start" in main_of(single)["args"][0]
    assert "graph-worker-ray" not in services(single)


def test_long_names_are_shortened_as_the_reference_does() -> None:
    long = "a-very-long-dynamo-graph-deployment-name-with-a-long-component-name"
    assert names.ray_service(long) == "a-very-long-dynamo-graph-deployment-name-with-a-long-compo-502d"


def test_only_one_engine_of_a_pod_can_be_the_head_of_a_cluster() -> None:
    sharing = {"gpuMemoryService": {"mode": "IntraPod"}, "failover": {"mode": "IntraPod"}}
    obj = graph(worker(experimental=sharing), backendFramework="vllm")
    with pytest.raises(RenderError, match="would start Ray on the same port"):
        graph_children(obj, replace(ON_GROVE, device_claims=True))
