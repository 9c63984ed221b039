"""Messages that arrive at an awkward moment."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from dynamo_shared.bus.nats import pull
from nats.aio.msg import Msg

from tests.building.tasks import in_background
from tests.building.waiting import reached


class Session:
    """A session whose server delivers one message while more are requested."""

    def __init__(self) -> None:
        self.ended = SimpleNamespace(is_set=lambda: False)
        self.client: Any = SimpleNamespace(max_payload=1 << 20, new_inbox=lambda: "inbox", publish=self._publish)
        self.puller: pull.Puller | None = None

    async def _publish(self, _subject: str, _payload: bytes, reply: str) -> None:
        assert self.puller is not None
        self.puller._on_message(Msg(_client=self.client, subject=reply, data=b"news", headers=None))


class Congested(Session):
    """A session whose client has much to send: a publish must wait."""

    def __init__(self) -> None:
        super().__init__()
        self.publishing = asyncio.Event()
        self.interests: set[object] = set()
        self.client.listen = self._listen

    async def _listen(self, subject: str, _handler: object) -> Any:
        async def unsubscribe() -> None:
            self.interests.discard(subject)

        self.interests.add(subject)
        return SimpleNamespace(unsubscribe=unsubscribe)

    async def _publish(self, *_: Any, **__: Any) -> None:
        self.publishing.set()
        await asyncio.Event().wait()

    def on_end(self, listener: object) -> None:
        """Like a session."""
        self.interests.add(listener)

    def forget(self, listener: object) -> None:
        """Like a session."""
        self.interests.discard(listener)


async def test_a_read_that_is_cancelled_during_its_start_leaves_nothing() -> None:
    session: Any = Congested()
    async with in_background(pull.Puller(session, "STREAM", "consumer", 8).start()) as starting:
        await reached(session.publishing, starting)
        assert len(session.interests) == 2
    assert session.interests == set()


async def test_a_message_that_arrives_during_the_next_request_is_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Otherwise the reader would get it with the next heartbeat, which never comes here.
    monkeypatch.setattr(pull, "MISSED_HEARTBEATS", 0.001)
    session: Any = Session()
    session.puller = puller = pull.Puller(session, "STREAM", "consumer", 8)
    assert (await puller.take()).data == b"news"
