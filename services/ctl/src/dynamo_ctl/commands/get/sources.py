"""Sources of `dynamoctl get`: a cluster with the rights of the kubeconfig, or the REST API."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol, TypeAlias

from dynamo_shared.aio import ended
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.kube import KubeClient, NotFound, NotServed
from dynamo_shared.kube.reflector import ObjectChange, Reflector

from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.remote import COLLECTIONS, Remote, RequestRefused, path_of

RESOURCES = {"dgd": DYNAMO_GRAPH_DEPLOYMENTS, "dcd": DYNAMO_COMPONENT_DEPLOYMENTS}
#: Largest number of changes that wait to be printed: a slow terminal then delays the reader instead of filling memory.
WAITING = 1000


class ObjectEvent(NamedTuple):
    """A change of an object of the resource called `kind`."""

    kind: str
    obj: KubeObject
    deleted: bool


Changes: TypeAlias = asyncio.Queue[ObjectEvent | Exception]


class ObjectSource(Protocol):
    """Reads objects of a kind (a key of RESOURCES). An empty namespace stands for all namespaces."""

    @property
    def namespace(self) -> str:
        """The namespace if the query names none."""

    async def read(self, kind: str, namespace: str, name: str | None) -> list[KubeObject]:
        """Objects, at least the object of `name` if given. Raises CtlError if the kind is not served."""

    def changes(self, kinds: Sequence[str], namespace: str) -> AsyncIterator[ObjectEvent]:
        """Existing objects, then each change, until cancelled."""


class OfCluster:
    """A cluster."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    @property
    def namespace(self) -> str:
        """The namespace of the context."""
        return self._client.namespace

    async def read(self, kind: str, namespace: str, name: str | None) -> list[KubeObject]:
        """All objects, or the object of `name`. Raises CtlError if the kind is not served."""
        resource = RESOURCES[kind]
        try:
            if name and namespace:
                return [await self._client.get(resource, ObjectKey(namespace, name))]
            return await self._client.list(resource, namespace)
        except NotFound:
            return []
        except NotServed as error:
            raise CtlError(
                f"the cluster does not serve {resource.kind}; run dynamoctl up, or dynamoctl crds --install",
                ExitCode.FAILED,
            ) from error

    def changes(self, kinds: Sequence[str], namespace: str) -> AsyncIterator[ObjectEvent]:
        """Existing objects, then each change, until cancelled."""
        return _merged(partial(self._follow, kind, namespace) for kind in kinds)

    async def _follow(self, kind: str, namespace: str, changes: Changes) -> None:
        resource = RESOURCES[kind]
        reflector: Reflector | None = None

        def health(ok: bool, message: str) -> None:
            # Before the first contact the user waits and can fix the cause; a later failure may pass by itself.
            if not ok and (reflector is None or not reflector.last_contact) and not changes.full():
                changes.put_nowait(CtlError(f"cannot watch {resource.id}: {message}", ExitCode.UNREACHABLE))

        reflector = Reflector(self._client, resource, namespace=namespace, on_health=health)
        async for item in reflector.changes():
            if isinstance(item, ObjectChange):
                await changes.put(ObjectEvent(kind, item.obj, item.kind == "DELETED"))


class OfApi:
    """The REST API. "All namespaces" are the namespaces in which the caller may list graphs."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    @property
    def namespace(self) -> str:
        """The namespace of the kubeconfig's context."""
        return self._remote.namespace

    async def read(self, kind: str, namespace: str, name: str | None) -> list[KubeObject]:
        """All objects, or the object of `name`."""
        if name and namespace:
            try:
                return [await self._remote.request("GET", path_of(namespace, COLLECTIONS[kind], name))]
            except RequestRefused as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
                return []
        namespaces = await self._namespaces(namespace)
        return [obj for each in namespaces async for obj in self._pages(kind, each)]

    async def changes(self, kinds: Sequence[str], namespace: str) -> AsyncIterator[ObjectEvent]:
        """Existing objects, then each change, until cancelled. For all namespaces: those that exist at the start."""
        if not (namespaces := await self._namespaces(namespace)):
            raise CtlError("you may list graphs in no namespace: request a role, or name a namespace with -n")
        followers = [partial(self._follow, kind, each) for kind in kinds for each in namespaces]
        async with aclosing(_merged(followers)) as events:
            async for event in events:
                yield event

    async def _namespaces(self, namespace: str) -> list[str]:
        if namespace:
            return [namespace]
        return [each["name"] for each in (await self._remote.listed("/namespaces", "name"))["items"]]

    async def _pages(self, kind: str, namespace: str) -> AsyncIterator[KubeObject]:
        token = ""
        while True:
            page = await self._remote.listed(path_of(namespace, COLLECTIONS[kind], **{"continue": token}), "metadata")
            for obj in page["items"]:
                yield obj
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return

    async def _follow(self, kind: str, namespace: str, changes: Changes) -> None:
        async with aclosing(self._remote.follow(path_of(namespace, COLLECTIONS[kind], watch="true"))) as events:
            async for event in events:
                if event.name in ("ADDED", "MODIFIED", "DELETED"):
                    await changes.put(ObjectEvent(kind, event.data, event.name == "DELETED"))


async def _merged(
    followers: Iterable[Callable[[Changes], Coroutine[Any, Any, None]]],
) -> AsyncGenerator[ObjectEvent]:
    """Yields all that the followers put into their queue, until cancelled. Raises an error from the queue or a
    follower.
    """
    queue: Changes = asyncio.Queue(WAITING)

    async def reported(follow: Callable[[Changes], Coroutine[Any, Any, None]]) -> None:
        try:
            await follow(queue)
        except Exception as error:
            await queue.put(error)

    tasks = [asyncio.create_task(reported(follow)) for follow in followers]
    try:
        while True:
            item = await queue.get()
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        await ended(*tasks)
