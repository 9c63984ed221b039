"""The annotation of preserved fields: when it exists, foreign values in its place, and its size limits."""

import copy
import json
from typing import Any

import pytest
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.conversion.envelope import MAX_BYTES
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS

ALPHA, BETA = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"
Object = dict[str, Any]
ABSENT: Any = object()


def graph(annotations: Any = ABSENT, **service: Any) -> Object:
    metadata: Object = {"name": "g", "labels": {"l": "v"}, "managedFields": [{"manager": "m"}]}
    if annotations is not ABSENT:
        metadata["annotations"] = annotations
    spec = {"services": {"a": service}}
    return {"apiVersion": ALPHA, "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("annotations", [ABSENT, {}, {"a": "b"}, None], ids=["absent", "empty", "some", "null"])
@pytest.mark.parametrize("service", [{"replicas": 1}, {"dynamoNamespace": "n"}], ids=["plain", "with residue"])
def test_metadata_survives_the_round_trip_exactly(annotations: Any, service: Object) -> None:
    obj = graph(annotations, **service)
    before = copy.deepcopy(obj)
    made = convert(obj, BETA)
    assert (PRESERVED_FIELDS in (made["metadata"].get("annotations") or {})) == ("dynamoNamespace" in service)
    assert convert(made, ALPHA) == before == obj
    for field in ("name", "labels", "managedFields"):
        assert made["metadata"][field] == obj["metadata"][field]


@pytest.mark.parametrize("kind", ["DynamoGraphDeployment", "DynamoComponentDeployment", "DynamoGraphDeploymentRequest"])
@pytest.mark.parametrize(("version", "other"), [(ALPHA, BETA), (BETA, ALPHA)], ids=["alpha", "beta"])
@pytest.mark.parametrize("head", [{}, {"metadata": {}}, {"metadata": None}], ids=["absent", "empty", "null"])
def test_every_converted_part_has_metadata(kind: str, version: str, other: str, head: Object) -> None:
    """Server-side apply sends parts without metadata, and the API server rejects an answer without."""
    made = convert({"apiVersion": version, "kind": kind, **head}, other)
    assert isinstance(made.get("metadata"), dict)


def test_the_annotation_names_its_format_and_the_version_of_its_fields() -> None:
    made = convert(graph(dynamoNamespace="n"), BETA)
    text = made["metadata"]["annotations"][PRESERVED_FIELDS]
    assert text == '{"components":{"a":[[["dynamoNamespace"],"n"]]},"for":"v1alpha1","version":1}'


FOREIGN = [
    "",
    "anything",
    "{",
    "[]",
    "null",
    '{"version":2,"for":"v1beta1"}',
    '{"version":1,"for":"v1alpha1","fields":[[["spec","pvcs"],[]]]}',
    '{"version":1,"for":"v1beta1","fields":[[[],"x"]]}',
    '{"version":1,"for":"v1beta1","fields":[[["spec",1.5],"x"]]}',
    '{"version":1,"for":"v1beta1","fields":[[["spec"],"x",1]]}',
    '{"version":1,"for":"v1beta1","components":[]}',
    '{"version":1,"for":"v1beta1","order":[1]}',
    # If the API server rejects the answer, every list in that version fails, in all namespaces.
    '{"version":1,"for":"v1beta1","fields":[[["apiVersion"],"x"]]}',
    '{"version":1,"for":"v1beta1","fields":[[["kind"],"x"]]}',
    '{"version":1,"for":"v1beta1","fields":[[["metadata","uid"],"x"]]}',
    '{"version":1,"for":"v1beta1","foreign":{"in":"v1beta1","value":5}}',
    '{"version":1,"for":"v1beta1","foreign":{}}',
    '{"version":1,"for":"v1beta1","annotations":5}',
    '{"version":1,"for":"v1beta1","annotations":{"a":1}}',
    # The same if the answer cannot be encoded or read as JSON.
    '{"version":1,"for":"v1beta1","fields":[[["spec","x"],"\\ud800"]]}',
    '{"version":1,"for":"v1beta1","components":{"a":[[["\\udfff"],1]]}}',
    '{"version":1,"for":"v1beta1","fields":[[["spec","x"],NaN]]}',
    '{"version":1,"for":"v1beta1","fields":[[["spec","x"],1e999]]}',
    f'{{"version":1,"for":"v1beta1","fields":[[["spec","x"],{"9" * 400}]]}}',
    "zlib:",
    "zlib:AAAA",
    "zlib:ö",
    "[" * 100_000,
]


@pytest.mark.parametrize("text", FOREIGN, ids=lambda text: text[:40] or "empty")
@pytest.mark.parametrize("service", [{"replicas": 1}, {"dynamoNamespace": "n"}], ids=["plain", "with residue"])
def test_a_foreign_value_of_the_annotation_survives(text: str, service: Object) -> None:
    obj = graph({PRESERVED_FIELDS: text, "a": "b"}, **service)
    made = convert(obj, BETA)
    assert convert(made, ALPHA) == obj
    made["spec"]["components"][0]["podTemplate"] = {"metadata": {"finalizers": ["f"]}}
    back = convert(made, ALPHA)
    assert convert(back, BETA) == made
    assert convert(convert(back, BETA), ALPHA) == back


@pytest.mark.parametrize(
    "fields",
    [
        [[["spec"], "x"]],
        [[["spec"]]],
        [[["spec", "components"], "x"]],
        [[["spec", "components"], [{"name": "a", "replicas": 7}]]],
        [[["status", "deep", "deeper"], 1], [["metadata", "name"], "other"]],
        [[["spec", {"name": "a"}, 3], 1], [["spec", "components"], "name", ["a", "a"]]],
    ],
)
@pytest.mark.parametrize("pieces", [[[[], "x"]], [[["replicas"], 5], [["name"], "b"]], [[["type", "x", 0]]]])
def test_forged_pieces_change_no_live_field(fields: list[Any], pieces: list[Any]) -> None:
    text = json.dumps({"version": 1, "for": "v1beta1", "fields": fields, "components": {"a": pieces, "b": pieces}})
    made = convert(graph({PRESERVED_FIELDS: text}, replicas=1), BETA)
    assert made["metadata"]["name"] == "g"
    assert made["spec"]["components"][0]["replicas"] == 1
    assert len(made["spec"]["components"]) == 1
    assert convert(made, ALPHA)["spec"] == {"services": {"a": {"replicas": 1}}}


def test_the_annotations_of_the_reference_are_left_alone() -> None:
    object_annotations = {
        "nvidia.com/dgd-spec": '{"version":1,"spec":{},"rawJSON":""}',
        "nvidia.com/dgdr-config-map-ref": '{"name":"c","key":"disagg.yaml"}',
        "nvidia.com/dgdr-output-pvc": "p",
    }
    for made in (
        convert(graph(object_annotations, replicas=1), BETA),
        convert(graph(object_annotations, dynamoNamespace="n"), BETA),
    ):
        assert made["metadata"]["annotations"].items() >= object_annotations.items()


def test_large_values_are_compressed_to_stay_below_the_limit() -> None:
    """All annotations together may have 256 KiB."""
    labels = {f"label-{number:05}": "value" * 5 for number in range(9_000)}
    obj = graph({"a": "b"}, labels=labels)
    assert len(json.dumps(labels)) > MAX_BYTES
    made = convert(obj, BETA)
    annotations = made["metadata"]["annotations"]
    assert annotations[PRESERVED_FIELDS].startswith("zlib:")
    assert sum(len(name) + len(text) for name, text in annotations.items()) < MAX_BYTES
    assert convert(made, ALPHA) == obj


def test_a_compressed_value_that_expands_too_much_is_not_read() -> None:
    import base64
    import zlib

    bomb = '{"version":1,"for":"v1beta1","order":["' + "a" * (8 << 20) + '"]}'
    text = "zlib:" + base64.b64encode(zlib.compress(bomb.encode())).decode()
    obj = graph({PRESERVED_FIELDS: text}, replicas=1)
    assert convert(convert(obj, BETA), ALPHA) == obj


def test_many_differences_become_few_pieces() -> None:
    shared = [{"name": f"A{number}", "value": "1"} for number in range(600)]
    own = [{"name": f"B{number}", "value": "1"} for number in range(600)]
    obj = graph(envs=shared, extraPodSpec={"mainContainer": {"env": own}}, dynamoNamespace="n")
    made = convert(obj, BETA)
    pieces = json.loads(made["metadata"]["annotations"][PRESERVED_FIELDS])["components"]["a"]
    assert [piece[0] for piece in pieces] == [["dynamoNamespace"], ["envs"], ["extraPodSpec"]]
    assert convert(made, ALPHA) == obj


@pytest.mark.parametrize("count", [400, 20_000])
def test_forged_pieces_cannot_waste_time(count: int) -> None:
    pieces = [[["podTemplate", "spec", f"field{number}"], number] for number in range(count)] + [[["replicas"], 2]]
    text = json.dumps({"version": 1, "for": "v1beta1", "components": {"a": pieces}})
    made = convert(graph({PRESERVED_FIELDS: text}, replicas=1, extraPodSpec={"odd": 1}), BETA)
    assert made["spec"]["components"][0]["replicas"] == 1
