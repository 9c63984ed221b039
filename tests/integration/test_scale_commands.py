"""Scale commands with a real API server and NATS: pods follow, budgets hold, each answer says what was done."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_pod_builder.app import PodBuilderService
from dynamo_scaler.app import ScalerService
from dynamo_scaler.budgets.pools import pools_of
from dynamo_scaler.commands.records import ScalingRecord
from dynamo_scaler.commands.writer import StaleError, Write, Writer
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import LAST_SCALED
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    PODS,
    ObjectKey,
)
from dynamo_shared.bus import NatsBus, NatsOptions, streams
from dynamo_shared.bus.commands import CommandSender
from dynamo_shared.bus.errors import BusUnavailableError
from dynamo_shared.bus.protocol import CaughtUp, Message, Start
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Service
from dynamo_shared.state import ObjectCache
from dynamo_shared.wire import cloudevents, subjects
from dynamo_shared.wire.specifications.platform import CommandResult
from dynamo_shared.wire.specifications.scaling import ScaleData, ScaleTarget
from dynamo_watcher.app import WatcherService

from .platform import eventually, frontend, graph, platform, settings, until_event, until_state, worker

CLUSTER = "local"
#: No pause between scalings: other tests cover it.
BUSY = {"PLATFORM__SCALER__LIMITS__DOWN__COOLDOWN": "0s"}


class CommandClient:
    """Sends commands to the scaler, and reads its events."""

    def __init__(self, bus: NatsBus, namespace: str) -> None:
        self._bus = bus
        self._sender = CommandSender(bus, CLUSTER)
        self._namespace = namespace

    async def scale(
        self, name: str, request: str, dry_run: bool = False, generation: int = 0, **replicas: int
    ) -> tuple[bool, CommandResult]:
        targets = [
            ScaleTarget(sub_component_type=what, replicas=n)
            if what.islower()
            else ScaleTarget(component=what, replicas=n)
            for what, n in replicas.items()
        ]
        data = ScaleData(
            graph_deployment=name,
            targets=targets,
            requester="tests",
            reason="to see",
            expected_generation=str(generation),
            dry_run=dry_run,
        )
        while True:
            await self._bus.wait_connected()
            # A restarted server is noticed at the next use; a command with the same request id is sent again without
            # effect.
            with suppress(BusUnavailableError):
                return await self._sender.ask("scaler", "scale", self._namespace, data, request=request, timeout=60)

    async def reported(self, event: str, name: str) -> list[dict[str, Any]]:
        """Data of the events of a graph, oldest first."""
        pattern = subjects.event_subject(CLUSTER, self._namespace, "dynamographdeployment", name, event)
        results: list[dict[str, Any]] = []
        subscription = await self._bus.subscribe(streams.EVENTS, [pattern], start=Start.ALL)
        try:
            async for item in subscription:
                if isinstance(item, CaughtUp):
                    break
                if isinstance(item, Message):
                    results.append(cloudevents.decode(item.payload).data)
        finally:
            await subscription.close()
        return results


@asynccontextmanager
async def command_client(nats_url: str, namespace: str) -> AsyncIterator[CommandClient]:
    bus = await NatsBus.connect(NatsOptions(servers=(nats_url,), name="tests"), wait=10)
    try:
        yield CommandClient(bus, namespace)
    finally:
        await bus.close()


def everything() -> list[Service]:
    return [WatcherService(), PodBuilderService(), ScalerService()]


@asynccontextmanager
async def scaled(kubeconfig: Path, nats_url: str, namespace: str, **extra: str) -> AsyncIterator[CommandClient]:
    """The platform with a scaler, and a client that sends commands."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(platform(settings(kubeconfig, nats_url, **extra), everything()))
        yield await stack.enter_async_context(command_client(nats_url, namespace))


def disagg(namespace: str, name: str, *, adapters: bool) -> dict[str, Any]:
    workers = [worker("Prefill", "prefill", replicas=1), worker("Decode", "decode", replicas=1)]
    if adapters:
        workers = [{**each, "scalingAdapter": {}} for each in workers]
    return graph(namespace, name, components=[frontend(), *workers])


