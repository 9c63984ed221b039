"""The places where Kubernetes types are embedded, and which documents are checked."""

from typing import Any

import pytest
from dynamo_shared.api.embedded import BadDocument, Checker, trimmed, types_of_kinds
from dynamo_shared.api.model import embedded
from dynamo_shared.api.resources import PODS, Resource

from .published import document

CORE = "io.k8s.api.core.v1."
THING = Resource("nvidia.com", "v1", "things", "Thing")


def errors_of(schema: dict[str, Any], spec: Any, *, openapi: dict[str, Any] | None = None) -> list[str]:
    checker = Checker.from_documents(
        document() if openapi is None else openapi,
        resources=[THING],
        schemas=lambda _: {"type": "object", "properties": {"spec": schema}},
    )
    return [str(error) for error in checker.errors({"apiVersion": "nvidia.com/v1", "kind": "Thing", "spec": spec})]


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def types(**schemas: Any) -> dict[str, Any]:
    return {"components": {"schemas": schemas}}


def test_places_in_maps_and_lists() -> None:
    variables = {"type": "array", "items": embedded(f"{CORE}EnvVar")}
    schema = an_object(services={"type": "object", "additionalProperties": an_object(envs=variables)}, env=variables)
    spec = {"services": {"Decode.x": {"envs": [{"name": "A"}, {"nam": "B"}]}, "Other": None}, "env": ["A"], "more": 1}
    assert errors_of(schema, spec) == [
        'spec.services["Decode.x"].envs[1].nam: no such field; did you mean name?',
        'spec.services["Decode.x"].envs[1].name: required, and missing',
        "spec.env[0]: must be an object, not 'A'",
    ]


@pytest.mark.parametrize(
    "spec", [None, 1, "x", [], {}, {"services": []}, {"services": {"a": 1}}, {"env": {}}, {"env": None}]
)
def test_errors_outside_the_embedded_places_are_left_to_other_checks(spec: Any) -> None:
    variables = {"type": "array", "items": embedded(f"{CORE}EnvVar")}
    schema = an_object(services={"type": "object", "additionalProperties": an_object(envs=variables)}, env=variables)
    assert errors_of(schema, spec) == []


def test_own_fields_next_to_those_of_the_embedded_type() -> None:
    main = embedded(f"{CORE}Container", "name")
    pod = {
        **embedded(f"{CORE}PodSpec", "containers"),
        "properties": {"mainContainer": main, "note": {"type": "string"}},
    }
    schema = an_object(extraPodSpec=pod)
    assert errors_of(schema, {"extraPodSpec": {"mainContainer": {"image": "x"}, "note": 1, "hostIPC": True}}) == []
    assert errors_of(schema, {"extraPodSpec": {"mainContainer": {"imge": "x"}, "mainContainr": {}, "hostIPC": 1}}) == [
        "spec.extraPodSpec.mainContainr: no such field; did you mean mainContainer?",
        "spec.extraPodSpec.hostIPC: must be true or false, not 1",
        "spec.extraPodSpec.mainContainer.imge: no such field; did you mean image?",
    ]


def test_fields_that_a_partial_type_may_lack() -> None:
    containers = {"template": {"spec": {"containers": [{"image": "x"}]}}}
    job = "io.k8s.api.batch.v1.JobSpec"
    assert errors_of(embedded(job), {}) == ["spec.template: required, and missing"]
    assert errors_of(embedded(job, "template"), {}) == []
    assert errors_of(embedded(job, "template"), {"template": {"spec": {}}}) == [
        "spec.template.spec.containers: required, and missing"
    ]
    assert errors_of(embedded(job), containers) == ["spec.template.spec.containers[0].name: required, and missing"]
    assert errors_of(embedded(job, "template.spec.containers.name"), containers) == []
    assert errors_of(embedded(job, "template.spec.containers[].name"), containers) == []


def test_metrics_and_behaviour() -> None:
    autoscaling = "io.k8s.api.autoscaling.v2."
    metrics = {"type": "array", "items": embedded(f"{autoscaling}MetricSpec")}
    schema = an_object(metrics=metrics, behavior=embedded(f"{autoscaling}HorizontalPodAutoscalerBehavior"))
    cpu = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": "80"}},
    }
    assert errors_of(schema, {"metrics": [cpu], "behavior": {"scaleDwn": {}}}) == [
        "spec.metrics[0].resource.target.averageUtilization: must be an integer, not '80'",
        "spec.behavior.scaleDwn: no such field; did you mean scaleDown?",
    ]


def test_unpublished_types_are_not_checked() -> None:
    assert errors_of(embedded(f"{CORE}Tolration"), {"anything": 1}) == []
    assert errors_of(embedded(f"{CORE}EnvVar"), {"anything": 1}, openapi={}) == []


