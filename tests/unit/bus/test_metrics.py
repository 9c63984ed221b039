"""Metrics of a process in which several services publish."""

import gc

from dynamo_shared.api.resources import DEPLOYMENTS
from dynamo_shared.bus import EventPublisher, streams
from dynamo_shared.state.publisher import StatePublisher
from dynamo_shared.wire.specifications.platform import PLATFORM, ResyncData
from prometheus_client import REGISTRY

from tests.building.memory_bus import MemoryBus
from tests.building.objects import object_of


def waiting(name: str) -> float:
    # Publishers of other tests, which have ended.
    gc.collect()
    return REGISTRY.get_sample_value(name) or 0.0


async def test_events_of_all_services_of_a_process_are_counted_together() -> None:
    """The metric was that of the last publisher."""
    before, bus = waiting("dynamo_events_waiting"), MemoryBus()
    publishers = [EventPublisher(bus, "c") for _ in range(2)]
    for count, publisher in enumerate(publishers, 1):
        for number in range(count):
            obj = {"metadata": {"name": "c", "uid": "c", "resourceVersion": str(number)}}
            publisher.publish(kind=PLATFORM, obj=obj, event="resync", data=ResyncData(reason="r", resources=[]))
    assert waiting("dynamo_events_waiting") - before == 3
    await bus.declare(*streams.ALL)
    assert all([await publisher.flush(5.0) for publisher in publishers])
    assert waiting("dynamo_events_waiting") == before


def test_objects_of_all_publishers_of_a_process_are_counted_together() -> None:
    before, bus = waiting("dynamo_state_waiting"), MemoryBus()
    publishers = [StatePublisher(bus, "c") for _ in range(2)]
    for publisher in publishers:
        publisher.put(DEPLOYMENTS, object_of(DEPLOYMENTS, "a", uid="u", resourceVersion="1"))
    assert waiting("dynamo_state_waiting") - before == 2
