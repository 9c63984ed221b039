"""Records the holder of each partition, read from etcd ten times a second."""

import asyncio
import time
from collections import defaultdict

from dynamo_shared.leases.channel import EtcdOptions
from dynamo_shared.leases.client import EtcdClient
from dynamo_shared.leases.errors import EtcdError

from tests.stage.cluster import CLUSTER

from .audit import Held

EVERY = 0.1
_PREFIX = f"/dynamo-platform/{CLUSTER}/partitions/"


class ClaimLog:
    """Holders over time. A time in which etcd did not answer is a gap in `known`."""

    def __init__(self, options: EtcdOptions) -> None:
        self._options = options
        self._open: dict[tuple[str, int], tuple[str, float]] = {}
        self._known_since: float | None = None
        self._last = 0.0
        self._closed: dict[tuple[str, int], list[Held]] = defaultdict(list)
        self._known: list[Held] = []

    async def run(self) -> None:
        """Read until cancelled."""
        async with EtcdClient(self._options) as client:
            while True:
                try:
                    async with asyncio.timeout(1):
                        snapshot = await client.read(_PREFIX)
                except (EtcdError, TimeoutError, OSError):
                    self._gap()
                else:
                    self._take({name: kv.value.decode() for name, kv in snapshot.keys.items()})
                await asyncio.sleep(EVERY)

    def times(self) -> tuple[dict[tuple[str, int], list[Held]], list[Held]]:
        """Holders and times by service and partition, and the times for which they are known."""
        held = {key: list(entries) for key, entries in self._closed.items()}
        for key, (replica, since) in self._open.items():
            held.setdefault(key, []).append(Held(replica, since, self._last))
        known = [*self._known, *([Held("", self._known_since, self._last)] if self._known_since is not None else [])]
        return held, known

    def _take(self, values: dict[str, str]) -> None:
        now = time.time()
        results: dict[tuple[str, int], str] = {}
        for name, replica in values.items():
            service, _, partition = name.removeprefix(_PREFIX).partition("/")
            results[(service, int(partition))] = replica
        for key, (replica, since) in list(self._open.items()):
            if results.get(key) != replica:
                self._closed[key].append(Held(replica, since, now))
                del self._open[key]
        for key, replica in results.items():
            self._open.setdefault(key, (replica, now))
        if self._known_since is None:
            self._known_since = now
        self._last = now

    def _gap(self) -> None:
        for key, (replica, since) in self._open.items():
            self._closed[key].append(Held(replica, since, self._last))
        self._open.clear()
        if self._known_since is not None:
            self._known.append(Held("", self._known_since, self._last))
        self._known_since = None
