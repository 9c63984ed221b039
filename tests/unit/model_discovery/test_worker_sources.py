"""File discovery: percent-encoded names, files that are no longer touched, and files that come and go."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from dynamo_model_discovery.workers.assembly import assemble
from dynamo_model_discovery.workers.metadata import owner_of
from dynamo_model_discovery.workers.sources import kubernetes
from dynamo_model_discovery.workers.sources.files import LIFETIME, FileSource
from dynamo_model_discovery.workers.sources.kubernetes import READS, KubernetesSource
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_WORKER_METADATAS, ENDPOINT_SLICES, PODS, ObjectKey, Resource, key_of
from dynamo_shared.state.versions import version_of

from tests.building.memory_bus import MemoryBus
from tests.building.objects import object_of
from tests.unit.model_discovery.worker_building import card, instance


class Deployment:
    """A directory, and a clock that does not advance on its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now = 1_000_000.0
        self.news = 0
        self.source = FileSource(directory, self._changed, now=lambda: self.now)

    def _changed(self) -> None:
        self.news += 1

    def write(self, pair: tuple[str, bytes]) -> Path:
        _, kind, name = pair[0].split("/", 2)
        path = self.directory / "v1" / kind / quote(name, safe="").replace("-", "%2D").replace("_", "%5F")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pair[1])
        self.touch(path)
        return path

    def touch(self, path: Path) -> None:
        os.utime(path, (self.now, self.now))

    async def workers(self) -> list[str]:
        await self.source.poll()
        return sorted(worker.name for worker in assemble(self.source.records(), {}).workers.values())


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path / "kv")


async def test_a_missing_directory_counts_as_empty(deployment: Deployment):
    assert not deployment.source.ready
    assert await deployment.workers() == []
    assert deployment.source.ready
    assert deployment.news == 1


async def test_files_are_workers_while_they_are_touched(deployment: Deployment):
    first = deployment.write(instance(2**63 + 5, namespace="a-b", component="back_end"))
    deployment.write(instance(7))
    deployment.write(card(7))
    assert await deployment.workers() == ["a-b/back_end/8000000000000005", "dyn/backend/7"]
    deployment.now += LIFETIME - 1
    deployment.touch(first)
    assert len(await deployment.workers()) == 2
    deployment.now += 2
    assert await deployment.workers() == ["a-b/back_end/8000000000000005"]
    first.unlink()
    assert await deployment.workers() == []


async def test_an_unchanged_directory_reports_no_change(deployment: Deployment):
    path = deployment.write(instance(7))
    await deployment.workers()
    reported = deployment.news
    deployment.now += 1
    deployment.touch(path)
    await deployment.workers()
    assert deployment.news == reported
    path.write_bytes(b"{")
    deployment.touch(path)
    await deployment.workers()
    assert (deployment.news, deployment.source.unreadable) == (reported + 1, 1)


async def test_other_files_are_ignored(deployment: Deployment):
    directory = deployment.write(instance(7)).parent
    (directory / ".tmp_0123").write_bytes(b"half")
    (directory / "folder").mkdir()
    (directory / "link").symlink_to("/etc/hostname")
    assert await deployment.workers() == ["dyn/backend/7"]
    assert deployment.source.unreadable == 0


async def test_an_unreadable_directory_keeps_the_known_workers(deployment: Deployment):
    path = deployment.write(instance(7))
    await deployment.workers()
    path.parent.rename(deployment.directory / "away")
    path.parent.write_text("a file")
    assert await deployment.workers() == ["dyn/backend/7"]
    assert "Not a directory" in deployment.source.error
    path.parent.unlink()
    (deployment.directory / "away").rename(path.parent)
    assert await deployment.workers() == ["dyn/backend/7"]
    assert deployment.source.error == ""


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
