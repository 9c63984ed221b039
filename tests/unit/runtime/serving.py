"""A controller that reconciles Deployments, on an in-memory bus."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DEPLOYMENTS, LEASES, ObjectKey, Resource, key_of
from dynamo_shared.kube import KubeClient
from dynamo_shared.leases import AlwaysLeader, Ownership
from dynamo_shared.runtime import Controller, Health, ServiceContext, load_settings
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.state.publisher import StatePublisher
from dynamo_shared.state.versions import version_of

from tests.building.memory_bus import MemoryBus
from tests.building.memory_kube import MemoryKube
from tests.building.objects import stored_object
from tests.building.tasks import in_background
from tests.building.waiting import until

SERVICE = "service"
C = TypeVar("C", bound=Controller)


def deployment(key: ObjectKey) -> KubeObject:
    created = "2026-01-01T00:00:00Z"
    return stored_object(DEPLOYMENTS, key.name, key.namespace, uid=f"uid-{key}", creationTimestamp=created)


def said(controller: Controller, resource: Resource, obj: KubeObject) -> None:
    """A message of STATE with this object."""
    controller.cache.take(resource, key_of(obj), obj, version_of(obj))


@asynccontextmanager
async def served(
    keys: Iterable[ObjectKey],
    made: Callable[[ServiceContext], C],
    ownership: Ownership,
    kube: MemoryKube | None = None,
    **more: Any,
) -> AsyncIterator[tuple[C, StatePublisher]]:
    """A ready controller named SERVICE, and its publisher; `kube` is its client, `more` are fields of the context."""
    bus, settings = MemoryBus(), load_settings(None, {})
    client = cast("KubeClient", SimpleNamespace(acting_as=lambda _: SimpleNamespace(guarded=lambda _: kube)))
    context = ServiceContext(
        settings, client, bus, Health(), Metrics(), lambda _: ownership, lambda _: AlwaysLeader(), **more
    )
    context.health.expect(SERVICE)
    publisher = StatePublisher(bus, settings.platform.cluster_name)
    async with in_background(publisher.run()):
        await publisher.load((DEPLOYMENTS, LEASES))
        for key in keys:
            publisher.put(DEPLOYMENTS, deployment(key))
        for resource in (DEPLOYMENTS, LEASES):
            await publisher.mark_synced(resource, "1")
        controller = made(context)
        async with in_background(controller.serve()) as serving:
            await until(lambda: context.health.ready_part(SERVICE))
            yield controller, publisher
            assert not serving.done()
