"""A service's own writes, held against a real API server where STATE does not confirm them."""

from typing import Any

from dynamo_devcluster.controlplane import ControlPlane
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CONFIG_MAPS, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import own_writes
from dynamo_shared.state import ObjectCache
from dynamo_shared.state.cache import GRACE
from dynamo_shared.state.versions import version_of


def config_map(namespace: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}, "data": {}}


def of_a_lost_history(obj: KubeObject) -> KubeObject:
    """The object after a write that the data store no longer knows."""
    metadata = obj["metadata"]
    number = str(int(metadata["resourceVersion"]) + 1000)
    return {**obj, "metadata": {**metadata, "resourceVersion": number}, "data": {"lost": "yes"}}


async def test_what_the_server_has_takes_the_place_of_a_write_that_it_lost(kube: KubeClient, namespace: str) -> None:
    now, key = [0.0], ObjectKey(namespace, "a")
    cache = ObjectCache(clock=lambda: now[0])
    there = await kube.create(CONFIG_MAPS, config_map(namespace))
    cache.take(CONFIG_MAPS, key, there, version_of(there))
    cache.put(CONFIG_MAPS, of_a_lost_history(there))
    await own_writes.check(cache, kube)
    assert (cache.get(CONFIG_MAPS, key) or {})["data"] == {"lost": "yes"}, "STATE has time to confirm it"
    now[0] = GRACE
    await own_writes.check(cache, kube)
    assert cache.version(CONFIG_MAPS, key) == version_of(there)


async def test_what_the_server_has_lost_altogether_is_gone(kube: KubeClient, namespace: str) -> None:
    now, key = [0.0], ObjectKey(namespace, "a")
    cache = ObjectCache(clock=lambda: now[0])
    there = await kube.create(CONFIG_MAPS, config_map(namespace))
    await kube.delete(CONFIG_MAPS, key, uid=there["metadata"]["uid"])
    cache.put(CONFIG_MAPS, there)
    now[0] = GRACE
    await own_writes.check(cache, kube)
    assert cache.get(CONFIG_MAPS, key) is None


async def test_a_refusal_changes_nothing_and_it_is_asked_again(
    kube: KubeClient, control_plane: ControlPlane, namespace: str
) -> None:
    now, key = [0.0], ObjectKey(namespace, "a")
    cache = ObjectCache(clock=lambda: now[0])
    there = await kube.create(CONFIG_MAPS, config_map(namespace))
    lost = of_a_lost_history(there)
    cache.put(CONFIG_MAPS, lost)
    kubeconfig = control_plane.user_kubeconfig("without-rights")
    async with await KubeClient.open(kubeconfig=kubeconfig) as refused:
        now[0] = GRACE
        await own_writes.check(cache, refused)
    assert cache.get(CONFIG_MAPS, key) == lost
    now[0] = 2 * GRACE
    await own_writes.check(cache, kube)
    assert cache.version(CONFIG_MAPS, key) == version_of(there)
