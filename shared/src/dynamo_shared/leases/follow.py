"""A read-only copy of a prefix in another owner's etcd: its content in memory, kept current by a watch.

`view.PrefixView` is for a few dozen keys of the platform, read again at each hint. Here there may be thousands of keys
with values of kilobytes: they are read in pages, changes come from the watch, and everything is read again when the
watch broke or was compacted, and periodically. A value above the limit is stored as empty.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from math import inf
from typing import Any

import structlog
from etcd3 import etcdrpc

from dynamo_shared.aio import Backoff
from dynamo_shared.leases.channel import Channel, EtcdOptions
from dynamo_shared.leases.client import end_of, watching
from dynamo_shared.leases.errors import EtcdError, EtcdUnavailableError

__all__ = ["EtcdOptions", "PrefixFollower"]

#: Everything is read again after this time even without an error. Seconds.
REREAD_EVERY = 60.0
#: Keys per request; fewer if values are so large that a page does not fit into a gRPC message (4 MiB).
PAGE = 256
#: The maximum number of keys. More are a mistake in the prefix, or of a writer.
MOST_KEYS = 50_000
#: The maximum size of a value that is kept, and of all values together, in bytes. Tenants may write what is followed.
LARGEST_VALUE = 256 * 1024
MOST_BYTES = 256 * 1024 * 1024
#: Pause before a broken watch is started again, in seconds, with jitter; doubled each time up to the second value.
RECONNECT_PAUSE = 0.5
LONGEST_PAUSE = 5.0

log = structlog.get_logger("dynamo.leases")


@dataclass(eq=False)
class PrefixFollower:
    """Follows a prefix. `run` must run; `listener` is called after each change with the changed keys."""

    options: EtcdOptions
    prefix: str
    listener: Callable[[Mapping[str, bytes | None]], None]
    _: KW_ONLY
    reread_every: float = REREAD_EVERY
    page: int = PAGE
    complete: bool = field(default=False, init=False)
    """Whether the content has been read; stays true while etcd is unavailable, with the last known content."""
    trouble: str = field(default="", init=False)
    """Why the content is not current, without secrets."""
    _content: dict[str, bytes] = field(default_factory=dict, init=False)
    _bytes: int = field(default=0, init=False)

    @property
    def content(self) -> Mapping[str, bytes]:
        """Keys and values of the last reading."""
        return self._content

    async def run(self) -> None:
        """Follow until cancelled."""
        channel = Channel(self.options)
        backoff, clock = Backoff(RECONNECT_PAUSE, LONGEST_PAUSE), asyncio.get_running_loop().time
        try:
            while True:
                watched_since = inf
                try:
                    revision, content = await self._read(channel)
                    self._replace(content)
                    watched_since = clock()
                    # From the revision after the reading, so that no change in between is missed.
                    await self._watch(channel, revision + 1)
                except EtcdError as error:
                    backoff.worked_for(clock() - watched_since)
                    self._troubled(str(error))
                    await asyncio.sleep(backoff.next())
        finally:
            await channel.close()

    async def _read(self, channel: Channel) -> tuple[int, dict[str, bytes]]:
        """Everything, at one revision."""
        start, end = self.prefix.encode(), end_of(self.prefix.encode())
        revision, limit, content, size = 0, self.page, dict[str, bytes](), 0
        while True:
            request = etcdrpc.RangeRequest(key=start, range_end=end, limit=limit, revision=revision)
            try:
                answer = await channel.call(etcdrpc.KVStub, "Range", request)
            except EtcdUnavailableError as error:
                if limit == 1 or _TOO_LARGE not in str(error):
                    raise
                limit = max(1, limit // 8)
                continue
            revision = revision or answer.header.revision
            content |= {_text(kv.key): _kept(kv.value) for kv in answer.kvs}
            size += sum(len(_kept(kv.value)) for kv in answer.kvs)
            self._refuse_more(len(content), size)
            if not answer.more:
                return revision, content
            start = answer.kvs[-1].key + b"\0"

    async def _watch(self, channel: Channel, start: int) -> None:
        """Apply changes until it is time to read again."""
        try:
            async with asyncio.timeout(self.reread_every), watching(channel, self.prefix, start) as answers:
                async for answer in answers:
                    self._take(answer.events)
        except TimeoutError:
            return

    def _replace(self, content: dict[str, bytes]) -> None:
        before, self._content = self._content, content
        self._bytes = sum(map(len, content.values()))
        differing: dict[str, bytes | None] = dict.fromkeys(before.keys() - content.keys())
        differing |= {key: value for key, value in content.items() if before.get(key) != value}
        news = bool(self.trouble) or not self.complete
        self.complete, self.trouble = True, ""
        if differing or news:
            self.listener(differing)

    def _take(self, events: Iterable[Any]) -> None:
        differing = {_text(event.kv.key): None if event.type == _DELETE else _kept(event.kv.value) for event in events}
        for key, value in differing.items():
            self._bytes += len(value or b"") - len(self._content.pop(key, b""))
            if value is not None:
                self._content[key] = value
        if differing:
            # First: the next reading reports only what differs from the content.
            self.listener(differing)
        self._refuse_more(len(self._content), self._bytes)

    def _refuse_more(self, keys: int, size: int) -> None:
        if keys > MOST_KEYS:
            raise EtcdError(f"more than {MOST_KEYS} keys have the prefix {self.prefix}")
        if size > MOST_BYTES:
            raise EtcdError(f"the keys with the prefix {self.prefix} have more than {MOST_BYTES} bytes")

    def _troubled(self, trouble: str) -> None:
        if trouble != self.trouble:
            log.warning("cannot watch etcd prefix", prefix=self.prefix, error=trouble)
            self.trouble = trouble
            self.listener({})


#: gRPC's error text for a page that exceeds the maximum message size.
_TOO_LARGE = "larger than max"
#: mvccpb.Event.EventType.DELETE
_DELETE = 1


def _text(key: bytes) -> str:
    return key.decode(errors="replace")


def _kept(value: bytes) -> bytes:
    return value if len(value) <= LARGEST_VALUE else b""