def test_foreign_objects_are_not_checked() -> None:
    checker = Checker.from_documents(document(), resources=[PODS], schemas=lambda _: embedded(f"{CORE}EnvVar"))
    for junk in ({}, {"apiVersion": "v1"}, {"apiVersion": 1, "kind": []}, {"apiVersion": "v2", "kind": "Pod"}):
        assert checker.errors(junk) == []


def test_a_recursive_type() -> None:
    properties = {"child": {"default": {}, "allOf": [{"$ref": "#/components/schemas/Tree"}]}, "n": {"type": "integer"}}
    tree = {"type": "object", "properties": properties}
    schema, openapi = an_object(tree=embedded("Tree")), types(Tree=tree)
    assert errors_of(schema, {"tree": {"child": {"child": {"n": "x", "m": 1}}}}, openapi=openapi) == [
        "spec.tree.child.child.n: must be an integer, not 'x'",
        "spec.tree.child.child.m: no such field; there are child, n",
    ]
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"child": deep}
    assert errors_of(schema, {"tree": deep}, openapi=openapi) == ["nested too deeply to be checked"]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "number", "format": "double"}, [1, 1.5, -1], ["1", True, float("inf")]),
        ({"type": "integer", "format": "int64"}, [2**63 - 1, 5.0], [2**63, 5.5, "5"]),
        ({"type": "integer"}, [2**70], ["5"]),
        ({"type": "string", "format": "byte"}, ["aGk=", "", "aG\nk="], ["%", 5, "a"]),
        ({"type": "string", "format": "date-time"}, ["2026-01-31T12:00:00.5+01:00"], ["2026-02-30T12:00:00Z", "", 5]),
        ({"x-kubernetes-int-or-string": True}, [5, "5%"], [1.5, True, [], 2**40]),
        ({"type": "string", "format": "int-or-string"}, [5, "5%"], [{}]),
        (
            {"type": "object", "additionalProperties": {"type": "boolean"}},
            [{}, {"a": True, "b": None}],
            [{"a": "x"}, []],
        ),
        ({"type": "object"}, [{}, {"a": 1}], [1, "x"]),
        ({"type": "array"}, [[], [1]], [{}]),
        ({"type": "array", "items": {"type": "string", "default": ""}}, [["a"], [None]], [[1]]),
        ({"type": "string", "enum": ["A", "B"]}, ["A", ""], ["a", 1]),
        ({"$ref": "#/components/schemas/Missing"}, [1, {}], []),
        ({"oneOf": [{"type": "string"}, {"type": "object"}]}, [1], []),
        ({}, [1], []),
    ],
)
def test_forms_of_schemas(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    openapi = types(Holder={"type": "object", "properties": {"value": schema}})
    for value in good:
        assert errors_of(embedded("Holder"), {"value": value}, openapi=openapi) == [], value
    for value in bad:
        assert errors_of(embedded("Holder"), {"value": value}, openapi=openapi), value


def test_objects_that_keep_unknown_fields() -> None:
    holder = {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-preserve-unknown-fields": True}
    assert errors_of(embedded("Holder"), {"b": 1}, openapi=types(Holder=holder)) == []


def test_all_types_that_our_kinds_embed_are_published() -> None:
    known = document()["components"]["schemas"]
    desired = types_of_kinds()
    assert f"{CORE}PodTemplateSpec" in desired
    assert set(desired) <= known.keys()


def test_a_manifest_of_this_platform() -> None:
    checker = Checker.from_documents(document())
    main = {"name": "main", "resources": {"limts": {"cpu": 1}}}
    component = {"name": "Decode", "podTemplate": {"spec": {"containers": [main]}}}
    obj = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "spec": {"components": [component]}}
    assert [str(error) for error in checker.errors(obj)] == [
        "spec.components[0].podTemplate.spec.containers[0].resources.limts: no such field; did you mean limits?"
    ]


def test_trimming_keeps_referenced_schemas_and_drops_descriptions() -> None:
    content = b"""{"openapi": "3.0.0", "paths": {"/x": {}}, "components": {"schemas": {
        "A": {"type": "object", "description": "prose", "properties": {
            "description": {"type": "string", "description": "prose"},
            "b": {"default": {}, "allOf": [{"$ref": "#/components/schemas/B"}]}}},
        "B": {"type": "array", "items": {"$ref": "#/components/schemas/A"}},
        "C": {"type": "string"}}}}"""
    assert trimmed(content, ["A", "Unknown"]) == types(
        A={
            "type": "object",
            "properties": {
                "description": {"type": "string"},
                "b": {"default": {}, "allOf": [{"$ref": "#/components/schemas/B"}]},
            },
        },
        B={"type": "array", "items": {"$ref": "#/components/schemas/A"}},
    )


@pytest.mark.parametrize(
    "content", [b"", b"<html>", b"[]", b'{"components": 1}', b'{"components": {"schemas": {"A": 1}}}']
)
def test_an_invalid_document_is_ignored(content: bytes) -> None:
    with pytest.raises(BadDocument):
        trimmed(content, ["A"])
