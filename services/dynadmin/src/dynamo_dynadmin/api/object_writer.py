"""Single objects, with the caller's rights: read, create, replace, patch, delete.

Changes name the version that they apply to. A creation may have an Idempotency-Key: its hash is stored on the object,
so a repeated request is answered with the same object, and the service stays stateless.

A body may be in any version of its kind that the platform serves: it is written and answered in that version.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from dynamo_shared.api.crds.build import definition_of
from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.objects import KubeObject, without_managed_fields
from dynamo_shared.api.registry.annotations import IDEMPOTENCY
from dynamo_shared.api.resources import ObjectKey, Resource, key_of
from dynamo_shared.api.validation.check import validate
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.kube import AlreadyExists, Conflict, Invalid

from dynamo_dynadmin.api.collection_reader import CollectionReader
from dynamo_dynadmin.api.kinds import Kind
from dynamo_dynadmin.api.ownership import manager_of, merged, patch_to_commit
from dynamo_dynadmin.deploy.draft import parts_of
from dynamo_dynadmin.deploy.problems import FieldProblem, pointer
from dynamo_dynadmin.http.call import Call, etag
from dynamo_dynadmin.http.problems import ProblemError, invalid

_STALE = "the object has changed since you read it; read the object again, and repeat the change"
#: The API server's message if an operation of a JSON patch fails (apimachinery, NewGenericServerResponse of a 422).
_PATCH_REFUSED = "the server rejected our request due to an error in our request"
_NOT_APPLICABLE = (
    "an operation cannot be applied to the object: a path does not exist, or the value of a `test` differs"
)
#: For a generated name of a request with a key: the API server's own have 58 characters plus five.
_LONGEST_BEGINNING, _SUFFIX = 53, 10
#: Attempts to change an object of any version, if others write it between reading and writing.
_ATTEMPTS = 8


class ObjectWriter:
    """Reads and writes single objects."""

    def __init__(self, reading: CollectionReader) -> None:
        self._reading = reading

    async def read(self, call: Call, kind: Kind) -> web.StreamResponse:
        """The current object, or with `watch`, a stream of it."""
        if call.flag("watch"):
            return await self._reading.stream_of(call, kind, call.name)
        obj = await call.kube.get(kind.resource, ObjectKey(call.namespace, call.name))
        if call.has(obj):
            return web.Response(status=304, headers={"ETag": etag(obj)})
        owner = manager_of(obj)
        return call.answer_object(obj, headers={"X-Managed-By": _header(owner)} if owner else None)

    async def create(self, call: Call, kind: Kind) -> web.StreamResponse:
        """Create the object in the body."""
        sent = await call.object()
        obj = await call.apart(lambda: self._checked(call, kind, sent, new=True))
        return await self.created(call, kind, obj, sent, dry_run=call.flag("dryRun"))

    async def created(
        self, call: Call, kind: Kind, obj: KubeObject, sent: Any, *, dry_run: bool = False
    ) -> web.StreamResponse:
        """Create an object; `sent`: the caller's input, which identifies a repeated request."""
        stored_object, is_new = await self.ensure(call, kind, obj, sent, dry_run=dry_run)
        headers = {"Location": location(kind, stored_object)}
        if not is_new:
            return call.answer_object(stored_object, 200, {**headers, "Idempotency-Replayed": "true"})
        return call.answer_object(stored_object, 200 if dry_run else 201, headers)

    async def ensure(
        self, call: Call, kind: Kind, obj: KubeObject, sent: Any, *, dry_run: bool = False
    ) -> tuple[KubeObject, bool]:
        """The object, and whether it was created now. AlreadyExists if another object has the name."""
        resource = _served(kind, obj.get("apiVersion")) or kind.resource
        mark = mark_of(call, kind, sent)
        if mark:
            obj = _marked(obj, mark)
        try:
            return await call.kube.create(resource, obj, dry_run=dry_run), True
        except AlreadyExists:
            if not mark:
                raise
            stored_object = await call.kube.get(resource, key_of(obj))
            stored = (stored_object["metadata"].get("annotations") or {}).get(IDEMPOTENCY, "")
            if stored == mark:
                return stored_object, False
            if stored.partition(".")[0] == mark.partition(".")[0]:
                text = "this Idempotency-Key was used with another body; use a new key"
                raise ProblemError("key-reused", text) from None
            raise

    async def replace(self, call: Call, kind: Kind) -> web.StreamResponse:
        """Replace the existing object."""
        versions = call.if_match()
        obj = self._checked(call, kind, await call.object(), name=call.name)
        return await of_any_version(versions, lambda: self._replace(call, kind, versions, obj))

    async def _replace(self, call: Call, kind: Kind, versions: tuple[str, ...], obj: KubeObject) -> web.StreamResponse:
        resource = _served(kind, obj["apiVersion"]) or kind.resource
        current = await self._current(call, resource, versions)
        refuse_managed(current, obj)
        metadata = {**obj["metadata"], "resourceVersion": current["metadata"]["resourceVersion"]}
        try:
            written = await call.kube.replace(resource, {**obj, "metadata": metadata}, dry_run=call.flag("dryRun"))
        except Conflict as error:
            raise ProblemError("stale", _STALE) from error
        return call.answer_object(written)

    async def patch(self, call: Call, kind: Kind) -> web.StreamResponse:
        """Change an object with a merge patch or a JSON patch."""
        versions, sent = call.if_match(), await call.body()
        return await of_any_version(versions, lambda: self._patch(call, kind, versions, sent))

    async def _patch(self, call: Call, kind: Kind, versions: tuple[str, ...], sent: Any) -> web.StreamResponse:
        resource = _served(kind, sent.get("apiVersion") if isinstance(sent, dict) else None) or kind.resource
        current = await self._current(call, resource, versions)
        key, dry_run = ObjectKey(call.namespace, call.name), call.flag("dryRun")
        version = current["metadata"]["resourceVersion"]
        try:
            if call.request.content_type == "application/json-patch+json":
                operations = _operations(sent)
                if owner := manager_of(current):
                    raise _managed(owner, None)
                test = {"op": "test", "path": "/metadata/resourceVersion", "value": version}
                written = await call.kube.json_patch(resource, key, [test, *operations], dry_run=dry_run)
            else:
                if not isinstance(sent, dict):
                    raise ProblemError(
                        "invalid", "a merge patch must be an object", errors=[FieldProblem("", "must be an object")]
                    )
                metadata = sent.get("metadata")
                if metadata is not None and not isinstance(metadata, dict):
                    raise invalid([FieldProblem("/metadata", "must be an object")])
                refuse_managed(current, merged(without_managed_fields(current), sent))
                patch = {**sent, "metadata": {**(metadata or {}), "resourceVersion": version}}
                written = await call.kube.merge_patch(resource, key, patch, dry_run=dry_run)
        except Conflict as error:
            raise ProblemError("stale", _STALE) from error
        except Invalid as error:
            if _PATCH_REFUSED not in error.message:
                raise
            # The error does not name the operation. The version test fails if the object has changed.
            current = await self._current(call, resource, ())
            if current["metadata"]["resourceVersion"] != version:
                raise ProblemError("stale", _STALE) from error
            raise ProblemError("invalid", _NOT_APPLICABLE, errors=[FieldProblem("", _NOT_APPLICABLE)]) from error
        return call.answer_object(written)

    async def delete(self, call: Call, kind: Kind) -> web.StreamResponse:
        """Delete an object, and its dependents according to `propagation`."""
        versions = call.if_match()
        current = await self._current(call, kind.resource, versions)
        if owner := manager_of(current):
            raise ProblemError(
                "managed-elsewhere",
                f"{owner} manages this object and would create it again; delete its manifest from the repository",
                managedBy=owner,
            )
        metadata = current["metadata"]
        propagation = call.text("propagation") or "Background"
        try:
            await call.kube.delete(
                kind.resource,
                ObjectKey(call.namespace, call.name),
                uid=metadata["uid"],
                resource_version=metadata["resourceVersion"] if versions else None,
                propagation=propagation,  # type: ignore[arg-type]  # one of the words that the parameter takes
                dry_run=call.flag("dryRun"),
            )
        except Conflict as error:
            raise ProblemError("stale", _STALE) from error
        return web.Response(status=204)

    async def _current(self, call: Call, resource: Resource, versions: tuple[str, ...]) -> KubeObject:
        """The current object, which must have a resourceVersion that the caller knows."""
        current = await call.kube.get(resource, ObjectKey(call.namespace, call.name))
        if versions and current["metadata"]["resourceVersion"] not in versions:
            raise ProblemError("stale", _STALE, headers={"ETag": etag(current)})
        return current

    def _checked(
        self, call: Call, kind: Kind, sent: dict[str, Any], *, name: str = "", new: bool = False
    ) -> KubeObject:
        """The object in a body, which must match the collection and the path; ProblemError with every error.

        A `new` object is also checked with its schema. For an existing one, the API server knows which errors it had
        before.
        """
        resource, errors = _served(kind, sent.get("apiVersion", kind.resource.api_version)), []
        if resource is None:
            served = " or ".join(each.api_version for each in _versions(kind))
            errors.append(FieldProblem("/apiVersion", f"must be {served} here"))
            resource = kind.resource
        if sent.get("kind", resource.kind) != resource.kind:
            errors.append(FieldProblem("/kind", f"must be {resource.kind} here"))
        is_of_kind = not errors
        metadata = sent.get("metadata")
        if not isinstance(metadata, dict):
            errors.append(FieldProblem("/metadata", "required: an object with a name"))
            metadata = {}
        if metadata.get("namespace") not in (None, "", call.namespace):
            errors.append(FieldProblem("/metadata/namespace", f"must be {call.namespace}, as in the path"))
        if name and metadata.get("name") not in (None, name):
            errors.append(FieldProblem("/metadata/name", f"must be {name}, as in the path"))
        kept = {**metadata, "namespace": call.namespace, **({"name": name} if name else {})}
        obj = {**sent, **resource.type_meta, "metadata": kept}
        if new and is_of_kind:
            said, wrong = {each.pointer for each in errors}, schema_errors(obj)
            if errors or wrong:
                # Admission is not called in this case. The schema accepts an object without a spec, which is useless.
                wrong = [*schema_errors({"spec": {}, **obj}), *validate(obj, None, Facts()).errors]
            unique = dict.fromkeys(_problems(wrong))
            errors += [each for each in unique if said.isdisjoint((each.pointer, _parent(each.pointer)))]
        if errors:
            raise invalid(errors)
        return obj


