"""What the publisher of STATE takes for a loss, and what it does not."""

from __future__ import annotations

import asyncio

import pytest
from dynamo_shared.api.resources import DEPLOYMENTS
from dynamo_shared.bus.memory import MemoryBus
from dynamo_shared.bus.protocol import StreamState
from dynamo_shared.bus.streams import StreamSpec
from dynamo_shared.state.publisher import StatePublisher, audit

OBJECT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a", "namespace": "ns", "uid": "uid-a", "resourceVersion": "5"},
}


class NewLeader(MemoryBus):
    """A stream whose leader was just elected: its first answers lack what it has not applied yet."""

    lacking = 0

    async def stream_state(self, spec: StreamSpec) -> StreamState:
        whole = await super().stream_state(spec)
        if not self.lacking:
            return whole
        self.lacking -= 1
        return whole._replace(messages=0, last_sequence=0)


@pytest.mark.parametrize(("answers", "lost"), [(2, False), (10, True)])
async def test_a_leader_gets_time_to_apply_what_was_acknowledged(
    answers: int, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "APPLIED_WITHIN", 0.0)
    bus = NewLeader()
    publisher = StatePublisher(bus, "c")
    running = asyncio.create_task(publisher.run())
    try:
        await publisher.load([DEPLOYMENTS])
        publisher.put(DEPLOYMENTS, OBJECT)
        async with asyncio.timeout(10):
            await publisher.flushed(DEPLOYMENTS)
        # One answer is asked for the stream's incarnation, one for what it holds.
        bus.lacking = answers
        await publisher.audit()
        assert publisher.lost.is_set() is lost
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await bus.close()
