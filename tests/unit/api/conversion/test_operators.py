"""Graphs that the Go operator stored, with the fields that it preserved in its annotation."""

import json
from typing import Any

import pytest
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.legacy_fields import legacy_graph
from dynamo_shared.api.v1beta1 import parse_graph
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.api.validation.junk import JUNK

ALPHA, BETA = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"
KEPT = "nvidia.com/dgd-spec"
Object = dict[str, Any]


def stored(version: str, spec: Object, kept: Any) -> Object:
    text = kept if isinstance(kept, str) else json.dumps({"version": 1, "spec": kept})
    metadata = {"name": "g", "namespace": "n", "annotations": {KEPT: text, "team": "a"}}
    return {"apiVersion": version, "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": spec}


MOUNT = {"name": "models", "mountPath": "/models", "subPath": "llama", "readOnly": True}


def of_beta(**kept: Any) -> Object:
    """A graph written in v1beta1 that operator 1.2 stored in v1alpha1."""
    services = {
        "Worker": {
            "componentType": "worker",
            "volumeMounts": [{"name": "models", "mountPoint": "/models", "useAsCompilationCache": False}],
            "extraPodSpec": {"containers": [{"name": "front", "image": "f:1"}], "mainContainer": {"image": "w:1"}},
        },
        "Frontend": {"componentType": "frontend"},
    }
    template = {
        "metadata": {"name": "x"},
        "spec": {"containers": [{"name": "main", "resources": {}, "volumeMounts": [MOUNT]}]},
    }
    worker = {"name": "Worker", "frontendSidecar": "front", "podTemplate": template, **kept}
    return stored(ALPHA, {"services": services}, {"components": [worker, {"name": "Frontend"}]})


def test_a_v1beta1_graph_gets_back_the_fields_missing_in_v1alpha1() -> None:
    made = convert(of_beta(), BETA)
    assert made["metadata"]["annotations"] == {"team": "a"}
    worker, frontend = made["spec"]["components"]
    assert (worker["name"], frontend["name"]) == ("Worker", "Frontend")
    assert worker["frontendSidecar"] == "front"
    main = {"name": "main", "image": "w:1", "volumeMounts": [MOUNT]}
    assert worker["podTemplate"] == {"spec": {"containers": [main, {"name": "front", "image": "f:1"}]}}
    assert convert(convert(made, ALPHA), BETA) == made


def test_later_changes_in_v1alpha1_stay() -> None:
    obj = of_beta()
    worker = obj["spec"]["services"]["Worker"]
    worker["volumeMounts"] = [{"name": "models", "mountPoint": "/elsewhere"}]
    del worker["extraPodSpec"]["containers"]
    made = next(each for each in convert(obj, BETA)["spec"]["components"] if each["name"] == "Worker")
    assert made["podTemplate"]["spec"]["containers"] == [
        {"name": "main", "image": "w:1", "volumeMounts": [{"name": "models", "mountPath": "/elsewhere"}]}
    ]
    assert "frontendSidecar" not in made


OF_ALPHA: Object = {
    "pvcs": [{"name": "models"}],
    "services": {
        "Frontend": {"ingress": {"enabled": True, "host": "chat"}, "annotations": {"a": "b"}, "labels": {"c": "d"}},
        "Worker": {
            "failover": {"enabled": True, "mode": "interPod", "numShadows": 3},
            "autoscaling": {"enabled": True, "minReplicas": 1, "maxReplicas": 2},
        },
        "gone": {"ingress": {"enabled": True, "host": "old"}},
    },
}


def of_alpha() -> Object:
    """A graph written in v1alpha1 that operator 1.5 stored in v1beta1."""
    experimental = {
        "gpuMemoryService": {"mode": "InterPod", "deviceClassName": "gpu.nvidia.com"},
        "failover": {"mode": "InterPod", "numShadows": 1},
    }
    worker = {"name": "Worker", "type": "worker", "experimental": experimental}
    return stored(BETA, {"components": [{"name": "Frontend", "type": "frontend"}, worker]}, OF_ALPHA)


def test_a_v1alpha1_graph_gets_back_the_fields_missing_in_v1beta1() -> None:
    made = convert(of_alpha(), ALPHA)
    assert KEPT not in made["metadata"]["annotations"]
    services = made["spec"]["services"]
    assert made["spec"]["pvcs"] == OF_ALPHA["pvcs"]
    assert services["Frontend"].items() >= OF_ALPHA["services"]["Frontend"].items()
    assert services["Worker"]["failover"]["numShadows"] == 3
    assert services["Worker"]["autoscaling"]["maxReplicas"] == 2
    assert services.keys() == {"Frontend", "Worker"}
    assert convert(convert(made, BETA), ALPHA) == made


def test_the_platform_uses_preserved_fields_of_a_stored_graph() -> None:
    legacy = legacy_graph(parse_graph(of_alpha()))
    assert legacy.claims == ({"name": "models"},)
    assert legacy.services["Frontend"].ingress == {"enabled": True, "host": "chat"}
    assert legacy.services["Worker"].shadows == 3


@pytest.mark.parametrize(
    "kept",
    [
        "",
        "[",
        "[]",
        '{"version":2,"spec":{"components":[]}}',
        '{"version":1,"spec":[]}',
        {"components": {}},
        {},
        OF_ALPHA,
    ],
    ids=repr,
)
def test_fields_preserved_for_another_version_are_left_alone(kept: Any) -> None:
    obj = stored(ALPHA, {"services": {"a": {"replicas": 1}}}, kept)
    made = convert(obj, BETA)
    assert made["metadata"] == obj["metadata"]
    assert made["spec"] == {"components": [{"name": "a", "replicas": 1}]}


@pytest.mark.parametrize(
    "odd", [None, 1, "x", [], [1], {"spec": []}, {"spec": {"containers": {}}}, {"spec": {"containers": [1]}}]
)
def test_junk_in_the_annotation_changes_nothing(odd: Any) -> None:
    expected = {**convert({**of_beta(), "metadata": {"name": "g"}}, BETA)}
    made = convert(of_beta(podTemplate=odd, frontendSidecar=odd), BETA)
    by_name = {each["name"]: each for each in expected["spec"]["components"]}
    assert {each["name"]: each for each in made["spec"]["components"]} == by_name


@given(JUNK, JUNK, JUNK, st.sampled_from(["services", "components"]), st.sampled_from([ALPHA, BETA]))
def test_junk_in_the_annotation_does_not_break_conversion(
    kept: Any, containers: Any, name: Any, field: str, version: str
) -> None:
    """The annotation of stored objects is read: one failure would fail every list."""
    component = {
        "name": "b",
        "podTemplate": {"spec": {"containers": [kept, {"name": name, "volumeMounts": containers}]}},
    }
    spec = {field: [kept, component] if field == "components" else {"a": kept, "b": component}, "pvcs": kept}
    annotations = {KEPT: json.dumps({"version": 1, "spec": spec})}
    pod = {"containers": [{"name": name, "volumeMounts": containers}]}
    services = {"a": {"extraPodSpec": pod}, "b": {"extraPodSpec": pod}}
    own = {"services": services} if version == BETA else {"components": [component, {"name": "a"}]}
    api_version = ALPHA if version == BETA else BETA
    metadata = {"name": "g", "annotations": annotations}
    obj = {"apiVersion": api_version, "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": own}
    assert convert(obj, version)["apiVersion"] == version
