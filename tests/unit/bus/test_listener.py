"""Subscriptions persist, whatever error the library raises while it subscribes."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_shared.bus.nats.listener import LastingSubscription, NatsListener
from dynamo_shared.bus.nats.options import NatsOptions

from tests.building.waiting import until


class Connection:
    """A client whose subscriptions fail `fails` times, like nats-py's when its transport has just closed."""

    def __init__(self, fails: int) -> None:
        self.fails = fails
        self.subjects: list[str] = []

    async def subscribe(self, subject: str, **_: Any) -> Any:
        if self.fails:
            self.fails -= 1
            raise AttributeError("'NoneType' object has no attribute 'writelines'")
        self.subjects.append(subject)
        return SimpleNamespace(_conn=self)


def listening(connection: Connection) -> tuple[NatsListener, list[Any]]:
    """A listener with this connection, once it exists, and its sessions."""
    listener, sessions = NatsListener(NatsOptions()), list[Any]()

    async def wait_session() -> Any:
        while not sessions:
            await asyncio.sleep(0)
        return sessions[-1]

    keeper = cast("Any", listener._keeper)
    keeper.start, keeper.wait_session, keeper.session = (lambda: None), wait_session, (lambda: sessions[-1])
    return listener, sessions


async def test_messages_arrive_again_after_a_connection_that_failed_during_a_subscription() -> None:
    connection = Connection(fails=1)
    listener, sessions = listening(connection)
    listener._subscriptions[LastingSubscription(listener, "a", lambda _subject, _payload: None)] = None
    async with listener:
        sessions.append(SimpleNamespace(client=connection, ended=asyncio.Event()))
        await until(lambda: connection.subjects == ["a"])


async def test_a_failed_subscription_is_not_kept() -> None:
    connection = Connection(fails=1)
    listener, sessions = listening(connection)
    sessions.append(SimpleNamespace(client=connection, ended=asyncio.Event()))
    with pytest.raises(AttributeError):
        await listener.listen("a", lambda _subject, _payload: None)
    assert not listener._subscriptions
