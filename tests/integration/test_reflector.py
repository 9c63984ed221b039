"""The reflector on a real API server that is restarted, killed, stopped and compacted."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, ObjectKey, Resource
from dynamo_shared.kube import KubeClient, KubeError, Unavailable, discovery
from dynamo_shared.kube.reflector import Absent, ObjectChange, Reflector, Synced

from tests.building.control_plane import WITHOUT_CONTROLLERS, prepared
from tests.building.definitions import definition_of
from tests.building.tasks import in_background

from .etcd import compact

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def config_map(namespace: str, name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {"test": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def soon(_seconds: float) -> None:
    """A back-off for tests: short, but not zero."""
    await asyncio.sleep(0.05)


class Follower:
    """The objects that a consumer of a reflector knows."""

    def __init__(self, client: KubeClient, resource: Resource, namespace: str, **options: Any) -> None:
        self.health: list[tuple[bool, str]] = []
        self.reflector = Reflector(client, resource, namespace=namespace, on_health=self._hear, **options)
        self.objects: dict[ObjectKey, dict[str, Any]] = {}
        self.reported: Counter[tuple[str, str, str]] = Counter()
        self.kinds: list[str] = []
        self.syncs = 0
        self._news = asyncio.Event()

    async def follow(self) -> None:
        async for item in self.reflector.changes():
            assert not isinstance(item, Absent), "nothing is followed here that need not be there"
            self._take(item)
            self._news.set()

    def _hear(self, ok: bool, message: str) -> None:
        self.health.append((ok, message))
        self._news.set()

    def _take(self, item: ObjectChange | Synced) -> None:
        if isinstance(item, Synced):
            self.syncs += 1
            assert {key: obj["metadata"]["resourceVersion"] for key, obj in self.objects.items()} == {
                key: version for key, (_uid, version) in item.versions.items()
            }
            return
        metadata = item.obj["metadata"]
        self.kinds.append(f"{item.kind} {item.key.name}")
        self.reported[(item.kind, metadata["uid"], metadata["resourceVersion"])] += 1
        assert "managedFields" not in metadata
        if item.kind == "DELETED":
            del self.objects[item.key]
            return
        assert (item.kind == "MODIFIED") == (item.key in self.objects)
        self.objects[item.key] = item.obj

    async def until(self, reached: Callable[[], bool]) -> None:
        # After several failures in a row the reflector waits for up to 22 s.
        async with asyncio.timeout(90):
            while not reached():
                self._news.clear()
                await self._news.wait()

    def assert_nothing_was_reported_twice(self) -> None:
        assert [what for what, times in self.reported.items() if times > 1] == []


@asynccontextmanager
async def following(
    client: KubeClient, namespace: str, resource: Resource = CONFIG_MAPS, **options: Any
) -> AsyncIterator[Follower]:
    follower = Follower(client, resource, namespace, **options)
    async with in_background(follower.follow()) as task:
        # A type that is not served never becomes synced. Other trouble, such as a slow server, is temporary.
        await follower.until(lambda: follower.syncs > 0 or any("does not serve" in each for _, each in follower.health))
        yield follower
        assert not task.done()


@pytest.fixture(scope="module")
async def small_plane(programs: Programs) -> AsyncIterator[ControlPlane]:
    """A control plane that tests may break: no controllers, no nodes."""
    async with ControlPlane(await prepared(programs, **WITHOUT_CONTROLLERS), programs) as plane:
        yield plane


@pytest.fixture
async def small_kube(small_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with await KubeClient.open(kubeconfig=small_plane.kubeconfig, field_manager="tests") as client:
        yield client
        for item in await client.list(CONFIG_MAPS, "default", label_selector="test"):
            await client.delete(CONFIG_MAPS, ObjectKey("default", item["metadata"]["name"]))


async def test_created_changed_and_deleted_objects_are_reported(kube: KubeClient, namespace: str) -> None:
    for number in range(5):
        await kube.create(CONFIG_MAPS, config_map(namespace, f"c{number}"))
    async with following(kube, namespace, label_selector="test", page_size=2) as follower:
        assert follower.kinds == [f"ADDED c{number}" for number in range(5)]
        await kube.apply(CONFIG_MAPS, config_map(namespace, "c0", x="1"))
        await kube.delete(CONFIG_MAPS, ObjectKey(namespace, "c1"))
        await kube.create(CONFIG_MAPS, config_map(namespace, "new"))
        # An object without the label is deleted for a reader that selects by it.
        await kube.merge_patch(CONFIG_MAPS, ObjectKey(namespace, "c2"), {"metadata": {"labels": None}})
        await follower.until(lambda: len(follower.kinds) == 9)
        assert follower.kinds[5:] == ["MODIFIED c0", "DELETED c1", "ADDED new", "DELETED c2"]
        assert follower.objects[ObjectKey(namespace, "c0")]["data"] == {"x": "1"}
        follower.assert_nothing_was_reported_twice()


async def keep_writing(client: KubeClient, stop: asyncio.Event) -> None:
    """Create, change and delete objects, whatever the server's state."""
    number = 0
    while not stop.is_set():
        number += 1
        name = f"w{number % 20}"
        try:
            if number % 7 == 0:
                await client.delete(CONFIG_MAPS, ObjectKey("default", name))
            else:
                await client.apply(CONFIG_MAPS, config_map("default", name, n=str(number)))
        except KubeError:
            pass
        await asyncio.sleep(0.005)


