"""A publisher of STATE, and objects that it publishes, for the tests of STATE."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dynamo_shared.api.resources import DEPLOYMENTS, Resource
from dynamo_shared.bus import Bus
from dynamo_shared.state.publisher import StatePublisher, Truth

from tests.building.objects import object_of
from tests.building.tasks import in_background

CLUSTER = "c"


def obj(
    name: str, version: int, *, uid: str = "", created: str = "2026-01-01T00:00:00Z", namespace: str = "ns"
) -> dict[str, Any]:
    metadata = {"uid": uid or f"uid-{name}", "resourceVersion": str(version), "generation": 3}
    managed = [{"manager": "kubectl"}]
    spec = {"replicas": version}
    return object_of(
        DEPLOYMENTS, name, namespace, creationTimestamp=created, managedFields=managed, spec=spec, **metadata
    )


@asynccontextmanager
async def publishing(bus: Bus, *resources: Resource, truth: Truth | None = None) -> AsyncIterator[StatePublisher]:
    publisher = StatePublisher(bus, CLUSTER, truth=truth)
    async with in_background(publisher.run()):
        await publisher.load(resources or (DEPLOYMENTS,))
        yield publisher


async def put(publisher: StatePublisher, *objects: dict[str, Any]) -> None:
    """Return when STATE has these objects, or newer ones."""
    for each in objects:
        publisher.put(DEPLOYMENTS, each)
    await publisher.flushed(DEPLOYMENTS)
