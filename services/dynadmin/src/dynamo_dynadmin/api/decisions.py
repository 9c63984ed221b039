"""The decisions about a graph's replicas, with reasons: from the EVENTS stream, as a list or as server-sent events."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog
from aiohttp import web
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.bus import Bus, streams
from dynamo_shared.bus.errors import BusError
from dynamo_shared.bus.protocol import CaughtUp, Item, Message, Start, Subscription, SubscriptionRestarted
from dynamo_shared.wire import subjects

from dynamo_dynadmin.api import decision
from dynamo_dynadmin.api.turns import CallerSlots
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.http.pulse import Pulse
from dynamo_dynadmin.http.streaming import Stream, StreamEnded, Streams
from dynamo_dynadmin.identity.access import ResourceAttributes
from dynamo_dynadmin.state.position import Position, incarnation_of

DEFAULT_LIMIT, MOST = 200, 2000
#: Decisions that a resumed stream can catch up on; a week of a busy graph.
_MISSED = 20_000
#: Histories that are read concurrently, at most one per caller; others wait.
_AT_ONCE = 8
#: Timeout for NATS to deliver a history, and for the turn before. Seconds.
_WITHIN = 15.0

log = structlog.get_logger("dynamo.dynadmin.decisions")


class DecisionReader:
    """Reads the events of graphs."""

    def __init__(self, bus: Bus, cluster: str, streams_: Streams) -> None:
        self._bus = bus
        self._cluster = cluster
        self._streams = streams_
        self._slots = CallerSlots("histories", _AT_ONCE)

    async def decisions(self, call: Call) -> web.StreamResponse:
        """The last decisions; with `watch`, as a stream that continues."""
        key = ObjectKey(call.namespace, call.name)
        graph = await call.kube.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        uid, limit = graph["metadata"]["uid"], call.number("limit", DEFAULT_LIMIT)
        if call.flag("watch"):
            act = ResourceAttributes("get", DYNAMO_GRAPH_DEPLOYMENTS, key.namespace, key.name)
            async with self._streams.opened(call, [act]) as stream:
                await self._follow(call, stream, key, uid, limit)
            return stream.response
        kept, total = await self.history(call, key, uid, limit)
        return call.answer({"items": kept, "truncated": total > len(kept)})

    async def history(self, call: Call, key: ObjectKey, uid: str, limit: int) -> tuple[list[dict[str, Any]], int]:
        """The last decisions, oldest first, and the total number. ProblemError if they cannot be read now."""
        kept: deque[dict[str, Any]] = deque(maxlen=limit)
        total, late = 0, "other histories are read first; retry later"
        try:
            async with asyncio.timeout(_WITHIN) as within, self._slots.taken(call.caller.limit_key):
                # The time of the turn does not count towards that of the answer.
                within.reschedule(asyncio.get_running_loop().time() + _WITHIN)
                late = "NATS does not answer"
                async with self._events(key) as events:
                    async for item in events:
                        if isinstance(item, CaughtUp):
                            break
                        if isinstance(item, Message) and (row := _row(item, uid)) is not None:
                            kept.append(row)
                            total += 1
        except (BusError, TimeoutError) as error:
            detail = f"the history cannot be read now: {str(error) or late}"
            raise ProblemError("unavailable", detail, retry_after=2) from error
        return list(kept), total

    async def _follow(self, call: Call, stream: Stream, key: ObjectKey, uid: str, limit: int) -> None:
        """Sends existing decisions (the last ones, or those after Last-Event-ID), `synced`, then each new decision."""
        last = call.request.headers.get("Last-Event-ID", "")
        after = Position.of(last) if last else None
        try:
            here = incarnation_of((await self._bus.stream_state(streams.EVENTS)).incarnation)
        except BusError as error:
            raise StreamEnded("error", f"the history cannot be read now: {error}") from error
        if last and (after is None or after.incarnation != here):
            raise StreamEnded(
                "resync", "the decisions since then are no longer available; stream without Last-Event-ID"
            )
        position = after.sequence if after is not None else 0
        first: deque[tuple[int, dict[str, Any]]] | None = deque(maxlen=limit if after is None else _MISSED)
        async with Pulse(self._items(key), stream) as pulse:
            async for item in pulse:
                if isinstance(item, SubscriptionRestarted) and not item.complete:
                    raise StreamEnded("resync", "the stream of events was lost; stream without Last-Event-ID")
                if isinstance(item, CaughtUp) and first is not None:
                    for sequence, row in first:
                        await stream.send("decision", row, str(Position(sequence, here)))
                    first = None
                    await stream.send("synced", {})
                if not isinstance(item, Message) or item.sequence <= position:
                    continue
                position = item.sequence
                if (row_ := _row(item, uid)) is None:
                    continue
                if first is not None:
                    first.append((item.sequence, row_))
                else:
                    await stream.send("decision", row_, str(Position(item.sequence, here)))

    async def _items(self, key: ObjectKey) -> AsyncGenerator[Item, None]:
        async with self._events(key) as events:
            async for item in events:
                yield item

    @asynccontextmanager
    async def _events(self, key: ObjectKey) -> AsyncIterator[Subscription]:
        filters = [
            subjects.event_filter(
                self._cluster, namespace=key.namespace, kind=decision.KIND, name=key.name, event=event
            )
            for event in decision.EVENTS
        ]
        subscription = await self._bus.subscribe(streams.EVENTS, filters, start=Start.ALL)
        try:
            yield subscription
        finally:
            await subscription.close()


def _row(message: Message, uid: str) -> dict[str, Any] | None:
    try:
        return decision.row(subjects.parse_event(message.subject).event, message.payload, uid)
    except (ValueError, TypeError, AttributeError) as error:
        log.warning("unreadable event", subject=message.subject, error=str(error))
        return None
