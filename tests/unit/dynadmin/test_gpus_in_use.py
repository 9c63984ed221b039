"""The GPUs in use: a list of all pods, which one caller's requests share, and no other caller's."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_dynadmin.api import cluster
from dynamo_dynadmin.api.cluster import Cluster
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.identity.access import ResourceAttributes
from dynamo_dynadmin.state.hub import Hub
from dynamo_shared.api.resources import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, ObjectKey
from dynamo_shared.kube import ResponseTooLarge, Unavailable
from dynamo_shared.state.versions import Version

from tests.building.waiting import with_turns

NODE = b'{"metadata": {"name": "a"}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}'


class Kube:
    """Lists pods with so many GPUs, slowly, in pages of one; `fails` once."""

    def __init__(self, gpus: int, *, fails: bool = False, pods: int = 1, fits: int = 500) -> None:
        self.lists, self.pods, self.fits = 0, pods, fits
        self.fails = fails
        limits = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
        self.pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "a", "containers": [limits]}}

    async def list_page(self, *_: Any, limit: int, continue_: str, **__: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        if limit > self.fits:
            raise ResponseTooLarge(200, "ResponseTooLarge", "large")
        self.lists += not continue_
        if self.fails:
            self.fails = False
            raise Unavailable(503, "", "not now")
        last = len(continue_) + 1 == self.pods
        return {"metadata": {} if last else {"continue": f"{continue_}x"}, "items": [self.pod]}


class Rights:
    """What callers may."""

    def __init__(self) -> None:
        self.refused: set[tuple[str, str]] = set()

    async def may(self, call: Any, act: ResourceAttributes) -> bool:
        return (call.caller.key, act.resource.id) not in self.refused


def call(name: str, kube: Kube) -> Call:
    return cast("Call", SimpleNamespace(caller=SimpleNamespace(key=name), kube=kube))


@pytest.fixture
def rights() -> Rights:
    return Rights()


@pytest.fixture
def observed(rights: Rights) -> Cluster:
    hub = Hub(cast("Any", None), "c", [NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES])
    nodes = hub.entries(NODES)
    nodes.take(ObjectKey("", "a"), 1, Version("u", 1, ""), NODE)
    nodes.synced = True
    return Cluster(hub, cast("Any", rights), cast("Any", None), "1")


async def free(of: Cluster, who: Call) -> tuple[int, bool]:
    nodes, exact = await of.gpu_nodes(who)
    assert nodes is not None
    return nodes[0].free, exact


async def test_requests_of_one_caller_share_a_list(observed: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    kube = Kube(3)
    assert await asyncio.gather(*(free(observed, call("ann", kube)) for _ in range(3))) == [(5, True)] * 3
    assert kube.lists == 1
    monkeypatch.setattr(cluster, "REMEMBERED", 0.0)
    await free(observed, call("ann", kube))
    assert kube.lists == 2


async def test_large_pods_are_counted_in_small_pages(observed: Cluster) -> None:
    """All pods of the cluster were in memory at once: a hundred large ones of a tenant took gigabytes."""
    assert await free(observed, call("ann", Kube(2, pods=3, fits=1))) == (2, True)


async def test_no_caller_gets_what_another_one_may_see(observed: Cluster, rights: Rights) -> None:
    ann, bob = Kube(3), Kube(1)
    assert await free(observed, call("ann", ann)) == (5, True)
    assert await free(observed, call("bob", bob)) == (7, True)
    rights.refused |= {("ann", PODS.id)}
    assert await free(observed, call("ann", ann)) == (8, False), "pods of the platform alone"
    rights.refused |= {("ann", NODES.id)}
    assert await observed.gpu_nodes(call("ann", ann)) == (None, False)
    assert (ann.lists, bob.lists) == (1, 1)


async def test_a_list_that_fails_is_not_remembered(observed: Cluster) -> None:
    kube = Kube(3, fails=True)
    with pytest.raises(Unavailable):
        await free(observed, call("ann", kube))
    assert await free(observed, call("ann", kube)) == (5, True)


async def test_other_requests_get_a_turn_while_pods_are_counted(observed: Cluster, rights: Rights) -> None:
    """All pods of the platform were decoded at once, a second for ten thousand."""
    rights.refused = {("ann", PODS.id)}
    pods = observed._hub.entries(PODS)
    for number in range(50):
        limits = {"resources": {"limits": {"nvidia.com/gpu": str(number % 2)}}}
        pod = {
            "metadata": {"name": f"p-{number}"},
            "spec": {"nodeName": "a", "containers": [limits] if number < 8 else []},
        }
        pods.take(ObjectKey("n", f"p-{number}"), number, Version("u", number, ""), json.dumps(pod).encode())
    counted, others = await with_turns(free(observed, call("ann", Kube(0))))
    assert counted == (4, False)
    assert others > 50
