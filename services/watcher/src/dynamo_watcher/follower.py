"""Publishes one resource from the API server to STATE."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Container, Sequence
from contextlib import aclosing
from functools import partial
from typing import TypeAlias

from dynamo_shared.aio import Gate, either, endless
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.bus.tracing import is_traced
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.reflector import Absent, ObjectChange, Reflector, Synced
from dynamo_shared.state import messages
from dynamo_shared.state.publisher import StatePublisher
from dynamo_shared.state.versions import version_of
from opentelemetry import trace

from dynamo_watcher.metrics import WatcherMetrics
from dynamo_watcher.resources import Watched

ALL_NAMESPACES = ""

tracer = trace.get_tracer("dynamo.watcher")


Item: TypeAlias = ObjectChange | Synced | Absent
Source: TypeAlias = Callable[[Watched, str, Callable[[bool, str], None], bool], AsyncGenerator[Item, None]]
"""Changes of a resource in a namespace (empty: in all); it also reports whether the resource can be read: see `reflecting`.

The last argument says whether the resource is known to have been served."""


PAGES_AT_ONCE = 3
"""Pages of lists that are in memory at once: each takes megabytes, and all resources are listed at the start."""

PAGE_WAITS = 5.0
"""Seconds after which a page is requested all the same: the API server may leave some resources without an answer."""


def reflecting(kube: KubeClient) -> Source:
    """Changes from the API server."""
    gate = Gate(PAGES_AT_ONCE, PAGE_WAITS)

    def source(
        watched: Watched, namespace: str, on_health: Callable[[bool, str], None], served: bool
    ) -> AsyncGenerator[Item, None]:
        reflector = Reflector(
            kube,
            watched.resource,
            namespace=namespace,
            label_selector=watched.label_selector,
            field_selector=watched.field_selector,
            optional=watched.optional,
            served=served,
            compare=True,
            gate=gate,
            on_health=on_health,
        )
        return reflector.changes()

    return source


Lookup: TypeAlias = Callable[[Watched, ObjectKey], Awaitable[KubeObject | None]]
"""An object as the API server has it now, None where it is gone or not watched; KubeError."""


def lookup(kube: KubeClient) -> Lookup:
    """Single objects from the API server, read with a list: only objects that the right to list and the selectors
    allow.
    """

    async def lookup(watched: Watched, key: ObjectKey) -> KubeObject | None:
        fields = ",".join(filter(None, (f"metadata.name={key.name}", watched.field_selector)))
        objects = await kube.list(
            watched.resource, key.namespace, label_selector=watched.label_selector, field_selector=fields
        )
        return next((obj for obj in objects if watched.includes(obj)), None)

    return lookup


class _Listed:
    """The objects in the list of one namespace; for `others`, which have lists of their own, it has every object."""

    def __init__(self, keys: Container[ObjectKey], others: Container[str]) -> None:
        self._keys = keys
        self._others = others

    def __contains__(self, key: object) -> bool:
        return isinstance(key, ObjectKey) and (key.namespace in self._others or key in self._keys)


class Follower:
    """Publishes every change of one resource, in all namespaces or in some.

    `trouble` is called if a resource cannot be listed or watched, and with an empty message when it works again.
    """

    def __init__(
        self,
        watched: Watched,
        source: Source,
        publisher: StatePublisher,
        metrics: WatcherMetrics,
        *,
        namespaces: Sequence[str] = (),
        trouble: Callable[[str, str], None] = lambda _resource, _message: None,
    ) -> None:
        self.watched = watched
        self._source = source
        self._publisher = publisher
        self._metrics = metrics
        self._namespaces = tuple(namespaces) or (ALL_NAMESPACES,)
        self._trouble = trouble
        self._listed: set[str] = set()
        """namespaces whose list is in STATE"""
        self._served = True
        self.loaded = asyncio.Event()
        """to be set once the publisher knows what STATE has of the resource: nothing is followed before"""
        self.synced = asyncio.Event()
        """set once a complete list is in STATE"""

    async def run(self) -> None:
        """Follow until cancelled. Raises the error that ends it: after a silent end, STATE would become outdated."""
        await self.loaded.wait()
        await endless(either(*(self._follow(namespace) for namespace in self._namespaces)))

    async def _follow(self, namespace: str) -> None:
        # If an earlier watcher published objects, the cluster served the resource then.
        served = self._publisher.count(self.watched.resource) > 0
        async with aclosing(self._source(self.watched, namespace, partial(self._health, namespace), served)) as items:
            async for item in items:
                if isinstance(item, ObjectChange):
                    self._publish(item)
                    # If NATS is down or slow, wait: the API server keeps all objects.
                    await self._publisher.room()
                elif isinstance(item, Synced):
                    await self._complete(namespace, item.versions, item.resource_version)
                else:
                    await self._complete(namespace, (), "", served=False)

    def _publish(self, change: ObjectChange) -> None:
        self._metrics.change(self.watched.resource.id, change.kind.lower()).inc()
        if change.listed or not is_traced():
            # A listed object has not changed just now: begin no trace.
            self._hand_over(change)
            return
        with tracer.start_as_current_span(f"watch {self.watched.resource.kind}", attributes={"key": str(change.key)}):
            self._hand_over(change)

    def _hand_over(self, change: ObjectChange) -> None:
        resource = self.watched.resource
        # An object that has lost its label also counts as deleted; STATE ignores the deletion of an unknown object.
        if change.kind == "DELETED" or not self.watched.includes(change.obj):
            self._publisher.delete(resource, change.key, version_of(change.obj), received=change.received_at)
        else:
            kind = messages.ChangeType(change.kind.lower())
            self._publisher.put(resource, self.watched.trimmed(change.obj), kind, received=change.received_at)

    async def _complete(self, namespace: str, keys: Container[ObjectKey], version: str, *, served: bool = True) -> None:
        """A list is complete: objects that only STATE has are deleted. With all lists, readers may rely on STATE.

        One namespace may be without a list for long: if it is deleted, so are the rights in it. `keys` stays as it is
        until the next item is requested.
        """
        resource = self.watched.resource
        if not (served or self._served) and namespace in self._listed:
            return
        self._served = served
        if namespace not in self._listed:
            # Only once: the reflector reports later deletions.
            others = frozenset(self._namespaces) - {namespace}
            await self._publisher.sweep(resource, _Listed(keys, others))
            self._listed.add(namespace)
        if len(self._listed) < len(self._namespaces):
            return
        await self._publisher.mark_synced(resource, version, served=served)
        self._metrics.synced(resource.id, self._publisher.count(resource))
        self.synced.set()

    def _health(self, namespace: str, ok: bool, message: str) -> None:
        where = f"{self.watched.resource.id} in {namespace}" if namespace else self.watched.resource.id
        self._trouble(where, "" if ok else message)
