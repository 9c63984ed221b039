"""Reads lists of one resource page by page, in pages that the API server delivers in time."""

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import nullcontext
from urllib.parse import urlencode

from dynamo_shared.aio import Gate
from dynamo_shared.api.resources import Resource
from dynamo_shared.kube import errors, watch_wire
from dynamo_shared.kube.client import PAGE_SIZE, KubeClient

# If a page does not arrive in time, the page size is halved, down to this: pages must not become smaller because a
# server answers nothing.
SLOW_PAGE_SIZE = 50
# If a page is too large, the next ones have this part of its size, until a list is complete.
LARGE_PAGE_PARTS = 8
# If a page arrives within this time, a sixth of its timeout, the next one has twice the size, up to the usual size.
QUICK_PAGE_SECONDS = 5.0


class ExpiredMidwayError(Exception):
    """The list expired on the server while it was being read."""


class ListPages:
    """The pages of one resource. What was learned about their size lasts for the next lists.

    `gate`: passed for each page of `all`, from the request until the next page is requested.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        namespace: str = "",
        *,
        selectors: Mapping[str, str],
        page_size: int = PAGE_SIZE,
        gate: Gate | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._selectors = selectors
        self._size = self._usual = self._largest = self._timely = page_size
        self._gate = gate
        self._clock = clock
        self._expired = 0
        """lists in a row that expired midway"""

    async def all(self) -> AsyncGenerator[watch_wire.ListPage, None]:
        """All pages of a list. ExpiredMidwayError after the first page; a third list then has a single page."""
        token = ""
        while True:
            async with self._gate.passed() if self._gate is not None else nullcontext():
                try:
                    page = await self.read(token, limit=0 if self._expired > 1 and not token else None)
                except errors.Expired as error:
                    if not token:
                        raise
                    self._expired += 1
                    raise ExpiredMidwayError from error
                token = page.metadata.continue_
                yield page
                # Release megabytes before the next page.
                del page
            if not token:
                break

    async def read(self, token: str = "", *, limit: int | None = None, accept: str = "") -> watch_wire.ListPage:
        """A page of `limit` objects (0: of all).

        By default of the usual size; smaller after a page that was too large, and after one that was too slow, until a
        list is complete and pages arrive quickly again.
        """
        while True:
            size = self._size if limit is None else limit
            query = query_of({**self._selectors, "limit": str(size) if size else "", "continue": token})
            asked_at = self._clock()
            try:
                path = f"{self._resource.path(self._namespace)}?{query}"
                page = watch_wire.decode_page(await self._client.raw_get(path, accept=accept))
            except errors.ResponseTooLarge:
                if size == 1:
                    raise
                limit = None
                if size:
                    self._size = self._largest = self._timely = max(1, self._size // LARGE_PAGE_PARTS)
                else:
                    # All objects do not fit into an answer, which says nothing about pages.
                    self._expired = 0
                continue
            except errors.Unavailable as error:
                if error.reason == "Timeout" and limit is None:
                    self._size = min(self._size, max(SLOW_PAGE_SIZE, self._size // 2))
                    # Until a list is complete: its first pages may be quick each time, and a later one too slow.
                    self._timely = self._size
                raise
            # The last page of a list may be quick because it is short, and metadata because they are small.
            quick = self._clock() - asked_at < QUICK_PAGE_SECONDS
            if limit is None and not accept and page.metadata.continue_ and quick:
                self._size = min(self._size * 2, self._timely)
            return page

    def complete(self) -> None:
        """All pages of a list were handled. The next list may have larger pages again: the large objects may be gone."""
        self._largest = min(self._usual, self._largest * LARGE_PAGE_PARTS)
        self._timely = self._largest
        self._expired = 0


def query_of(parameters: Mapping[str, str]) -> str:
    """The parameters of a URL that have a value."""
    return urlencode({name: value for name, value in parameters.items() if value})
