"""Concurrent requests for the same result share one execution."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class Joined(Generic[K, T]):
    """Work by key: the first caller does it, and callers that come meanwhile get the same result or error.

    An error is shared, too: if each of many callers retried work that runs into a time-out, the last would wait for all
    of them.
    """

    def __init__(self) -> None:
        self._doing: dict[K, asyncio.Future[T]] = {}

    async def result(self, key: K, work: Callable[[], Awaitable[T]]) -> T:
        """The work's result, or its error. If the caller that does it is cancelled, the next waiting caller does it."""
        while (doing := self._doing.get(key)) is not None:
            try:
                return await asyncio.shield(doing)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not doing.cancelled() or (task is not None and task.cancelling()):
                    raise
        doing = self._doing[key] = asyncio.get_running_loop().create_future()
        try:
            result = await work()
        except asyncio.CancelledError:
            doing.cancel()
            raise
        except BaseException as error:
            doing.set_exception(error)
            # The caller that did the work raises the error; this avoids asyncio's warning if no other caller waits.
            doing.exception()
            raise
        else:
            doing.set_result(result)
            return result
        finally:
            del self._doing[key]
