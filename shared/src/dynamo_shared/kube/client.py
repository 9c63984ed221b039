"""The Kubernetes client of a process: one method for each verb, plain dicts in and out.

Does not know types: `dynamo_shared.api` defines the fields of objects. Every write has a field manager, so that the API
server knows the owner of each field.
"""

from collections.abc import Callable, Mapping, Sequence
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
from dynamo_shared.kube.credentials import Identity
from dynamo_shared.kube.depth import bounded
from dynamo_shared.kube.errors import AlreadyExists, Expired, NotFound, ResponseTooLarge, Unavailable
from dynamo_shared.kube.transport import (
    USER_AGENT,
    Outgoing,
    RequestObserver,
    RetryObserver,
    Transport,
    WarningObserver,
)

#: An alias, because `list` is a method of the client.
KubeObjects: TypeAlias = list[KubeObject]
Propagation = Literal["Background", "Foreground", "Orphan"]

#: Objects in one page of a list.
PAGE_SIZE = 500
# Pods of a Job that are read, and their bytes: a Job has one, or a few after retries.
_FIRST_PODS, _PODS_BYTES = 8, 2 << 20

_AS_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
# Both content types send JSON, which is valid YAML: for apply, the server accepts no content type with JSON in its name.
APPLY = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_encode = msgspec.json.Encoder().encode
_decode = bounded(msgspec.json.Decoder(dict[str, Any]).decode)


