"""The room of a replica: places, memory and turns. A client that wants much of it delays and refuses only itself.

Every pod of the cluster may reach the port, and so may many pods of one tenant. A client is an address; the API server
is one of them.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from dynamo_shared.aio import Lanes, Offload, Shares
from prometheus_client import Gauge

#: The API server converts all objects of a list, or of a page of it, with one request. Bytes.
MAX_CONVERSION = 64 << 20
#: Larger bodies are checked and converted in threads, and the number of these threads: a body may have thousands of
#: errors, and other requests and probes must be answered meanwhile. A graph of 25 components has 21 KB and takes 5 ms,
#: its update has twice that and takes 6 ms. Bytes.
LARGE_BODY, LARGE_AT_ONCE = 16 << 10, 2
#: Large bodies of one namespace that wait or are worked on, as one client sends them: a body that is decoded takes twenty
#: times as many bytes.
LARGE_OF_ONE = 8
#: Large bodies that are held from the beginning of their arrival to the answer, of one client and of all. Bytes.
LARGE_OF_CLIENT, LARGE_OF_ALL = 2 * MAX_CONVERSION, 4 * MAX_CONVERSION

T = TypeVar("T")
Run = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Returns the result of one step of the work on a body."""


class Busy(Exception):
    """Too much is in progress; the message says of whom."""


@dataclass(eq=False, slots=True)
class _Body:
    client: str
    size: int
    held: asyncio.Timeout


class Room:
    """Counts what is in progress, by client. `in_flight` shows the number of requests."""

    def __init__(self, in_flight: Gauge) -> None:
        self._gauge = in_flight
        self._in_flight = Shares()
        self._bodies: set[_Body] = set()
        self._quick = Lanes(1)
        self._threads = Offload(above=0, at_once=LARGE_AT_ONCE)
        self._namespaces = Lanes(sys.maxsize)
        self._clients = Lanes(LARGE_AT_ONCE, of_one=LARGE_AT_ONCE)

    def check(self, client: str, most: int) -> None:
        """Raises Busy if `most` requests are in progress, and this client has its share of them."""
        if self._in_flight.is_full(client, most):
            raise Busy(f"{self._in_flight.total} requests are in progress; retry later")

    @contextmanager
    def place(self, client: str, most: int) -> Iterator[None]:
        """A request of this client is in progress while the block runs. Raises Busy, like `check`."""
        self.check(client, most)
        with self._in_flight.taken(client), self._gauge.track_inprogress():
            yield

    @asynccontextmanager
    async def large_body(self, client: str, size: int) -> AsyncIterator[None]:
        """Memory for a body, while the block runs. Raises Busy if there is none.

        If all bodies together are too large, the client with the most bytes loses its largest body: Busy in its block.
        """
        self._make_room(client, size)
        body = _Body(client, size, asyncio.timeout(None))
        try:
            async with body.held:
                self._bodies.add(body)
                yield
        except TimeoutError:
            if body.held.expired():
                raise Busy("large requests of other clients need the memory; retry later") from None
            raise
        finally:
            self._bodies.discard(body)

    def _make_room(self, client: str, size: int) -> None:
        held: Counter[str] = Counter()
        for body in self._bodies:
            held[body.client] += body.size
        needed, refusal = held[client] + size, Busy("large requests of too many bytes are in progress; retry later")
        if needed > LARGE_OF_CLIENT:
            raise refusal
        while held.total() + size > LARGE_OF_ALL:
            most = max(held, key=held.__getitem__, default=client)
            if held[most] <= needed:
                raise refusal
            lost = max((each for each in self._bodies if each.client == most), key=lambda each: each.size)
            self._bodies.remove(lost)
            lost.held.reschedule(0)
            held[most] -= lost.size

    @asynccontextmanager
    async def turn(self, client: str, size: int, namespace: Callable[[], str]) -> AsyncIterator[Run]:
        """A turn at the work on a body. Raises Busy if too many large ones about this namespace wait.

        Each step of the work on a small body waits for a turn of its own, because it stops all others for some
        milliseconds. A large body has one turn, and its steps run in threads. Clients take turns, and of each client,
        namespaces at large bodies: a tenant's objects delay only those of the same tenant.
        """
        if size <= LARGE_BODY:
            yield partial(self._run_at_once, client)
            return
        lane = client, namespace()
        if self._namespaces.count(lane) >= LARGE_OF_ONE:
            whose = f"namespace {lane[1]}" if lane[1] else "all namespaces"
            raise Busy(f"{LARGE_OF_ONE} large requests about {whose} are in progress; retry later")
        async with self._namespaces.turn(lane), self._clients.turn(client):
            yield partial(self._threads.run, size)

    async def _run_at_once(self, client: str, work: Callable[[], T]) -> T:
        async with self._quick.quick_turn(client):
            return work()
