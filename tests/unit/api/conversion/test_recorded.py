"""Graphs of the reference's examples convert into the components that the reference was recorded to create.

The recording has component deployments: components with additions of the graph, which the test removes.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.registry import annotations, labels

ALPHA, BETA = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"
RECORDED = Path(__file__).parents[4].parent / "shared" / "conformance"
FILES = sorted(RECORDED.glob("cases/*/*.json")) + sorted(RECORDED.glob("must-run/*.json"))
COMPONENTS = "nvidia.com/v1beta1/dynamocomponentdeployments/"

pytestmark = pytest.mark.skipif(
    not FILES, reason="the recorded cases are not part of this repository; with them in ../shared/conformance this runs"
)


def load(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text())
    return case


def graphs(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in case["input"] if each["kind"] == "DynamoGraphDeployment"]


def slug(path: Path) -> str:
    return f"{path.parent.name}-{path.stem.removeprefix('examples-')}"


#: Until 1.3 the reference lost a service's mounts next to those of its mainContainer.
MOUNTS_LOST = {"deployments-backends-trtllm-deploy-disagg-multinode"}
MODELS = {"name": "models", "mountPath": "/models"}

WITH_COMPONENTS = [
    path
    for path in FILES
    if any(each["apiVersion"] == ALPHA for each in graphs(load(path)))
    and any(key.startswith(COMPONENTS) for key in load(path).get("expected", {}))
]


def recorded_component(obj: dict[str, Any], graph: dict[str, Any]) -> dict[str, Any]:
    """A recorded component deployment without the additions of its graph."""
    spec = copy.deepcopy(obj["spec"])
    spec.pop("backendFramework", None)
    template = spec["podTemplate"]
    for name in (annotations.OPERATOR_ORIGIN_VERSION, *graph["metadata"].get("annotations", {})):
        template["metadata"]["annotations"].pop(name, None)
    for name in (labels.WORKER_HASH, labels.COMPONENT_CLASS):
        template["metadata"].get("labels", {}).pop(name, None)
    template["metadata"] = {name: value for name, value in template["metadata"].items() if value}
    if spec.get("type") == "planner":
        template["spec"].pop("serviceAccountName")
    shared = {each["name"]: each for each in graph["spec"].get("envs", [])}
    for container in template["spec"]["containers"]:
        if container["name"] == "main" and "env" in container:
            own = [each for each in container["env"] if shared.get(each["name"]) != each]
            container["env"] = own if shared else container["env"]
            if not container["env"]:
                del container["env"]
    picker = spec.get("eppConfig", {}).get("config", {})
    for name in ("apiVersion", "kind"):
        picker.pop(name, None)
    for plugin in picker.get("plugins", []):
        if plugin["name"] == "":
            del plugin["name"]
    spec["podTemplate"] = {name: value for name, value in template.items() if value}
    return spec


def as_stored(component: dict[str, Any]) -> dict[str, Any]:
    """A component as the reference writes it: without empty variable values, and with the default protocol."""
    component = copy.deepcopy(component)
    for container in component["podTemplate"]["spec"]["containers"]:
        for variable in container.get("env", []):
            if variable.get("value") == "":
                del variable["value"]
        for port in container.get("ports", []):
            port.setdefault("protocol", "TCP")
    return component


@pytest.mark.parametrize("path", WITH_COMPONENTS, ids=slug)
def test_components_equal_those_of_the_reference(path: Path) -> None:
    case = load(path)
    compared = 0
    for graph in graphs(case):
        if graph["apiVersion"] != ALPHA:
            continue
        made = {each["name"]: each for each in convert(graph, BETA)["spec"]["components"]}
        for key, obj in case["expected"].items():
            owners = {each["name"] for each in obj["metadata"].get("ownerReferences", [])}
            if not key.startswith(COMPONENTS) or graph["metadata"]["name"] not in owners:
                continue
            recorded = recorded_component(obj, graph)
            if slug(path) in MOUNTS_LOST and recorded["type"] != "frontend":
                recorded["podTemplate"]["spec"]["containers"][0]["volumeMounts"].append(MODELS)
            assert as_stored(made[obj["spec"]["name"]]) == recorded
            compared += 1
    assert compared


@pytest.mark.parametrize("path", FILES, ids=slug)
def test_a_round_trip_preserves_the_graph(path: Path) -> None:
    for graph in graphs(load(path)):
        other = BETA if graph["apiVersion"] == ALPHA else ALPHA
        before = copy.deepcopy(graph)
        there = convert(graph, other)
        assert convert(there, graph["apiVersion"]) == before == graph
        assert convert(convert(there, graph["apiVersion"]), other) == there


def test_a_type_that_the_reference_rejects_is_preserved() -> None:
    """One of its examples has the component type `default`, which v1beta1 lacks."""
    for graph in graphs(load(RECORDED / "must-run" / "examples-global-planner-global-planner-mocker-test.json")):
        made = convert(graph, BETA)
        odd = {name for name, each in graph["spec"]["services"].items() if each.get("componentType") == "default"}
        assert {each["name"] for each in made["spec"]["components"] if "type" not in each} == odd
        assert convert(made, ALPHA) == graph


def test_all_recorded_graphs_are_covered() -> None:
    assert len(WITH_COMPONENTS) >= 40