async def of_any_version(
    versions: tuple[str, ...], change: Callable[[], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """The answer of a change of these versions. Without versions, it is repeated if others wrote meanwhile."""
    for _ in range(0 if versions else _ATTEMPTS - 1):
        try:
            return await change()
        except ProblemError as error:
            if error.kind != "stale":
                raise
    return await change()


def mark_of(call: Call, kind: Kind, sent: Any) -> str:
    """The stored form of a request's Idempotency-Key: a hash of the key's user, and one of the content; empty without a
    key.
    """
    key = call.idempotency_key()
    return f"{_digest([call.caller.identity.user, key])}.{_digest([kind.collection, sent])}" if key else ""


def _marked(obj: KubeObject, mark: str) -> KubeObject:
    """The object with its mark. Its name is the same for each repetition, even if it is generated from a prefix."""
    metadata = obj["metadata"]
    annotations = {**(metadata.get("annotations") or {}), IDEMPOTENCY: mark}
    beginning = metadata.get("generateName")
    name = metadata.get("name") or (f"{beginning[:_LONGEST_BEGINNING]}{mark[:_SUFFIX]}" if beginning else None)
    return {**obj, "metadata": {**metadata, "annotations": annotations, **({"name": name} if name else {})}}


def refuse_managed(current: KubeObject, desired: KubeObject) -> None:
    """ProblemError if another tool manages an object and would revert a change; includes the change as a patch."""
    if owner := manager_of(current):
        raise _managed(owner, patch_to_commit(current, desired))


def _versions(kind: Kind) -> list[Resource]:
    """Every version that the platform serves of a kind, the stored one first."""
    served = [each.resource for each in definition_of(kind.resource.kind).versions]
    return sorted(served, key=lambda each: each != kind.resource)


def _served(kind: Kind, api_version: Any) -> Resource | None:
    """The resource in a version that the platform serves; None if it does not serve this version."""
    return next((each for each in _versions(kind) if each.api_version == api_version), None)


def location(kind: Kind, obj: KubeObject) -> str:
    """Path of an object."""
    metadata = obj["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/{kind.collection}/{metadata.get('name', '')}"


def _problems(errors: list[FieldError]) -> list[FieldProblem]:
    return [FieldProblem(pointer(parts_of(each.path)), each.message, each.path) for each in errors]


def _parent(place: str) -> str:
    return place.rpartition("/")[0]


def _managed(owner: str, patch: KubeObject | None) -> ProblemError:
    return ProblemError(
        "managed-elsewhere",
        f"{owner} manages this object and would undo the change; commit the patch to its repository instead",
        managedBy=owner,
        patch=patch,
    )


def _operations(sent: Any) -> list[dict[str, Any]]:
    if not isinstance(sent, list) or not all(isinstance(each, dict) for each in sent) or len(sent) > 1000:
        raise ProblemError(
            "invalid", "a JSON patch must be a list of operations", errors=[FieldProblem("", "must be a list")]
        )
    return sent


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _header(text: str) -> str:
    return "".join(each if each.isascii() and each.isprintable() else "?" for each in text)
