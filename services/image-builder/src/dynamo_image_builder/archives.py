"""Asks the store or registry which archive a tag names now: runs fetch.py in threads, a few at a time.

No reconcile waits for an archive, which may take minutes: otherwise a few namespaces would occupy all workers.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple, TypeAlias

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_NIM_REQUESTS, ObjectKey, key_of
from dynamo_shared.runtime import Result, WorkQueue
from dynamo_shared.runtime.settings.image_builder import ImageBuilder
from dynamo_shared.state import ObjectCache

from dynamo_image_builder.builds import BentoTag
from dynamo_image_builder.fetch import Archive, ArchiveSource, FetchError, find, slow

#: Number of archives that are read at once, and of those of one namespace: its further archives wait.
MOST_READS, AT_ONCE = 32, 4


class ArchiveRead(NamedTuple):
    """One archive that is read for all requests of a namespace that name it."""

    namespace: str
    tag: BentoTag


_Asking: TypeAlias = dict[ObjectKey, tuple[str, int]]
"""Requests that wait for a read, with uid and generation."""


class Archives:
    """The archives of requests, each as of its first read. `ready` is called with a request whose archive was read."""

    def __init__(
        self,
        finder: "ArchiveFinder",
        queue: WorkQueue[ArchiveRead],
        cache: ObjectCache,
        ready: Callable[[ObjectKey], object],
    ) -> None:
        self._finder = finder
        self._queue = queue
        self._cache = cache
        self._ready = ready
        self._asking: dict[ArchiveRead, _Asking] = {}
        self._reading: dict[ArchiveRead, _Asking] = {}
        #: By uid of a request: its generation, and the result of the read.
        self._known: dict[str, tuple[int, Archive | FetchError]] = cache.memory()

    def of(self, request: KubeObject, tag: BentoTag) -> Archive | None:
        """The archive of a request; None until it is read. FetchError once if it is not available."""
        uid, generation = objects.uid(request), objects.generation(request)
        known = self._known.get(uid)
        if known is None or known[0] != generation:
            self._ask(ArchiveRead(objects.namespace(request), tag), key_of(request), (uid, generation))
            return None
        if isinstance(known[1], FetchError):
            self.forget(request)
            raise known[1]
        return known[1]

    def forget(self, request: KubeObject) -> None:
        """The next build of a request is of what its tag names then."""
        self._known.pop(objects.uid(request), None)

    async def run(self) -> None:
        """Read until cancelled."""
        await self._queue.run(MOST_READS, self.read, reserved=MOST_READS - AT_ONCE, finish_within=0.0)

    async def read(self, archive: ArchiveRead) -> Result:
        """Read one archive for all requests that wait for it."""
        asking = self._reading[archive] = self._asking.pop(archive, {})
        result: Archive | FetchError
        try:
            if not any(self._exists(key, uid) for key, (uid, _) in asking.items()):
                return Result()
            result = await self._finder.find(archive.tag)
        except FetchError as error:
            result = error
        except BaseException:
            self._asking[archive] = asking | self._asking.get(archive, {})
            raise
        finally:
            del self._reading[archive]
        for key, (uid, generation) in asking.items():
            if self._exists(key, uid):
                self._known[uid] = generation, result
                self._ready(key)
        return Result()

    def _ask(self, archive: ArchiveRead, key: ObjectKey, who: tuple[str, int]) -> None:
        if self._reading.get(archive, {}).get(key) != who:
            self._asking.setdefault(archive, {})[key] = who
            self._queue.add(archive)

    def _exists(self, key: ObjectKey, uid: str) -> bool:
        return self._cache.get_by_uid(DYNAMO_NIM_REQUESTS, key, uid) is not None


class ArchiveFinder:
    """The archives of the store that the settings name."""

    def __init__(self, settings: ImageBuilder) -> None:
        self._settings = settings

    async def find(self, tag: BentoTag) -> Archive:
        """The archive of a tag. FetchError if it is not available."""
        settings = self._settings
        source = ArchiveSource(
            settings.store.endpoint, tag.name, tag.version, settings.store.username, self._password()
        )
        return await _find_in_thread(source, settings.max_archive_size, settings.archive_timeout)

    def _password(self) -> str:
        """Read each time: Kubernetes replaces the file when the Secret changes."""
        file = self._settings.store.password_file
        try:
            return file.read_text().strip() if file is not None else ""
        except OSError as error:
            message = f"platform.imageBuilder.store.passwordFile cannot be read: {error.strerror}"
            raise FetchError("NoPassword", message) from error


async def _find_in_thread(source: ArchiveSource, limit: int, within: float) -> Archive:
    """Like `find`, in a thread: a process that ends does not wait for it, and others wait at most `within` seconds.

    A store may be silent for a long time, and a thread that waits for a host name or for response headers cannot be
    stopped.
    """
    result, stopped = Future[Archive](), threading.Event()
    result.set_running_or_notify_cancel()

    def read() -> None:
        try:
            result.set_result(find(source, limit, within, stopped.is_set))
        except Exception as error:
            result.set_exception(error)

    threading.Thread(target=read, name=f"archive {source.tag}", daemon=True).start()
    try:
        async with asyncio.timeout(within):
            return await asyncio.wrap_future(result)
    except TimeoutError as error:
        raise slow(source, within) from error
    finally:
        stopped.set()
