"""Asks the store or registry which archive a tag names now: runs fetch.py in threads, a few at a time."""

import asyncio
import threading
from concurrent.futures import Future
from weakref import WeakValueDictionary

from dynamo_shared.runtime.settings.image_builder import ImageBuilder

from dynamo_image_builder.builds import BentoTag
from dynamo_image_builder.fetch import Archive, ArchiveSource, FetchError, find, slow

#: Number of archives that are read at once for one namespace: its further archives wait, other namespaces do not.
AT_ONCE = 4


class Archives:
    """The archives of the store that the settings name."""

    def __init__(self, settings: ImageBuilder) -> None:
        self._settings = settings
        self._slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def find(self, tag: BentoTag, namespace: str) -> Archive:
        """The archive of a tag, for a request of a namespace. FetchError if it is not available."""
        settings = self._settings
        async with self._slots.setdefault(namespace, asyncio.Semaphore(AT_ONCE)):
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
