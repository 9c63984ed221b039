"""Reads the schemas that the API server publishes for its own types, and keeps a checker with the current ones.

The index of /openapi/v3 has a hash of each document. Only changed documents (after an upgrade of the cluster) are read
again. The platform has no copy as a fallback: it would refuse fields of a newer cluster, and accept fields that an
older cluster does not know.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
import structlog

from dynamo_shared.api.embedded import BadDocument, Checker, trimmed, types_of_kinds
from dynamo_shared.kube import errors
from dynamo_shared.kube.client import KubeClient

log = structlog.get_logger("dynamo.kube")

INDEX: Final = "/openapi/v3"
#: Documents with the types that this platform's kinds embed. The first one, for pods, is indispensable.
DOCUMENTS: Final = ("api/v1", "apis/batch/v1", "apis/autoscaling/v2")
# The largest document, for the core group, has 1.5 MB in Kubernetes 1.35.
MAX_BYTES: Final = 16 * 2**20


class _OpenApiPath(msgspec.Struct):
    server_relative_url: str = msgspec.field(name="serverRelativeURL", default="")


class _OpenApiIndex(msgspec.Struct):
    paths: dict[str, _OpenApiPath] = {}


Versions = dict[str, str]
"""Path of a published document -> its hash."""


async def index(client: KubeClient) -> Versions:
    """All current documents and their hashes. Raises KubeError."""
    content = await client.raw_get(INDEX, most=MAX_BYTES)
    try:
        paths = msgspec.json.decode(content, type=_OpenApiIndex).paths
    except msgspec.DecodeError as error:
        raise errors.Unavailable(0, "Garbled", f"{INDEX} is not an index of OpenAPI documents: {error}") from error
    return {path: each.server_relative_url for path, each in paths.items()}


async def document(client: KubeClient, path: str) -> bytes:
    """A document of the index. Raises KubeError."""
    # Without the hash of the index's URL: an outdated hash would cause a redirection.
    return await client.raw_get(f"{INDEX}/{path}", most=MAX_BYTES)


async def published(client: KubeClient) -> Versions:
    """The published documents of DOCUMENTS, and their hashes. Raises KubeError."""
    everything = await index(client)
    versions: Versions = {path: everything[path] for path in DOCUMENTS if path in everything}
    if DOCUMENTS[0] not in versions:
        # While an API server starts, it adds documents to its index one by one.
        raise errors.Unavailable(0, "NotPublished", f"{INDEX} does not list {DOCUMENTS[0]} yet")
    return versions


async def schemas(client: KubeClient, versions: Versions) -> list[dict[str, Any]]:
    """The published documents, reduced to the types that this platform's kinds embed, without descriptions.

    They have tens of kilobytes instead of megabytes. Raises KubeError.
    """
    types, documents = types_of_kinds(), []
    for path in versions:
        content = await document(client, path)
        try:
            documents.append(trimmed(content, types))
        except BadDocument as error:
            raise errors.Unavailable(0, "Garbled", f"{INDEX}/{path}: {error}") from error
    return documents


class SchemaSource:
    """A checker of embedded types that follows the cluster. Used by one task; the checkers may be shared."""

    def __init__(
        self, client: KubeClient, *, interval: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`interval`: seconds between requests to the API server."""
        self._client = client
        self._interval = interval
        self._clock = clock
        self._versions: Versions = {}
        self._checker: Checker | None = None
        self._asked = 0.0

    async def checker(self) -> Checker:
        """The checker for the currently published schemas; the same object if nothing changed.

        If the API server does not answer: the last checker. Raises KubeError if there is none yet.
        """
        if self._checker is not None and self._clock() - self._asked < self._interval:
            return self._checker
        try:
            return await self._current()
        except errors.KubeError as error:
            if self._checker is None:
                raise
            log.warning("cannot read the API server's schemas; the previous ones stay in use", error=str(error))
            return self._checker

    async def _current(self) -> Checker:
        self._asked = self._clock()
        versions = await published(self._client)
        if self._checker is None or versions != self._versions:
            self._checker = Checker.from_documents(*await schemas(self._client, versions))
            self._versions = versions
        return self._checker
