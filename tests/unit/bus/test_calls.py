"""Requests that a session ends while they still end by themselves."""

import asyncio

import pytest
from dynamo_shared.bus.nats.client import NatsClient
from dynamo_shared.bus.nats.session import NatsSession

from tests.building.waiting import reached


class SlowToEnd:
    """A request that has more to do when it is aborted, as one that holds a lock or closes a subscription."""

    def __init__(self) -> None:
        self.begun, self.ending, self.may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ending.set()
            await self.may_end.wait()


async def test_a_request_that_was_refused_and_still_ends_does_not_hide_the_end_of_its_session() -> None:
    """Aborting it again raised RuntimeError: the listeners after it were not notified of the end of the session."""
    session, request, notified = NatsSession(NatsClient(tls=False)), SlowToEnd(), asyncio.Event()
    calling = asyncio.create_task(session.call(request))
    await reached(request.begun, calling)
    session.on_end(notified.set)
    session._on_error('Permissions Violation for Publish to "one"')
    await reached(request.ending, calling)
    session._on_error('Permissions Violation for Publish to "another"')
    session.end()
    assert notified.is_set()
    request.may_end.set()
    with pytest.raises(TimeoutError):
        await calling
