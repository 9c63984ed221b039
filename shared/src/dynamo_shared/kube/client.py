"""The Kubernetes client of a process: one method a verb, plain dicts in and out.

Refuses to know types: which fields an object has is `dynamo_shared.api`'s business. Every write carries a field
manager, so that the API server knows the owner of each field.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import PODS, SERVICES, ObjectKey, Resource, key_of
from dynamo_shared.kube import config
from dynamo_shared.kube.depth import bounded
from dynamo_shared.kube.errors import Expired, NotFound, ResponseTooLarge, Unavailable
from dynamo_shared.kube.impersonation import Identity
from dynamo_shared.kube.transport import (
    USER_AGENT,
    Outgoing,
    RequestObserver,
    RetryObserver,
    Transport,
    WarningObserver,
)

#: `list` is a method here.
KubeObjects: TypeAlias = list[KubeObject]
Propagation = Literal["Background", "Foreground", "Orphan"]

#: Objects of a list that are asked for at once.
PAGE_SIZE = 500

_AS_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
# Both are JSON, which is YAML; the server accepts no JSON-named content type for apply.
APPLY = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_encode = msgspec.json.Encoder().encode
_decode = bounded(msgspec.json.Decoder(dict[str, Any]).decode)


class KubeClient:
    """One API server, one connection pool, one field manager. Safe for any number of tasks of one loop.

    Every method raises KubeError. Reads, applies and deletes with a uid are retried on connection failures, 429 and 503
    within the time-out (seconds, of the whole call); what must not arrive twice is not.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        field_manager: str,
        namespace: str = "default",
        owner: bool = True,
        outgoing: partial[Outgoing] = partial(Outgoing),  # noqa: B008 - never changed
    ) -> None:
        """`outgoing` holds what all requests of this client have in common."""
        self._transport = transport
        self._owner = owner
        self.namespace = namespace
        self.field_manager = field_manager
        self._manager = f"fieldManager={quote(field_manager, safe='')}"
        # The audit log distinguishes the services of one process by the agent.
        self._outgoing = partial(outgoing, agent=f"{USER_AGENT} ({field_manager})")

    @classmethod
    async def open(
        cls,
        *,
        kubeconfig: Path | None = None,
        context: str | None = None,
        field_manager: str = "dynamo",
        timeout: float = 30,
        observer: RequestObserver | None = None,
        on_retry: RetryObserver | None = None,
    ) -> Self:
        """A client for a kubeconfig's context; by default $KUBECONFIG, ~/.kube/config, or the pod's service account.

        Does not talk to the server yet (an exec plugin may be run). Raises ConfigError with what to do.
        """
        connection = await config.load(kubeconfig, context)
        transport = Transport(connection, timeout=timeout, observer=observer, on_retry=on_retry)
        return cls(transport, field_manager=field_manager, namespace=connection.namespace)

    def acting_as(self, field_manager: str) -> Self:
        """The same connections under another field manager; closing it closes nothing."""
        return self._another(field_manager, self._outgoing)

    def guarded(self, may_write: Callable[[], bool]) -> Self:
        """The same client, whose writes are refused (NotHeld) before they are sent whenever `may_write` says no."""
        return self._another(self.field_manager, partial(self._outgoing, may_write=may_write))

    def for_identity(
        self, identity: Identity, *, request: str, field_manager: str, warned: WarningObserver | None = None
    ) -> Self:
        """The same connections, acting with the rights of a user: every request impersonates it.

        RBAC and audit of the API server see the user, and this process behind it. A client acts for one user and never
        changes, so that requests of different users cannot mix. `request` becomes the id of the audit events; `warned`
        hears the server's warnings.
        """
        if not identity.user:
            # Without the header the request would be made with the rights of this process.
            raise ValueError("an identity has a user name")
        if "headers" in self._outgoing.keywords:
            raise TypeError("a client that acts for a user acts for no other")
        headers = (*identity.headers(), ("Audit-ID", request))
        return self._another(field_manager, partial(self._outgoing, headers=headers, warned=warned))

    def _another(self, field_manager: str, outgoing: partial[Outgoing]) -> Self:
        return type(self)(
            self._transport, field_manager=field_manager, namespace=self.namespace, owner=False, outgoing=outgoing
        )

    async def close(self) -> None:
        """Close the connections, where this client opened them."""
        if self._owner:
            await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def server(self) -> str:
        """URL of the API server."""
        return self._transport.server

    async def get(self, resource: Resource, key: ObjectKey, *, most: int | None = None) -> KubeObject:
        """The object as it is now (a consistent read). ResponseTooLarge where it has more than `most` bytes as JSON.

        Read, it takes up to twenty times as many.
        """
        path = resource.path(key.namespace, key.name)
        return _object(await self._request("GET", path, retry=True, most=most))

    async def get_metadata(self, resource: Resource, key: ObjectKey) -> KubeObject:
        """The metadata of the object as it is now: the server sends nothing else of it, however large the object is."""
        obj = await self.read(resource.path(key.namespace, key.name), accept=_METADATA_ONLY)
        metadata: KubeObject = obj["metadata"]
        return metadata

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> KubeObjects:
        """All objects of a namespace, or of all namespaces. Items carry apiVersion and kind, as `get` returns them.

        Pages become smaller where they are too large to hold; where the server forgets the list midway, it starts again.
        """
        items: KubeObjects = []
        restarted = False
        token, limit = "", PAGE_SIZE
        while True:
            try:
                page = await self.list_page(
                    resource,
                    namespace,
                    label_selector=label_selector,
                    field_selector=field_selector,
                    limit=limit,
                    continue_=token,
                )
            except Expired:
                if not token or restarted:
                    raise
                # Unpaged: a list that took longer than the server's memory would do so again.
                items, token, limit, restarted = [], "", 0, True
                continue
            except ResponseTooLarge:
                if limit == 1:
                    raise
                limit = max(1, (limit or PAGE_SIZE) // 8)
                continue
            items += page_items(page, resource)
            token = page["metadata"].get("continue") or ""
            if not token:
                return items

    async def list_page(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE_SIZE,
        continue_: str = "",
    ) -> KubeObject:
        """One page of a list, as the server sends it; `limit=0` asks for all. Expired where the token is too old.

        Unavailable where the answer is not a list: a gateway's Status with the code of success is not an empty one.
        """
        parameters = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": str(limit) if limit else "",
            "continue": continue_,
        }
        query = urlencode({name: value for name, value in parameters.items() if value})
        page = _object(await self._request("GET", resource.path(namespace), query, retry=True))
        if not (page.get("metadata") or {}).get("resourceVersion"):
            raise Unavailable(0, "Garbled", "the answer is not a list: it has no resourceVersion")
        return page

    async def list_names(self, resource: Resource, *, limit: int) -> tuple[Sequence[str], bool]:
        """Names of a cluster's objects, at most so many, and whether there are more: the server sends nothing else of them.

        Not as PartialObjectMetadata, which has all annotations.
        """
        query = f"includeObject=None&limit={limit}"
        table = await self.read(f"{resource.path()}?{query}", accept=_AS_TABLE)
        columns = [each["name"] for each in table.get("columnDefinitions") or ()]
        if "Name" not in columns:
            raise Unavailable(0, "Garbled", "the answer is not a table: it has no column of names")
        place = columns.index("Name")
        names = [row["cells"][place] for row in table.get("rows") or ()]
        return names, bool((table.get("metadata") or {}).get("continue"))

    async def create(
        self, resource: Resource, obj: KubeObject, *, dry_run: bool = False, strict: bool = True
    ) -> KubeObject:
        """Create; AlreadyExists where the name is taken. `metadata.generateName` works. Never retried.

        Unless it is `strict`, fields that the definition lacks are dropped.
        """
        namespace = obj["metadata"].get("namespace", "")
        query = self._query(dry_run=dry_run, strict=strict)
        return _object(await self._request("POST", resource.path(namespace), query, body=_encode(obj)))

    async def apply(
        self, resource: Resource, obj: KubeObject, *, force: bool = True, dry_run: bool = False
    ) -> KubeObject:
        """Server-side apply: we own the object's fields; fields that we applied before and are gone are removed.

        A `metadata.resourceVersion` or `metadata.uid` in `obj` is a precondition (Conflict).
        Without `force` a field that another manager owns raises Conflict, whose `causes` name the fields.
        """
        key = key_of(obj)
        return await self._apply(resource.path(key.namespace, key.name), obj, force=force, dry_run=dry_run)

    async def apply_status(self, resource: Resource, obj: KubeObject) -> KubeObject:
        """Server-side apply of the status subresource. NotFound where the object is gone: a status creates nothing.

        A `metadata.resourceVersion` in `obj` is a precondition (Conflict). A `metadata.uid` is one for built-in types
        only: for custom resources the API server ignores it here, unlike in `apply`.
        """
        key = key_of(obj)
        return await self._apply(resource.path(key.namespace, key.name, "status"), obj, force=True, dry_run=False)

    async def try_status(self, resource: Resource, obj: KubeObject) -> KubeObject:
        """The object as a merge of this status would leave it, without fields that its definition lacks; nothing is written.

        A `metadata.resourceVersion` is a precondition (Conflict).
        """
        key = key_of(obj)
        path, query = resource.path(key.namespace, key.name, "status"), self._query(dry_run=True, strict=False)
        content = await self._request("PATCH", path, query, body=_encode(obj), content_type=MERGE_PATCH, retry=True)
        return _object(content)

    async def merge_patch(
        self,
        resource: Resource,
        key: ObjectKey,
        patch: KubeObject,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> KubeObject:
        """JSON merge patch (None removes a field, lists are replaced); `metadata.resourceVersion` is a precondition."""
        path = resource.path(key.namespace, key.name, subresource)
        query = self._query(dry_run=dry_run)
        return _object(await self._request("PATCH", path, query, body=_encode(patch), content_type=MERGE_PATCH))

    async def json_patch(
        self, resource: Resource, key: ObjectKey, operations: Sequence[KubeObject], *, dry_run: bool = False
    ) -> KubeObject:
        """JSON patch (RFC 6902): one change of items of lists. Invalid where a `test` among the operations fails."""
        path = resource.path(key.namespace, key.name)
        query = self._query(dry_run=dry_run)
        return _object(await self._request("PATCH", path, query, body=_encode(operations), content_type=JSON_PATCH))

    async def replace(
        self, resource: Resource, obj: KubeObject, *, subresource: str = "", dry_run: bool = False
    ) -> KubeObject:
        """Update the whole object; its `metadata.resourceVersion` is the precondition (Conflict)."""
        key = key_of(obj)
        path = resource.path(key.namespace, key.name, subresource)
        query = self._query(dry_run=dry_run)
        return _object(await self._request("PUT", path, query, body=_encode(obj)))

    async def delete(
        self,
        resource: Resource,
        key: ObjectKey,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation = "Background",
        grace: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete; NotFound where it is gone already, Conflict where another object has the name or it has changed.

        `grace` is how many seconds a pod may take to end; with 0 it is gone at once, whatever its node makes of it.
        With a uid the call may be repeated, and a repetition that finds the object gone is success.
        """
        preconditions = {name: value for name, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if preconditions:
            options["preconditions"] = preconditions
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if dry_run:
            options["dryRun"] = ["All"]
        path = resource.path(key.namespace, key.name)
        body = _encode(options)
        try:
            await self._request("DELETE", path, body=body, retry=uid is not None)
        except NotFound as error:
            if error.attempts == 1:
                raise

    async def raw_get(self, path: str, *, accept: str = "", most: int | None = None) -> bytes:
        """Any path of the server (`/version`, `/openapi/v3`, discovery); it may hold a query. `most` as in `get`."""
        path, _, query = path.partition("?")
        return await self._request("GET", path, query, retry=True, accept=accept, most=most)

    async def read(self, path: str, *, accept: str = "") -> KubeObject:
        """The JSON object at any path, as `raw_get`. Unavailable where it is not one: a gateway has answered."""
        return _object(await self.raw_get(path, accept=accept))

    def stream(
        self, resource: Resource, namespace: str, query: str, *, silence: float
    ) -> AbstractAsyncContextManager[aiohttp.StreamReader]:
        """The raw bytes of a watch; see Transport.stream."""
        watch = self._outgoing(method="GET", path=resource.path(namespace), query=query, prompt=True)
        return self._transport.stream(watch, silence=silence)

    def stream_log(
        self, pod: ObjectKey, query: str, *, silence: float
    ) -> AbstractAsyncContextManager[aiohttp.StreamReader]:
        """The raw bytes of a pod's log; `query` is that of the API server (container, follow, sinceTime, ...)."""
        path = PODS.path(pod.namespace, pod.name, "log")
        log = self._outgoing(method="GET", path=path, query=query, small_buffers=True)
        return self._transport.stream(log, silence=silence)

    def service_proxy(
        self, service: ObjectKey, port: int, path: str, *, body: bytes | None = None, silence: float
    ) -> AbstractAsyncContextManager[aiohttp.StreamReader]:
        """What a Service's HTTP server answers, through the API server: GET, or POST of a JSON body.

        Needs `get`, or `create`, of `services/proxy`. `path` begins with `/`.
        """
        proxied = f"{SERVICES.path(service.namespace)}/{quote(f'{service.name}:{port}', safe=':')}/proxy{path}"
        method = "GET" if body is None else "POST"
        outgoing = self._outgoing(method=method, path=proxied, body=body, small_buffers=True)
        return self._transport.stream(outgoing, silence=silence)

    async def _request(self, method: str, path: str, query: str = "", **options: Any) -> bytes:
        return await self._transport.request(self._outgoing(method=method, path=path, query=query, **options))

    async def _apply(self, path: str, obj: KubeObject, *, force: bool, dry_run: bool) -> KubeObject:
        query = f"{self._manager}&force={'true' if force else 'false'}"
        if dry_run:
            query += "&dryRun=All"
        content = await self._request("PATCH", path, query, body=_encode(obj), content_type=APPLY, retry=True)
        return _object(content)

    def _query(self, *, dry_run: bool, strict: bool = True) -> str:
        """Where `strict`, unknown fields are refused, as by apply: dropped in silence, they would be "drift" that never ends."""
        query = f"{self._manager}&fieldValidation={'Strict' if strict else 'Ignore'}"
        return f"{query}&dryRun=All" if dry_run else query


def page_items(page: KubeObject, resource: Resource) -> list[KubeObject]:
    """The objects of a list page, each with apiVersion and kind (built-in lists leave them out of their items)."""
    api_version, kind = resource.api_version, resource.kind
    items: list[KubeObject] = page.get("items") or []
    for item in items:
        item["apiVersion"] = api_version
        item["kind"] = kind
    return items


async def get_if_present(kube: KubeClient, resource: Resource, key: ObjectKey) -> KubeObject | None:
    """The object as it is now; None where there is none. Raises KubeError for all else."""
    try:
        return await kube.get(resource, key)
    except NotFound:
        return None


def _object(content: bytes) -> KubeObject:
    try:
        return _decode(content)
    except msgspec.DecodeError as error:
        raise Unavailable(0, "Garbled", f"the answer is not a JSON object: {error}") from error
