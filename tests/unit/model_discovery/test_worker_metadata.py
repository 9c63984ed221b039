"""DynamoWorkerMetadata of several releases, and when its pod counts as a worker."""

import json
from typing import Any

import pytest
from dynamo_model_discovery.workers import metadata
from dynamo_model_discovery.workers.locations import WorkerLocation
from dynamo_model_discovery.workers.records import CardRecord, EndpointRecord
from dynamo_shared.api.resources import ObjectKey

from tests.unit.model_discovery.worker_building import card, instance, pod


def registered(name: str, data: Any, *, owner: str = "") -> dict[str, Any]:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": "u"}] if owner else []
    return {
        "metadata": {"name": name, "namespace": "team", "uid": "u", "ownerReferences": owners},
        "spec": {"data": data},
    }


def slice_of(*pods: str, ready: bool | None = True, enabled: str = "true") -> dict[str, Any]:
    return {
        "metadata": {"name": "s", "namespace": "team", "labels": {"nvidia.com/dynamo-discovery-enabled": enabled}},
        "endpoints": [{"conditions": {"ready": ready}, "targetRef": {"kind": "Pod", "name": each}} for each in pods],
    }


def content(pair: tuple[str, bytes]) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(pair[1])
    return decoded


@pytest.mark.parametrize("key", ["dyn/backend/generate/2a", "dyn/backend/generate"])
def test_endpoints_and_cards_are_recognized_by_their_values(key):
    data = {"endpoints": {key: content(instance(42))}, "model_cards": {key: content(card(42)), "bad": {"type": "Model"}},
            "event_channels": {"x": {}}}  # fmt: skip
    reported = metadata.read(registered("decode-0", data))
    assert [type(record) for record in reported.records] == [EndpointRecord, CardRecord]
    assert {record.identity.worker for record in reported.records} == {"dyn/backend/2a"}
    assert (reported.unreadable, reported.readable) == (1, True)


def test_the_card_of_an_adapter():
    data = {"model_cards": {"dyn/backend/generate/2a/support": content(card(42, adapter="support"))}}
    (record,) = metadata.read(registered("decode-0", data)).records
    assert isinstance(record, CardRecord)
    assert record.card is not None
    assert record.card.lora
    legacy = content(card(42, model="base")) | {"model_suffix": "support"}
    (record,) = metadata.read(registered("decode-0", {"model_cards": {"dyn/backend/generate": legacy}})).records
    assert isinstance(record, CardRecord)
    assert record.card is not None
    assert record.card.lora


@pytest.mark.parametrize("name", ["a" * 254, "\u00e9" * 200, "a\nb"])
def test_a_name_that_is_too_long_or_has_several_lines_is_not_an_adapter(name: str):
    nameless = content(card(42)) | {"card_json": {}}
    (record,) = metadata.read(
        registered("decode-0", {"model_cards": {f"dyn/backend/generate/2a/{name}": nameless}})
    ).records
    assert isinstance(record, CardRecord)
    assert record.card is None


@pytest.mark.parametrize("data", [None, "", "{", [], 3, '{"x": ' + "[" * 5000])
def test_data_that_is_null_or_none_is_unreadable(data):
    assert not metadata.read(registered("decode-0", data)).readable


def test_data_as_text():
    data = json.dumps({"endpoints": {"x": content(instance(42))}})
    assert len(metadata.read(registered("decode-0", data)).records) == 1


def test_a_pod_counts_while_a_slice_that_discovery_reads_has_it_ready():
    assert metadata.ready_pods(slice_of("a", "b")) == {"team/a", "team/b"}
    assert not metadata.ready_pods(slice_of("a", ready=False))
    assert not metadata.ready_pods(slice_of("a", ready=None))
    # Discovery does not read the slices of a model's headless Service.
    assert not metadata.ready_pods(slice_of("a", enabled=""))


def where(obj: dict[str, Any], pods: list[dict[str, Any]], *ready: str) -> WorkerLocation | None:
    known = {ObjectKey("team", each["metadata"]["name"]): each for each in pods}
    return metadata.location(obj, known.get, lambda key: key.namespace == "team" and key.name in ready)


def test_an_object_belongs_to_its_pod():
    obj = registered("decode-0", {}, owner="decode-0")
    result = where(obj, [pod("decode-0", dynamo_graph_deployment_name="g", dynamo_component="Decode")], "decode-0")
    assert result == WorkerLocation("team", "decode-0", "uid-decode-0", "", "g", "Decode")
    # The pod may arrive later than its object.
    assert where(obj, [], "decode-0") == WorkerLocation("team", "decode-0")
    assert where(registered("decode-0", {}), [], "decode-0") == WorkerLocation("team", "decode-0")
    assert where(obj, [pod("decode-0")]) is None


def test_an_object_of_a_container_counts_while_the_container_is_ready():
    obj = registered("decode-0-engine-1", {}, owner="decode-0")
    two = pod("decode-0")
    two["status"]["containerStatuses"] = [{"name": "engine-0", "ready": True}, {"name": "engine-1", "ready": False}]
    assert where(obj, [two], "decode-0") is None
    two["status"]["containerStatuses"][1]["ready"] = True
    result = where(obj, [two])
    assert result is not None
    assert (result.pod, result.container) == ("decode-0", "engine-1")
    assert where(obj, [], "decode-0") is None
