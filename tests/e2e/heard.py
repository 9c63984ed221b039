"""The platform's events, as an independent NATS client receives them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import nats
from dynamo_shared.bus import permissions
from dynamo_shared.runtime.settings import Settings
from dynamo_shared.wire import subjects


@dataclass(frozen=True)
class Event:
    """One CloudEvent: the last two parts of its type, its time, and its data."""

    name: str
    time: datetime
    data: dict[str, Any]


@dataclass
class Heard:
    """Events of a namespace in the order of their arrival, from the first one on."""

    events: list[Event] = field(default_factory=list)

    def of(self, name: str, after: int = 0, **data: Any) -> list[Event]:
        """Events such as `worker.joined` with this data, from position `after` on."""
        return [event for event in self.events[after:] if event.name == name and data.items() <= event.data.items()]


@asynccontextmanager
async def listening(platform: Settings, namespace: str) -> AsyncIterator[Heard]:
    """Collect events while the block runs, like an integration, with the login that the platform created."""
    server, user = platform.platform.nats, permissions.EVENT_READER
    login = {}
    if server.password_file is not None:
        password = server.password_file.with_name(user).read_text().strip()
        login = {"user": user, "password": password, "inbox_prefix": subjects.inbox_prefix(user)}
    connection = await nats.connect(server.servers[0], **login)
    heard = Heard()

    async def take(message: Any) -> None:
        event = json.loads(message.data)
        family, name, _version = event["type"].split(".")[-3:]
        heard.events.append(Event(f"{family}.{name}", datetime.fromisoformat(event["time"]), event["data"]))

    try:
        # The login may only read events of its own cluster.
        filter_ = subjects.event_filter(platform.platform.cluster_name, namespace=namespace)
        await connection.subscribe(filter_, cb=take)
        await connection.flush()
        yield heard
    finally:
        await connection.close()
