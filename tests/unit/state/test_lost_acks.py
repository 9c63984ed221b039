"""A message that STATE has, although its acknowledgement was lost, is the publisher's own: it is no one else's change."""

import asyncio

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DEPLOYMENTS, ObjectKey, Resource
from dynamo_shared.bus import streams
from dynamo_shared.bus.errors import BusUnavailableError
from dynamo_shared.bus.protocol import ACK_TIMEOUT, Ack, OutgoingMessage
from dynamo_shared.state.publisher import StatePublisher
from dynamo_shared.wire import subjects

from tests.building.memory_bus import MemoryBus
from tests.building.tasks import in_background

SUBJECT = subjects.state_subject("c", DEPLOYMENTS.id, ObjectKey("ns", "a"))


def deployment(version: int) -> KubeObject:
    metadata = {"name": "a", "namespace": "ns", "uid": "uid-a", "resourceVersion": str(version)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"version": version}}


class Silent(MemoryBus):
    """A server that stores messages, and whose answers are lost."""

    silent = True

    async def send(self, message: OutgoingMessage, *, timeout: float = ACK_TIMEOUT) -> asyncio.Future[Ack]:
        stored = await super().send(message, timeout=timeout)
        if not self.silent:
            return stored
        lost: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
        lost.set_exception(BusUnavailableError("NATS did not acknowledge in time"))
        return lost

    async def version(self) -> str | None:
        last = await self.last_message(streams.STATE, SUBJECT)
        return last.headers["resourceVersion"] if last is not None else None


async def test_a_change_after_a_lost_acknowledgement_is_published_without_a_question_to_the_api_server() -> None:
    asked: list[ObjectKey] = []

    async def truth(_: Resource, key: ObjectKey) -> KubeObject | None:
        asked.append(key)
        return deployment(6)

    bus = Silent()
    publisher = StatePublisher(bus, "c", truth=truth)
    await publisher.load([DEPLOYMENTS])
    async with in_background(publisher.run()):
        publisher.put(DEPLOYMENTS, deployment(5))
        while await bus.version() != "5":
            await asyncio.sleep(0)
        publisher.put(DEPLOYMENTS, deployment(6))
        bus.silent = False
        await publisher.flushed(DEPLOYMENTS)
        assert (await bus.version(), asked) == ("6", [])
    await bus.close()
