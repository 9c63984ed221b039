"""Without etcd, one replica works and the others stand by, by a Lease of a real API server; late writes are not sent."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dynamo_devcluster import ControlPlane
from dynamo_pod_builder.app import PodBuilderService
from dynamo_shared.api.resources import CONFIG_MAPS, DYNAMO_GRAPH_DEPLOYMENTS, LEASES, ObjectKey
from dynamo_shared.api.rights import LEASES_PREFIX, standby
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import NotFound, NotHeld
from dynamo_shared.leases.term import lease_clock
from dynamo_shared.runtime.leasing.claim import KubeClaim
from dynamo_watcher.app import WatcherService

from tests.building.tasks import in_background
from tests.building.waiting import until
from tools.generate.charts.rights import rules

from .dynadmin import account
from .platform import eventually, graph, platform, settings

TTL = 3.0


class Clock:
    """The real clock, plus the time for which this replica was stopped."""

    def __init__(self) -> None:
        self.stopped = 0.0

    def __call__(self) -> float:
        return lease_clock() + self.stopped


@asynccontextmanager
async def claiming(
    kube: KubeClient, key: ObjectKey, replica: str, clock: Callable[[], float] = lease_clock, ttl: float = TTL
) -> AsyncIterator[KubeClaim]:
    claim = KubeClaim(kube, key, replica, ttl, clock=clock)
    try:
        async with in_background(claim.run()):
            yield claim
    finally:
        await claim.close()


async def test_the_next_replica_gets_the_lease_as_soon_as_it_is_released(kube: KubeClient, namespace: str) -> None:
    key = ObjectKey(namespace, "dynamo-test")
    heard: list[str] = []
    # The Lease does not expire during the test: the holder changes because it is released, not because the machine
    # pauses.
    async with claiming(kube, key, "a", ttl=600) as first:
        first.on_gain(lambda _: heard.append("gained"))
        await asyncio.wait_for(first.wait_elected(), 60)
        assert first.owns(ObjectKey("any", "key"))
        async with claiming(kube, key, "b", ttl=600) as second:
            await until(lambda: second.holder == "a")
            assert not second.may_write()
            assert first.may_write()
    async with claiming(kube, key, "b", ttl=600) as second:
        await asyncio.wait_for(second.wait_elected(), 60)
        observed = await kube.get(LEASES, key)
        assert (observed["spec"]["holderIdentity"], observed["spec"]["leaseTransitions"]) == ("b", 1)
    assert (await kube.get(LEASES, key))["spec"]["holderIdentity"] == ""


async def test_a_replica_that_was_stopped_sends_no_late_write(kube: KubeClient, namespace: str) -> None:
    # Longer than a pause of the machine; the replica checks its deadline every third of this.
    key, clock, ttl = ObjectKey(namespace, "dynamo-test"), Clock(), 15.0
    lost = asyncio.Event()
    async with claiming(kube, key, "a", clock, ttl) as claim:
        await asyncio.wait_for(claim.wait_elected(), 60)
        claim.on_loss(lost.set)
        writer = kube.acting_as("dynamo-test").guarded(claim.may_write)
        await writer.create(CONFIG_MAPS, config_map(namespace, "in-time"))
        clock.stopped += ttl
        with pytest.raises(NotHeld):
            await writer.create(CONFIG_MAPS, config_map(namespace, "late"))
        with pytest.raises(NotHeld):
            await writer.acting_as("other").apply(CONFIG_MAPS, config_map(namespace, "late"))
        with pytest.raises(NotFound):
            await writer.get(CONFIG_MAPS, ObjectKey(namespace, "late"))
        await asyncio.wait_for(lost.wait(), 60)
        # No other replica took it meanwhile, so this one holds it again.
        await asyncio.wait_for(claim.wait_elected(), 60)
        await writer.create(CONFIG_MAPS, config_map(namespace, "later"))


async def test_a_service_elects_its_own_replica_and_cannot_take_the_lease_of_another(
    control_plane: ControlPlane, kube: KubeClient, namespace: str
) -> None:
    given = json.dumps(rules(standby("scaler"))).replace(LEASES_PREFIX, "dynamo-eu")
    await account(kube, namespace, "scaler", *json.loads(given))
    user = control_plane.user_kubeconfig(f"system:serviceaccount:{namespace}:scaler")
    own, other = (ObjectKey(namespace, f"dynamo-eu-{each}") for each in ("scaler", "watcher"))
    async with await KubeClient.open(kubeconfig=user) as scaler:
        async with claiming(kube, other, "a", ttl=600) as first:
            await asyncio.wait_for(first.wait_elected(), 60)
            async with claiming(scaler, other, "b", ttl=600) as thief:
                await until(lambda: "cannot get resource" in thief.trouble)
        for replica in ("b", "c"):
            async with claiming(scaler, own, replica, ttl=600) as claim:
                await asyncio.wait_for(claim.wait_elected(), 60)
    assert (await kube.get(LEASES, other))["spec"]["holderIdentity"] in ("a", "")
    assert (await kube.get(LEASES, own))["spec"]["leaseTransitions"] == 1


async def test_one_of_two_platforms_without_etcd_works_and_the_other_takes_over(
    control_plane: Any, kube: KubeClient, namespace: str, nats_server: Any
) -> None:
    def configured(replica: str) -> Any:
        return settings(
            control_plane.kubeconfig,
            nats_server.url,
            PLATFORM__STANDBY__MODE="always",
            PLATFORM__STANDBY__NAMESPACE=namespace,
            # No Lease expires during the test: each is released.
            PLATFORM__STANDBY__DURATION="60s",
            PLATFORM__REPLICA_ID=replica,
        )

    def parts() -> list[Any]:
        return [WatcherService(), PodBuilderService()]

    def standing_by(up: Any) -> bool:
        reported = up.context.health.report()["parts"]
        return all(
            "standby; active: " in reported[f"standby: {name}"]["message"] for name in ("watcher", "pod-builder")
        )

    async def state(name: str) -> bool:
        observed = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, name))
        return bool((observed.get("status") or {}).get("state"))

    async with platform(configured("first"), parts()):
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, "one"))
        await eventually(lambda: state("one"), "the first works", 60)
        async with platform(configured("second"), parts()) as second:
            await until(lambda: standing_by(second))
            assert second.context.health.ready
    async with platform(configured("third"), parts()) as third:
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, "two"))
        await eventually(lambda: state("two"), "the next has taken over", 60)
        assert third.context.health.ready


def config_map(namespace: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": {}}
