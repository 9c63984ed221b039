"""`dynamoctl convert`, and rendering of v1alpha1 manifests."""

import io
from pathlib import Path

import pytest
import yaml
from dynamo_ctl.errors import ExitCode
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS

from tests.unit.ctl.command_line import Dynamoctl, written

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


def test_v1beta1_is_the_default(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    done = dynamoctl("convert", written(tmp_path, GRAPH.replace("      gpuMemoryService: {enabled: false}\n", "")))
    (graph,) = done.objects
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
    assert not done.err


def test_a_list_that_kubectl_prints_is_converted(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    items = [yaml.safe_load(GRAPH), yaml.safe_load(CONFIG_MAP)]
    file = written(tmp_path, yaml.safe_dump({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}))
    graph, config = dynamoctl("convert", file).objects
    assert (graph["kind"], graph["apiVersion"]) == ("DynamoGraphDeployment", "nvidia.com/v1beta1")
    assert config == items[1]
    assert "Deployment" in {obj["kind"] for obj in dynamoctl("render", file).objects}
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": []}))
    assert dynamoctl("convert", file) == (ExitCode.FAILED, "", f"dynamoctl: {file}: it holds no manifest\n")


def test_conversion_there_and_back_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dynamoctl: Dynamoctl
) -> None:
    text = GRAPH.replace("componentType: worker", "componentType: default")
    written(tmp_path, text)
    there = dynamoctl("convert", tmp_path)
    assert there.code == ExitCode.OK
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(there.out.encode())))
    (graph,) = dynamoctl("convert", "-", "--to", "v1alpha1").objects
    given = yaml.safe_load(text)
    worker = given["spec"]["services"]["Worker"]
    worker["gpuMemoryService"] |= {"mode": "intraPod", "deviceClassName": "gpu.nvidia.com"}
    assert graph == given, "defaults are written out, the rest is as it was"


def test_preserved_fields_are_reported_and_can_be_dropped(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    file = written(tmp_path, GRAPH.replace("componentType: worker", "dynamoNamespace: x\n      componentType: worker"))
    done = dynamoctl("convert", file)
    (graph,) = done.objects
    assert PRESERVED_FIELDS in graph["metadata"]["annotations"]
    assert done.err == (
        "DynamoGraphDeployment tiny keeps in an annotation, since v1beta1 has no field: "
        "spec.services.Worker.dynamoNamespace\n"
    )
    done = dynamoctl("convert", "--forget", file)
    (graph,) = done.objects
    assert "annotations" not in graph["metadata"]
    assert "leaves out" in done.err


def test_other_kinds_pass_through_in_order(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    objects = dynamoctl("convert", written(tmp_path, f"{CONFIG_MAP}---\n{GRAPH}---\n{MODEL}")).objects
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
def test_kinds_before_graphs_become_graphs(version: str, tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    services = "---".join(NIM.format(name=each.lower(), service=each) for each in ("Frontend", "Worker"))
    done = dynamoctl("convert", written(tmp_path, f"{CONFIG_MAP}---{services}---{PIPELINE}"), "--to", version)
    objects, said = done.objects, done.err
    assert [(each["kind"], each["metadata"]["name"]) for each in objects] == [
        ("ConfigMap", "settings"),
        ("DynamoGraphDeployment", "a--1"),
        ("DynamoGraphDeployment", "disagg"),
    ]
    assert {each["apiVersion"] for each in objects[1:]} == {f"nvidia.com/{version}"}
    assert "DynamoGraphDeployment a--1: component Worker has no image: write the image that was built from a--1" in said
    assert (
        "DynamoGraphDeployment disagg: component Frontend has no image: write the image that was built from a:1" in said
    )


def test_every_mistake_is_a_line_with_its_path(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    file = written(tmp_path, GRAPH.replace("componentType: worker", "componentTyp: worker\n      replicas: -1"))
    code, out, err = dynamoctl("convert", file)
    assert (code, out) == (ExitCode.FAILED, "")
    lines = err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"dynamoctl: {file}: spec.services.Worker.") for line in lines)


@pytest.mark.parametrize(("arguments", "said"), [(["--to", "v1"], "'v1' is not one of"), ([], "Missing argument")])
def test_a_wrong_command_line_of_convert_is_refused(arguments: list[str], said: str, dynamoctl: Dynamoctl) -> None:
    code, _, error = dynamoctl("convert", *(["x.yaml"] if arguments else []), *arguments)
    assert code == ExitCode.USAGE
    assert said in error


def test_v1alpha1_is_rendered(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    file = written(tmp_path, GRAPH)
    old = dynamoctl("render", file)
    file.write_text(dynamoctl("convert", "--forget", file).out)
    assert dynamoctl("render", file) == old
    assert "Deployment" in {obj["kind"] for obj in old.objects}


def test_a_service_whose_name_is_not_valid_for_a_component_is_not_rendered(
    tmp_path: Path, dynamoctl: Dynamoctl
) -> None:
    code, _, error = dynamoctl("render", written(tmp_path, GRAPH.replace("Worker:", "my_worker:")))
    assert code == ExitCode.FAILED
    assert ": spec.services.my_worker: 'my_worker' is not a valid service name" in error
