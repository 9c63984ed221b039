"""Reads all last messages of some resources from STATE, once."""

from collections.abc import AsyncIterator, Iterable

from dynamo_shared.api.resources import Resource
from dynamo_shared.bus import streams
from dynamo_shared.bus.protocol import Bus, CaughtUp, Message, Start, SubscriptionRestarted
from dynamo_shared.wire import subjects


async def last_messages(
    bus: Bus, cluster: str, resources: Iterable[Resource], *, headers_only: bool = False
) -> AsyncIterator[Message | None]:
    """The last message of every subject of some resources; None if the reading starts again from the beginning."""
    filters = [subjects.state_filter(cluster, each) for each in sorted({resource.id for resource in resources})]
    subscription = await bus.subscribe(streams.STATE, filters, start=Start.LAST_PER_SUBJECT, headers_only=headers_only)
    try:
        async for item in subscription:
            if isinstance(item, Message):
                yield item
            elif isinstance(item, SubscriptionRestarted):
                yield None
            elif isinstance(item, CaughtUp):
                return
    finally:
        await subscription.close()
