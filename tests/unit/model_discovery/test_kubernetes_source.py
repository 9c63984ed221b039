"""The parts of pods and EndpointSlices that worker discovery keeps, and which changes concern it."""

from typing import Any

import pytest
from dynamo_model_discovery.workers.metadata import owner_of
from dynamo_model_discovery.workers.sources import kubernetes
from dynamo_model_discovery.workers.sources.kubernetes import READS, KubernetesSource
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_WORKER_METADATAS, ENDPOINT_SLICES, PODS, ObjectKey, Resource, key_of
from dynamo_shared.state.versions import version_of

from tests.building.memory_bus import MemoryBus
from tests.building.objects import object_of


def obj(resource: Resource, version: int, **fields: Any) -> dict[str, Any]:
    own = {labels.COMPONENT: "Decode", labels.DISCOVERY_ENABLED: "true", "pod-template-hash": str(version)}
    metadata = {"uid": "u", "resourceVersion": str(version), "labels": own}
    owners = [{"kind": "ReplicaSet", "name": "decode"}]
    return object_of(resource, "decode-0", "default", ownerReferences=owners, **metadata, **fields)


POD: dict[str, Any] = {"status": {"phase": "Running", "podIP": "10.0.0.7", "conditions": [{"type": "Ready"}]}}
SLICE: dict[str, Any] = {
    "endpoints": [{"addresses": ["10.0.0.7"], "conditions": {"ready": True}, "targetRef": {"name": "decode-0"}}],
    "ports": [{"port": 9090}],
}
CONTENT: dict[str, Any] = {
    "endpoints": {"e": {"namespace": "n", "component": "c", "endpoint": "generate", "instance_id": 1}}
}
DATA: dict[str, Any] = {"spec": {"data": CONTENT}}


@pytest.mark.parametrize(
    ("resource", "fields", "change", "concerns"),
    [
        pytest.param(PODS, POD, {"status": {**POD["status"], "conditions": []}}, False, id="a-condition"),
        pytest.param(PODS, POD, {"status": {**POD["status"], "podIP": "10.0.0.8"}}, True, id="an-address"),
        pytest.param(PODS, POD, {"status": {"phase": "Failed"}}, True, id="the-end-of-a-pod"),
        pytest.param(ENDPOINT_SLICES, SLICE, {**SLICE, "ports": []}, False, id="ports"),
        pytest.param(ENDPOINT_SLICES, SLICE, {"endpoints": []}, True, id="a-pod-that-is-not-ready"),
        pytest.param(DYNAMO_WORKER_METADATAS, DATA, {"spec": {"data": {**CONTENT, "x": 1}}}, False, id="another-field"),
        pytest.param(DYNAMO_WORKER_METADATAS, DATA, {"spec": {"data": None}}, True, id="nothing"),
    ],
)
def test_only_changes_of_fields_that_discovery_reads_are_reported(
    resource: Resource, fields: dict[str, Any], change: dict[str, Any], concerns: bool
) -> None:
    reported: list[None] = []
    source = KubernetesSource(MemoryBus(), "local", lambda: reported.append(None))
    for version, content in enumerate((fields, change), 1):
        each = obj(resource, version, **content)
        source._cache.take(resource, key_of(each), each, version_of(each))
    assert len(reported) == 1 + concerns


def test_only_the_records_of_worker_metadata_are_kept() -> None:
    """Anyone may write this object: a megabyte of small values takes twenty in memory, and there may be hundreds."""
    source = KubernetesSource(MemoryBus(), "local", lambda: None)
    each = obj(DYNAMO_WORKER_METADATAS, 1, **DATA)
    each["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j"}, {"kind": "Pod", "name": "p", "uid": "x" * 100}]
    source._cache.take(DYNAMO_WORKER_METADATAS, key_of(each), each, version_of(each))
    kept = source._cache.get(DYNAMO_WORKER_METADATAS, key_of(each))
    assert kept is not None
    assert kept.keys() == {"metadata", "records"}
    assert (owner_of(kept), owner_of(each)) == ("p", "p")
    assert len(kept["records"].records) == 1


def test_records_that_are_not_published_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of objects may name one ready pod: with 2,000 records each, they took 360 MiB and blocked for a second."""
    monkeypatch.setattr(kubernetes, "MAX_RECORDS_OF_NAMESPACE", 1)
    source = KubernetesSource(MemoryBus(), "local", lambda: None)

    def put(name: str, version: int, namespace: str = "tenant") -> int:
        each = object_of(DYNAMO_WORKER_METADATAS, name, namespace, uid=name, resourceVersion=str(version), **DATA)
        source._cache.take(DYNAMO_WORKER_METADATAS, key_of(each), each, version_of(each))
        kept = source._cache.get(DYNAMO_WORKER_METADATAS, key_of(each))
        assert kept is not None
        return len(kept["records"].records)

    # One more than are published, so that the namespace is reported.
    assert [put(name, 1) for name in "abcd"] == [1, 1, 0, 0]
    assert put("a", 1, "other") == 1
    source._cache.remove(DYNAMO_WORKER_METADATAS, ObjectKey("tenant", "a"), "a")
    assert [put(name, 2) for name in "cd"] == [1, 0]


def test_a_namespace_without_records_is_forgotten() -> None:
    """Namespaces come and go: each one that ever had a worker stayed in the count."""
    source = KubernetesSource(MemoryBus(), "local", lambda: None)
    each = obj(DYNAMO_WORKER_METADATAS, 1, **DATA)
    source._cache.take(DYNAMO_WORKER_METADATAS, key_of(each), each, version_of(each))
    assert source._counts == {"default": 1}
    source._cache.take(DYNAMO_WORKER_METADATAS, key_of(each), None, version_of(each))
    assert not source._counts


@pytest.mark.parametrize("resource", [each for each in READS if each in (PODS, ENDPOINT_SLICES)], ids=str)
def test_few_fields_of_an_object_are_kept(resource: Resource) -> None:
    source = KubernetesSource(MemoryBus(), "local", lambda: None)
    each = obj(resource, 1, **(POD if resource == PODS else SLICE))
    source._cache.take(resource, key_of(each), each, version_of(each))
    kept = source._cache.get(resource, ObjectKey("default", "decode-0"))
    assert kept is not None
    assert set(kept["metadata"]) == {"name", "namespace", "uid", "resourceVersion", "labels"}
    assert len(kept["metadata"]["labels"]) == 1


def test_places_index_pods_by_address() -> None:
    source = KubernetesSource(MemoryBus(), "local", lambda: None)
    each = obj(PODS, 1, **POD)
    source._cache.take(PODS, key_of(each), each, version_of(each))
    assert source.locations["10.0.0.7"].component == "Decode"
