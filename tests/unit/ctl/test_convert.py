"""`dynamoctl convert`, and rendering what is written in v1alpha1."""

import io
from pathlib import Path
from typing import Any

import pytest
import yaml
from dynamo_ctl import cli
from dynamo_ctl.errors import ExitCode
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS

GRAPH = """
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: tiny}
spec:
  backendFramework: vllm
  services:
    Worker:
      componentType: worker
      subComponentType: decode
      gpuMemoryService: {enabled: false}
      extraPodSpec: {mainContainer: {image: engine, command: [python3, -m, dynamo.vllm]}}
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
MODEL = (
    "apiVersion: nvidia.com/v1alpha1\nkind: DynamoModel\nmetadata: {name: m}\nspec: {modelName: a, baseModelName: a}\n"
)


def converted(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[list[dict[str, Any]], str]:
    assert cli.invoke(["convert", *arguments]) == ExitCode.OK
    captured = capsys.readouterr()
    return [each for each in yaml.safe_load_all(captured.out) if each], captured.err


def test_v1beta1_is_the_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(GRAPH.replace("      gpuMemoryService: {enabled: false}\n", ""))
    (graph,), said = converted(str(file), capsys=capsys)
    assert graph["apiVersion"] == "nvidia.com/v1beta1"
    assert graph["spec"]["components"] == [
        {
            "name": "Worker",
            "type": "decode",
            "podTemplate": {
                "spec": {
                    "containers": [{"name": "main", "image": "engine", "command": ["python3", "-m", "dynamo.vllm"]}]
                }
            },
        }
    ]
    assert "annotations" not in graph["metadata"]
    assert not said


def test_what_kubectl_prints_of_several_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "list.yaml"
    items = [yaml.safe_load(GRAPH), yaml.safe_load(CONFIG_MAP)]
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}))
    (graph, config), _ = converted(str(file), capsys=capsys)
    assert (graph["kind"], graph["apiVersion"]) == ("DynamoGraphDeployment", "nvidia.com/v1beta1")
    assert config == items[1]
    assert cli.invoke(["render", str(file)]) == ExitCode.OK
    assert "\nkind: Deployment\n" in capsys.readouterr().out
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": []}))
    assert cli.invoke(["convert", str(file)]) == ExitCode.FAILED
    assert capsys.readouterr().err == f"dynamoctl: {file}: no manifest found\n"


def test_there_and_back_over_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "graph.yaml").write_text(GRAPH.replace("componentType: worker", "componentType: default"))
    assert cli.invoke(["convert", str(tmp_path)]) == ExitCode.OK
    there = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(there.encode())))
    (graph,), _ = converted("-", "--to", "v1alpha1", capsys=capsys)
    (given,) = yaml.safe_load_all((tmp_path / "graph.yaml").read_text())
    worker = given["spec"]["services"]["Worker"]
    worker["gpuMemoryService"] |= {"mode": "intraPod", "deviceClassName": "gpu.nvidia.com"}
    assert graph == given, "defaults are written out, the rest is as it was"


def test_what_is_kept_is_said_and_can_be_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(GRAPH.replace("componentType: worker", "dynamoNamespace: x\n      componentType: worker"))
    (graph,), said = converted(str(file), capsys=capsys)
    assert PRESERVED_FIELDS in graph["metadata"]["annotations"]
    assert said == (
        "DynamoGraphDeployment tiny keeps in an annotation, since v1beta1 has no field: "
        "spec.services.Worker.dynamoNamespace\n"
    )
    (graph,), said = converted("--forget", str(file), capsys=capsys)
    assert "annotations" not in graph["metadata"]
    assert "leaves out" in said


def test_other_kinds_pass_through_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(f"{CONFIG_MAP}---\n{GRAPH}---\n{MODEL}")
    objects, _ = converted(str(file), capsys=capsys)
    assert [(each["apiVersion"], each["kind"]) for each in objects] == [
        ("v1", "ConfigMap"),
        ("nvidia.com/v1beta1", "DynamoGraphDeployment"),
        ("nvidia.com/v1beta1", "DynamoModel"),
    ]


NIM = """
apiVersion: nvidia.com/v1alpha1
kind: DynamoNimDeployment
metadata: {{name: {name}}}
spec: {{dynamoNamespace: d, dynamoNim: a--1, dynamoTag: "g:{service}", serviceName: {service}}}
"""
PIPELINE = """
apiVersion: nvidia.com/v1alpha1
kind: DynamoDeployment
metadata: {name: disagg}
spec: {dynamoNim: "a:1", services: {Frontend: {replicas: 0}}}
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoNimRequest
metadata: {name: a--1}
spec: {bentoTag: "a:1"}
"""


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_kinds_before_graphs_become_graphs(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "all.yaml"
    services = "---".join(NIM.format(name=each.lower(), service=each) for each in ("Frontend", "Worker"))
    file.write_text(f"{CONFIG_MAP}---{services}---{PIPELINE}")
    objects, said = converted(str(file), "--to", version, capsys=capsys)
    assert [(each["kind"], each["metadata"]["name"]) for each in objects] == [
        ("ConfigMap", "settings"),
        ("DynamoGraphDeployment", "a--1"),
        ("DynamoGraphDeployment", "disagg"),
    ]
    assert {each["apiVersion"] for each in objects[1:]} == {f"nvidia.com/{version}"}
    assert "DynamoGraphDeployment a--1: component Worker has no image: name the one that was built of a--1" in said
    assert "DynamoGraphDeployment disagg: component Frontend has no image: name the one that was built of a:1" in said


def test_every_mistake_is_a_line_with_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(GRAPH.replace("componentType: worker", "componentTyp: worker\n      replicas: -1"))
    assert cli.invoke(["convert", str(file)]) == ExitCode.FAILED
    captured = capsys.readouterr()
    assert not captured.out
    lines = captured.err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"dynamoctl: {file}: spec.services.Worker.") for line in lines)


@pytest.mark.parametrize(("arguments", "said"), [(["--to", "v1"], "'v1' is not one of"), ([], "Missing argument")])
def test_a_wrong_command_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["convert", *(["x.yaml"] if arguments else []), *arguments]) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_v1alpha1_is_rendered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(GRAPH)
    assert cli.invoke(["render", str(file)]) == ExitCode.OK
    old = capsys.readouterr().out
    assert cli.invoke(["convert", "--forget", str(file)]) == ExitCode.OK
    file.write_text(capsys.readouterr().out)
    assert cli.invoke(["render", str(file)]) == ExitCode.OK
    assert capsys.readouterr().out == old
    assert "kind: Deployment" in old


def test_a_service_that_no_component_can_be_is_not_rendered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(GRAPH.replace("Worker:", "my_worker:"))
    assert cli.invoke(["render", str(file)]) == ExitCode.FAILED
    assert ": spec.services.my_worker: 'my_worker' is not a valid service name" in capsys.readouterr().err