async def assert_same(client: KubeClient, follower: Follower) -> None:
    """The follower knows every existing object in its current version, and no other."""
    there = {
        ObjectKey("default", item["metadata"]["name"]): item["metadata"]["resourceVersion"]
        for item in await client.list(CONFIG_MAPS, "default", label_selector="test")
    }

    def known() -> dict[ObjectKey, str]:
        return {key: obj["metadata"]["resourceVersion"] for key, obj in follower.objects.items()}

    await follower.until(lambda: known() == there)


@pytest.mark.restart
async def test_a_crash_of_the_server_leaves_no_gap(small_plane: ControlPlane, small_kube: KubeClient) -> None:
    async with following(small_kube, "default", label_selector="test") as follower:
        stop = asyncio.Event()
        writer = asyncio.create_task(keep_writing(small_kube, stop))
        try:
            await follower.until(lambda: len(follower.kinds) > 20)
            await small_plane.api_server.kill()
            await small_plane.api_server.start()
            observed = len(follower.kinds)
            await follower.until(lambda: len(follower.kinds) > observed + 20)
        finally:
            stop.set()
            await writer
        await assert_same(small_kube, follower)
        follower.assert_nothing_was_reported_twice()


@pytest.mark.restart
async def test_a_compaction_during_an_outage_causes_a_relist_that_reports_only_changes(
    small_plane: ControlPlane, small_kube: KubeClient
) -> None:
    """After a restart the API server no longer has what etcd compacted, so the old resourceVersion gives 410."""
    for name in ("same", "changed", "vanished", "remade"):
        await small_kube.create(CONFIG_MAPS, config_map("default", name))
    async with following(small_kube, "default", label_selector="test", sleep=soon) as follower:
        before = len(follower.kinds)
        reflector = follower.reflector
        held = reflector._client
        reflector._client = reflector._lists._client = _Unreachable()  # type: ignore[assignment]
        await small_plane.api_server.restart()
        remade = ObjectKey("default", "remade")
        await small_kube.apply(CONFIG_MAPS, config_map("default", "changed", x="1"))
        await small_kube.delete(CONFIG_MAPS, ObjectKey("default", "vanished"))
        await small_kube.delete(CONFIG_MAPS, remade)
        await small_kube.create(CONFIG_MAPS, config_map("default", "remade"))
        await small_kube.create(CONFIG_MAPS, config_map("default", "new"))
        latest = (await small_kube.list_page(CONFIG_MAPS, "default"))["metadata"]["resourceVersion"]
        await compact(small_plane, int(latest))
        await small_plane.api_server.restart()
        reflector._client = reflector._lists._client = held
        await follower.until(lambda: follower.syncs == 2)
        assert sorted(follower.kinds[before:]) == [
            *("ADDED new", "ADDED remade", "DELETED remade", "DELETED vanished", "MODIFIED changed")
        ]
        await assert_same(small_kube, follower)
        follower.assert_nothing_was_reported_twice()


class _Unreachable:
    """A client without a server."""

    def stream(self, *_arguments: Any, **_options: Any) -> Any:
        raise Unavailable(0, "Unreachable", "the network is away")


async def test_a_type_is_followed_as_soon_as_it_is_installed(kube: KubeClient, namespace: str) -> None:
    plural = f"gadgets{namespace.replace('-', '')}"
    gadgets = Resource("example.com", "v1", plural, "Gadget")

    async with following(kube, namespace, gadgets, sleep=soon) as follower:
        assert follower.health[0][0] is False
        assert "install its CustomResourceDefinition" in follower.health[0][1]
        await discovery.install_crds(kube, [definition_of(gadgets)])
        gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g", "namespace": namespace}}
        await kube.create(gadgets, gadget)
        await follower.until(lambda: ObjectKey(namespace, "g") in follower.objects)
        assert follower.health[-1][0] is True
        # The type may be removed again: its objects are deleted first.
        await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", f"{plural}.example.com"))
        await follower.until(lambda: not follower.objects and follower.health[-1][0] is False)