class KubeClient:
    """One API server, one connection pool, one field manager. Safe for any number of tasks of one loop.

    Every method raises KubeError. Reads, applies, and deletes with a uid are retried on connection failures, 429 and
    503 within the time-out (seconds, for the whole call). Requests that must not arrive twice are not retried.
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
        """`outgoing`: the common properties of all requests of this client."""
        self._transport = transport
        self._owner = owner
        self.namespace = namespace
        self.field_manager = field_manager
        self._manager = f"fieldManager={quote(field_manager, safe='')}"
        # The audit log distinguishes the services of a process by the user agent.
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
        """A client for a context of a kubeconfig; by default $KUBECONFIG, ~/.kube/config, or the pod's service account.

        Does not contact the server yet (but may run an exec plugin). Raises ConfigError, which says what to do.
        """
        connection = await config.load(kubeconfig, context)
        transport = Transport(connection, timeout=timeout, observer=observer, on_retry=on_retry)
        return cls(transport, field_manager=field_manager, namespace=connection.namespace)

    def acting_as(self, field_manager: str) -> Self:
        """A client with the same connections and another field manager. Closing it closes nothing."""
        return self._another(field_manager, self._outgoing)

    def guarded(self, may_write: Callable[[], bool]) -> Self:
        """A client whose writes are refused (NotHeld) before they are sent if `may_write` returns False."""
        return self._another(self.field_manager, partial(self._outgoing, may_write=may_write))

    def for_identity(
        self, identity: Identity, *, request: str, field_manager: str, warned: WarningObserver | None = None
    ) -> Self:
        """A client with the same connections that acts with the rights of a user: every request impersonates the user.

        RBAC and the audit log show the user, and this process as the impersonator. A client acts for one user and never
        changes, so that requests of different users cannot mix. `request` becomes the id of the audit events; `warned`
        receives the server's warnings.
        """
        if not identity.user:
            # Without the header, the request would have the rights of this process.
            raise ValueError("identity has no user name")
        if "headers" in self._outgoing.keywords:
            raise TypeError("this client already acts for a user")
        headers = (*identity.headers(), ("Audit-ID", request))
        return self._another(field_manager, partial(self._outgoing, headers=headers, warned=warned))

    def _another(self, field_manager: str, outgoing: partial[Outgoing]) -> Self:
        return type(self)(
            self._transport, field_manager=field_manager, namespace=self.namespace, owner=False, outgoing=outgoing
        )

    async def close(self) -> None:
        """Close the connections if this client opened them."""
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
        """The current object (a consistent read). Raises ResponseTooLarge if it has more than `most` bytes as JSON.

        The decoded object takes up to twenty times as many bytes.
        """
        path = resource.path(key.namespace, key.name)
        return _object(await self._request("GET", path, retry=True, most=most))

    async def get_metadata(self, resource: Resource, key: ObjectKey) -> KubeObject:
        """The current metadata of the object. The server sends nothing else, however large the object is."""
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
        most: int | None = None,
    ) -> KubeObjects:
        """All objects of a namespace, or of all namespaces. Items have apiVersion and kind, like the result of `get`.

        Pages become smaller if they are too large. If the server forgets the list midway, it starts again. Raises
        ResponseTooLarge if all pages have more than `most` bytes: users write any number of objects of any size.
        """
        items: KubeObjects = []
        restarted, left = False, most
        token, limit = "", PAGE_SIZE
        path, selectors = resource.path(namespace), {"labelSelector": label_selector, "fieldSelector": field_selector}
        while True:
            try:
                content = await self._page(path, {**selectors, "limit": limit, "continue": token}, left)
            except Expired:
                if not token or restarted:
                    raise
                # Without pages: a list that took longer than the server remembers it would expire again.
                items, token, limit, restarted, left = [], "", 0, True, most
                continue
            except ResponseTooLarge:
                if limit == 1 or left is not None:
                    raise
                limit = max(1, (limit or PAGE_SIZE) // 8)
                continue
            left = None if left is None else left - len(content)
            page = _list_of(content)
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
        most: int | None = None,
    ) -> KubeObject:
        """One page of a list, as sent by the server; `limit=0` requests all. Raises Expired if the token is too old.

        Raises Unavailable if the answer is not a list: a gateway's Status with a success code is not an empty list.
        `most` as in `get`.
        """
        path, selectors = resource.path(namespace), {"labelSelector": label_selector, "fieldSelector": field_selector}
        return _list_of(await self._page(path, {**selectors, "limit": limit, "continue": continue_}, most))

    async def _page(self, path: str, parameters: Mapping[str, str | int], most: int | None) -> bytes:
        query = urlencode({name: value for name, value in parameters.items() if value})
        return await self._request("GET", path, query, retry=True, most=most)

    async def list_names(self, resource: Resource, *, limit: int) -> tuple[Sequence[str], bool]:
        """At most `limit` names of a cluster's objects, and whether there are more. The server sends nothing else.

        Does not request PartialObjectMetadata, which includes all annotations.
        """
        query = f"includeObject=None&limit={limit}"
        table = await self.read(f"{resource.path()}?{query}", accept=_AS_TABLE)
        columns = [each["name"] for each in table.get("columnDefinitions") or ()]
        if "Name" not in columns:
            raise Unavailable(0, "Garbled", "the response is not a Table: it has no column Name")
        place = columns.index("Name")
        names = [row["cells"][place] for row in table.get("rows") or ()]
        return names, bool((table.get("metadata") or {}).get("continue"))

    async def create(
        self, resource: Resource, obj: KubeObject, *, dry_run: bool = False, strict: bool = True
    ) -> KubeObject:
        """Create; raises AlreadyExists if the name is in use. `metadata.generateName` works. Never retried.

        If `strict` is False, fields that the definition lacks are dropped.
        """
        namespace = obj["metadata"].get("namespace", "")
        query = self._query(dry_run=dry_run, strict=strict)
        return _object(await self._request("POST", resource.path(namespace), query, body=_encode(obj)))

    async def apply(
        self, resource: Resource, obj: KubeObject, *, force: bool = True, dry_run: bool = False
    ) -> KubeObject:
        """Server-side apply: this manager owns the object's fields. Fields of its earlier applies that are missing are
        removed.

        A `metadata.resourceVersion` or `metadata.uid` in `obj` is a precondition (Conflict).
        Without `force`, a field that another manager owns raises Conflict, whose `causes` name the fields.
        """
        key = key_of(obj)
        return await self._apply(resource.path(key.namespace, key.name), obj, force=force, dry_run=dry_run)

    async def apply_status(self, resource: Resource, obj: KubeObject) -> KubeObject:
        """Server-side apply of the status subresource. Raises NotFound if the object does not exist: never creates it.

        A `metadata.resourceVersion` in `obj` is a precondition (Conflict). A `metadata.uid` is a precondition only for
        built-in types: for custom resources the API server ignores it here, unlike in `apply`.
        """
        key = key_of(obj)
        return await self._apply(resource.path(key.namespace, key.name, "status"), obj, force=True, dry_run=False)

    async def try_status(self, resource: Resource, obj: KubeObject) -> KubeObject:
        """The object after a merge of this status, without fields that its definition lacks. A dry run: writes nothing.

        A `metadata.resourceVersion` is a precondition (Conflict).
        """
        key = key_of(obj)
        path, query = resource.path(key.namespace, key.name, "status"), self._query(dry_run=True, strict=False)
        content = await self._request("PATCH", path, query, body=_encode(obj), content_type=MERGE_PATCH, retry=True)
        return _object(content)

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: KubeObject, *, subresource: str = "", dry_run: bool = False
    ) -> KubeObject:
        """JSON merge patch (None removes a field, lists are replaced); `metadata.resourceVersion` is a precondition."""
        path = resource.path(key.namespace, key.name, subresource)
        query = self._query(dry_run=dry_run)
        return _object(await self._request("PATCH", path, query, body=_encode(patch), content_type=MERGE_PATCH))

    async def json_patch(
        self, resource: Resource, key: ObjectKey, operations: Sequence[KubeObject], *, dry_run: bool = False
    ) -> KubeObject:
        """JSON patch (RFC 6902), for changes to list items. Raises Invalid if a `test` operation fails."""
        path = resource.path(key.namespace, key.name)
        query = self._query(dry_run=dry_run)
        return _object(await self._request("PATCH", path, query, body=_encode(operations), content_type=JSON_PATCH))

    async def replace(
        self, resource: Resource, obj: KubeObject, *, subresource: str = "", dry_run: bool = False
    ) -> KubeObject:
        """Replace the whole object; its `metadata.resourceVersion` is the precondition (Conflict)."""
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
        """Delete. Raises NotFound if the object does not exist, Conflict if another object has the name or it has
        changed.

        `grace`: seconds for a pod to end; 0 deletes it at once, whatever its node does. With a uid the call may be
        repeated, and a repetition succeeds if the object no longer exists.
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
        """GET any path of the server (`/version`, `/openapi/v3`, discovery), with an optional query. `most` as in `get`."""
        path, _, query = path.partition("?")
        return await self._request("GET", path, query, retry=True, accept=accept, most=most)

    async def read(self, path: str, *, accept: str = "") -> KubeObject:
        """The JSON object at any path, like `raw_get`. Raises Unavailable if it is not JSON: a gateway has answered."""
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
        """The raw bytes of a pod's log. `query`: parameters of the API server (container, follow, sinceTime, ...)."""
        path = PODS.path(pod.namespace, pod.name, "log")
        log = self._outgoing(method="GET", path=path, query=query, small_buffers=True)
        return self._transport.stream(log, silence=silence)

    def service_proxy(
        self, service: ObjectKey, port: int, path: str, *, body: bytes | None = None, silence: float
    ) -> AbstractAsyncContextManager[aiohttp.StreamReader]:
        """The answer of a Service's HTTP server through the API server: GET, or POST of a JSON body.

        Needs the right `get` or `create` on `services/proxy`. `path` begins with `/`.
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
        """If `strict`, the server refuses unknown fields, as in an apply: fields dropped silently would be permanent "drift"."""
        query = f"{self._manager}&fieldValidation={'Strict' if strict else 'Ignore'}"
        return f"{query}&dryRun=All" if dry_run else query


def _list_of(content: bytes) -> KubeObject:
    page = _object(content)
    if not (page.get("metadata") or {}).get("resourceVersion"):
        raise Unavailable(0, "Garbled", "the response is not a list: it has no resourceVersion")
    return page


def page_items(page: KubeObject, resource: Resource) -> list[KubeObject]:
    """The objects of a list page, each with apiVersion and kind (which items of built-in lists omit)."""
    api_version, kind = resource.api_version, resource.kind
    items: list[KubeObject] = page.get("items") or []
    for item in items:
        item["apiVersion"] = api_version
        item["kind"] = kind
    return items


async def get_if_present(kube: KubeClient, resource: Resource, key: ObjectKey) -> KubeObject | None:
    """The current object, or None if it does not exist. Raises KubeError for all other errors."""
    try:
        return await kube.get(resource, key)
    except NotFound:
        return None


async def first_pods(kube: KubeClient, namespace: str, label_selector: str) -> KubeObjects:
    """The pods of a Job, at most eight, and none if these are large: every user may give its labels to any pods."""
    try:
        page = await kube.list_page(PODS, namespace, label_selector=label_selector, limit=_FIRST_PODS, most=_PODS_BYTES)
    except ResponseTooLarge:
        return []
    return page_items(page, PODS)


async def create_or_get(kube: KubeClient, resource: Resource, desired: KubeObject, **options: bool) -> KubeObject:
    """The created object, or the unchanged one that already has its name; `options` as for `create`."""
    try:
        return await kube.create(resource, desired, **options)
    except AlreadyExists:
        return await kube.get(resource, key_of(desired))


def _object(content: bytes) -> KubeObject:
    try:
        return _decode(content)
    except msgspec.DecodeError as error:
        raise Unavailable(0, "Garbled", f"the response is not a JSON object: {error}") from error
