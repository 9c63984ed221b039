"""Archives of requests: read in the background, by turns of namespaces, once for requests of the same tag."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from dynamo_image_builder.archives import AT_ONCE, MOST_READS, ArchiveRead, Archives
from dynamo_image_builder.builds import BentoTag
from dynamo_image_builder.fetch import Archive, FetchError
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_NIM_REQUESTS, ObjectKey, key_of
from dynamo_shared.runtime import WorkQueue
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.state.cache import ObjectCache

from tests.building.waiting import turns

from .building import ARCHIVE, request


class Finder:
    """A store that answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, asyncio.Future[Archive]] = {}

    async def find(self, tag: BentoTag) -> Archive:
        self.asked.append(tag.name)
        self.answers[tag.name] = asyncio.get_running_loop().create_future()
        return await self.answers[tag.name]


class Reads:
    """Archives with the test's own store."""

    def __init__(self) -> None:
        self.finder, self.cache, self.ready = Finder(), ObjectCache(), list[ObjectKey]()
        queue: WorkQueue[ArchiveRead] = WorkQueue(metrics=Metrics().queue("archives"), lane=lambda read: read.namespace)
        self.archives = Archives(self.finder, queue, self.cache, self.ready.append)  # type: ignore[arg-type]

    def ask(self, name: str, namespace: str = "ns", tag: str = "") -> KubeObject:
        made = request(name)
        made["metadata"]["namespace"] = namespace
        self.cache.put(DYNAMO_NIM_REQUESTS, made)
        assert self.archives.of(made, BentoTag(tag or name, "1")) is None
        return made


@pytest.fixture
async def reads() -> AsyncIterator[Reads]:
    made = Reads()
    running = asyncio.create_task(made.archives.run())
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_archives_of_one_namespace_do_not_block_those_of_another(reads: Reads) -> None:
    """A large archive may take five minutes, and the requests that waited for it occupied all workers."""
    for number in range(MOST_READS):
        reads.ask(f"a{number}", "busy")
    reads.ask("other", "quiet")
    await turns()
    assert sorted(reads.finder.asked) == sorted([*(f"a{number}" for number in range(AT_ONCE)), "other"])


async def test_requests_of_a_namespace_for_one_tag_share_a_read(reads: Reads) -> None:
    """A thousand requests for one tag downloaded its archive a thousand times."""
    made = [reads.ask(f"r{number}", tag="shared") for number in range(3)]
    await turns()
    assert reads.finder.asked == ["shared"]
    late = reads.ask("late", tag="shared")
    reads.archives.of(made[0], BentoTag("shared", "1"))
    reads.finder.answers["shared"].set_result(Archive(ARCHIVE, 1))
    await turns()
    # A request that came during a read gets what the tag names now.
    assert reads.finder.asked == ["shared", "shared"]
    assert reads.ready == list(map(key_of, made))
    reads.finder.answers["shared"].set_result(Archive(ARCHIVE, 2))
    await turns()
    assert reads.archives.of(late, BentoTag("shared", "1")) == Archive(ARCHIVE, 2)


async def test_an_error_is_reported_once_and_then_the_store_is_asked_again(reads: Reads) -> None:
    made = reads.ask("a")
    await turns()
    reads.finder.answers["a"].set_exception(FetchError("ArchiveNotFound", "no archive"))
    await turns()
    assert reads.ready == [key_of(made)]
    with pytest.raises(FetchError):
        reads.archives.of(made, BentoTag("a", "1"))
    assert reads.archives.of(made, BentoTag("a", "1")) is None
    await turns()
    assert reads.finder.asked == ["a", "a"]


async def test_an_unexpected_error_loses_no_request(reads: Reads) -> None:
    made = reads.ask("a")
    await turns()
    reads.finder.answers["a"].set_exception(RuntimeError("a bug"))
    while len(reads.finder.asked) < 2:
        await turns()
    reads.finder.answers["a"].set_result(Archive(ARCHIVE, 1))
    await turns()
    assert reads.archives.of(made, BentoTag("a", "1")) == Archive(ARCHIVE, 1)


async def test_nothing_is_read_for_requests_that_are_gone(reads: Reads) -> None:
    gone = reads.ask("gone")
    reads.cache.remove(DYNAMO_NIM_REQUESTS, key_of(gone), "gone")
    await turns()
    assert (reads.finder.asked, reads.ready) == ([], [])
