"""Messages that come at an awkward moment."""

from types import SimpleNamespace
from typing import Any

import pytest
from dynamo_shared.bus.nats import pull
from nats.aio.msg import Msg


class Session:
    """A session whose server delivers one message while it is asked for more."""

    def __init__(self) -> None:
        self.ended = SimpleNamespace(is_set=lambda: False)
        self.client: Any = SimpleNamespace(max_payload=1 << 20, new_inbox=lambda: "inbox", publish=self._publish)
        self.puller: pull.Puller | None = None

    async def _publish(self, _subject: str, _payload: bytes, reply: str) -> None:
        assert self.puller is not None
        self.puller._on_message(Msg(_client=self.client, subject=reply, data=b"news", headers=None))


async def test_a_message_that_comes_while_more_is_asked_for_is_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without another message the reader would learn of it by the next sign of life, which does not come here.
    monkeypatch.setattr(pull, "MISSED_HEARTBEATS", 0.001)
    session: Any = Session()
    session.puller = puller = pull.Puller(session, "STREAM", "consumer", 8)
    assert (await puller.take()).data == b"news"