async def running_pods(kube: KubeClient, namespace: str, name: str, component: str) -> int:
    selector = f"{labels.GRAPH_DEPLOYMENT_NAME}={name},{labels.COMPONENT}={component}"
    pods = await kube.list(PODS, namespace, label_selector=selector)
    return sum("deletionTimestamp" not in pod["metadata"] for pod in pods)


async def until_pods(kube: KubeClient, namespace: str, name: str, **desired: int) -> None:
    async def check() -> bool:
        return all([await running_pods(kube, namespace, name, each) == n for each, n in desired.items()])

    await eventually(check, f"{name}: {desired}")


async def replicas(kube: KubeClient, namespace: str, name: str) -> dict[str, int]:
    observed = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, name))
    return {each["name"]: each.get("replicas", 1) for each in observed["spec"]["components"]}


@pytest.mark.parametrize("adapters", [True, False], ids=["adapters", "graph"])
async def test_a_command_becomes_pods(
    control_plane: ControlPlane, nats_server: NatsServer, kube: KubeClient, namespace: str, adapters: bool
) -> None:
    async with scaled(control_plane.kubeconfig, nats_server.url, namespace, **BUSY) as ask:
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, disagg(namespace, "llama", adapters=adapters))
        await until_state(kube, ObjectKey(namespace, "llama"), "successful")
        done, result = await ask.scale("llama", "one", decode=3, Prefill=2)
        assert (done, result.reason, result.message) == (True, "Applied", "Decode 1 -> 3; Prefill 1 -> 2")
        await until_pods(kube, namespace, "llama", Decode=3, Prefill=2, Frontend=1)
        (event,) = await eventually(lambda: ask.reported("scale-applied", "llama"), "the event about it")
        assert event["requester"] == "tests"
        assert [(each["component"], each["current"], each["allowed"]) for each in event["components"]] == [
            ("Decode", 1, 3),
            ("Prefill", 1, 2),
        ]
        again, repeated = await ask.scale("llama", "one", decode=3, Prefill=2)
        assert (again, repeated.message) == (True, result.message)
        down, result = await ask.scale("llama", "two", Decode=1)
        assert (down, result.message) == (True, "Decode 3 -> 1")
        await until_pods(kube, namespace, "llama", Decode=1, Prefill=2)
        held_by = DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS if adapters else DYNAMO_GRAPH_DEPLOYMENTS
        key = ObjectKey(namespace, "llama-decode" if adapters else "llama")
        assert LAST_SCALED in (await kube.get(held_by, key))["metadata"]["annotations"]
        await until_event(kube, namespace, "Scaled")


async def test_a_write_is_stale_if_another_write_came_first(kube: KubeClient, namespace: str) -> None:
    key = ObjectKey(namespace, "llama")
    cache = ObjectCache()
    before = await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, disagg(namespace, "llama", adapters=False))
    cache.put(DYNAMO_GRAPH_DEPLOYMENTS, before)
    (decode,) = [pool for pool in pools_of(before, []) if pool.type == "decode"]
    writer = Writer(kube.acting_as("dynamo-scaler"), cache)
    write = Write(decode, 3, ScalingRecord(at=1.0, before=1, replicas=3, command="one"))
    # The first annotation of the scaler, after one of another user.
    await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"metadata": {"annotations": {"theirs": "kept"}}})
    with pytest.raises(StaleError):
        await writer.graph(key, [write], {})
    await writer.graph(key, [write], {})
    stored = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
    assert set(stored["metadata"]["annotations"]) == {"theirs", LAST_SCALED}
    assert (await replicas(kube, namespace, "llama"))["Decode"] == 3
    # Another number, or another order of components.
    await kube.merge_patch(
        DYNAMO_GRAPH_DEPLOYMENTS, key, {"spec": {"components": list(reversed(stored["spec"]["components"]))}}
    )
    with pytest.raises(StaleError):
        await writer.graph(key, [write], {})
    assert (await replicas(kube, namespace, "llama"))["Decode"] == 3
    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, key)
    with pytest.raises(StaleError):
        await writer.graph(key, [write], {})
    assert cache.get(DYNAMO_GRAPH_DEPLOYMENTS, key) is None
