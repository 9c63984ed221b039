"""An API server in memory, for tables of reconcilers.

`tests/integration/test_memory_kube.py` compares it with a real API server, verb by verb.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dynamo_shared.api.objects import KubeObject, size_of
from dynamo_shared.api.resources import ObjectKey, Resource, key_of, of
from dynamo_shared.kube.client import KubeObjects
from dynamo_shared.kube.errors import AlreadyExists, Conflict, Invalid, KubeError, NotFound, ResponseTooLarge
from dynamo_shared.state.cache import ObjectCache

from tests.building.objects import copied

NOW = "2026-01-02T03:04:05Z"
#: Size limit of an object in etcd. Bytes.
LARGEST = 3 << 19


class MemoryKube:
    """`objects` with versions, generations and finalizers, and one client that writes them.

    `writes` has all its writes except those of statuses, in order, as `create ConfigMap name`. `refusals` maps such
    lines to errors that are raised instead of the write.
    """

    def __init__(self, *stored: KubeObject, refusals: Mapping[str, KubeError] | None = None) -> None:
        self.field_manager = "test"
        self.writes: list[str] = []
        self.refusals = dict(refusals or {})
        self.objects: dict[tuple[str, ObjectKey], KubeObject] = {}
        self._applied: dict[tuple[str, ObjectKey], KubeObject] = {}
        """What the client applied last: fields that the next apply omits are removed."""
        self._version = 100
        for obj in stored:
            self.put(obj)

    def put(self, obj: KubeObject) -> KubeObject:
        """Store an object as given, plus the missing fields of a stored one. Its status counts as the client's."""
        resource, key = of(obj), key_of(obj)
        stored = {"uid": f"uid-of-{key.name}", "generation": 1, "creationTimestamp": NOW, **obj["metadata"]}
        before = self.objects.get((resource.id, key))
        if before is not None and _desired(before) != _desired(obj):
            stored["generation"] = before["metadata"]["generation"] + 1
        self._applied[resource.id, key] = {"status": copied(obj.get("status", {}))}
        return self._store(resource, key, {**obj, "metadata": stored})

    def remove(self, resource: Resource, key: ObjectKey) -> None:
        """Remove an object, even if finalizers hold it."""
        del self.objects[resource.id, key]

    def stored(self, resource: Resource) -> KubeObjects:
        """All objects of a resource."""
        return [copied(obj) for (id_, _), obj in self.objects.items() if id_ == resource.id]

    def publish(self, cache: ObjectCache) -> None:
        """Put everything into a cache, as STATE does."""
        for obj in self.objects.values():
            cache.put(of(obj), copied(obj))

    async def get(self, resource: Resource, key: ObjectKey) -> KubeObject:
        if (resource.id, key) not in self.objects:
            raise NotFound(404, "NotFound", f"{resource.plural} {key.name!r} not found", {"name": key.name})
        return copied(self.objects[resource.id, key])

    async def get_metadata(self, resource: Resource, key: ObjectKey) -> KubeObject:
        metadata: KubeObject = (await self.get(resource, key))["metadata"]
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
        asked = dict(each.split("=") for each in label_selector.split(",") if each)
        return [
            obj
            for obj in self.stored(resource)
            if namespace in ("", key_of(obj).namespace)
            and asked.items() <= (obj["metadata"].get("labels") or {}).items()
        ]

    async def list_page(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", limit: int, most: int
    ) -> KubeObject:
        page = {"items": (await self.list(resource, namespace, label_selector=label_selector))[:limit]}
        if size_of(page) > most:
            raise ResponseTooLarge(200, "ResponseTooLarge", f"the response is larger than {most} bytes")
        return page

    async def create(
        self, resource: Resource, obj: KubeObject, *, dry_run: bool = False, strict: bool = True
    ) -> KubeObject:
        key = key_of(obj)
        self._admit("create", resource, key)
        if (resource.id, key) in self.objects:
            raise AlreadyExists(409, "AlreadyExists", f"{resource.plural} {key.name!r} already exists")
        if dry_run:
            return copied(obj)
        self.writes.append(f"create {resource.kind} {key.name}")
        given = {name: value for name, value in obj.items() if name != "status"}
        metadata = {**obj["metadata"], "uid": f"uid-{self._version}", "generation": 1, "creationTimestamp": NOW}
        return self._store(resource, key, {**given, "metadata": metadata})

    async def apply(self, resource: Resource, obj: KubeObject) -> KubeObject:
        key = key_of(obj)
        self._admit("apply", resource, key)
        if (resource.id, key) not in self.objects:
            if "uid" in obj["metadata"]:
                raise Conflict(409, "Conflict", "Precondition failed: UID in precondition")
            self._applied[resource.id, key] = copied(obj)
            return await self.create(resource, obj)
        applied = await self._apply(resource, key, {name: value for name, value in obj.items() if name != "status"})
        self.writes.append(f"apply {resource.kind} {key.name}")
        return applied

    async def apply_status(self, resource: Resource, obj: KubeObject) -> KubeObject:
        metadata = {name: obj["metadata"][name] for name in ("resourceVersion",) if name in obj["metadata"]}
        return await self._apply(resource, key_of(obj), {"metadata": metadata, "status": obj["status"]})

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: KubeObject, *, subresource: str = ""
    ) -> KubeObject:
        """Also for `scale`: the number is written into the object, and the object is returned."""
        self._admit("patch", resource, key)
        observed = await self._checked(resource, key, patch)
        self.writes.append(f"patch {resource.kind} {key.name}")
        given = {name: value for name, value in patch.items() if name != "status"}
        return self._change(resource, key, observed, _merged(observed, given, nulls=True))

    async def json_patch(self, resource: Resource, key: ObjectKey, operations: Sequence[KubeObject]) -> KubeObject:
        self._admit("patch", resource, key)
        observed = await self.get(resource, key)
        changed = copied(observed)
        for each in operations:
            *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in each["path"].split("/")[1:]]
            place: Any = changed
            for step in steps:
                place = place[int(step)] if isinstance(place, list) else place[step]
            if each["op"] == "remove":
                del place[last]
            elif each["op"] != "test":
                place[last] = copied(each["value"])
            elif place.get(last) != each["value"]:
                raise Invalid(422, "Invalid", f"testing value {each['path']} failed")
        self.writes.append(f"patch {resource.kind} {key.name}")
        return self._change(resource, key, observed, changed)

    async def delete(self, resource: Resource, key: ObjectKey, *, uid: str | None = None) -> None:
        self._admit("delete", resource, key)
        observed = await self._checked(resource, key, {"metadata": {"uid": uid} if uid else {}})
        self.writes.append(f"delete {resource.kind} {key.name}")
        if observed["metadata"].get("finalizers"):
            observed["metadata"].setdefault("deletionTimestamp", NOW)
            observed["metadata"]["generation"] += 1
            self._store(resource, key, observed)
        else:
            self.remove(resource, key)

    def _admit(self, verb: str, resource: Resource, key: ObjectKey) -> None:
        if (refusal := self.refusals.get(f"{verb} {resource.kind} {key.name}")) is not None:
            raise refusal

    async def _checked(self, resource: Resource, key: ObjectKey, given: KubeObject) -> KubeObject:
        """The object, if the preconditions hold."""
        observed = await self.get(resource, key)
        for field in ("uid", "resourceVersion"):
            if given.get("metadata", {}).get(field, observed["metadata"][field]) != observed["metadata"][field]:
                raise Conflict(409, "Conflict", "the object has been modified")
        return observed

    async def _apply(self, resource: Resource, key: ObjectKey, given: KubeObject) -> KubeObject:
        observed = await self._checked(resource, key, given)
        before = self._applied.get((resource.id, key), {})
        mine = {name: value for name, value in before.items() if ("status" in given) == (name == "status")}
        others = {name: value for name, value in before.items() if name not in mine}
        self._applied[resource.id, key] = copied({**given, **others})
        return self._change(resource, key, observed, _merged(_without(observed, mine, given), given))

    def _change(self, resource: Resource, key: ObjectKey, before: KubeObject, after: KubeObject) -> KubeObject:
        metadata = after["metadata"]
        metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
        if after == before:
            return before
        if size_of(after) > LARGEST:
            raise Invalid(500, "", "etcdserver: request is too large")
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self.remove(resource, key)
            return {**after, "metadata": {name: value for name, value in metadata.items() if name != "finalizers"}}
        if _desired(after) != _desired(before):
            metadata["generation"] += 1
        return self._store(resource, key, after)

    def _store(self, resource: Resource, key: ObjectKey, obj: KubeObject) -> KubeObject:
        self._version += 1
        for field in ("annotations", "finalizers", "labels"):
            if not obj["metadata"].get(field, True):
                del obj["metadata"][field]
        obj["metadata"]["resourceVersion"] = str(self._version)
        self.objects[resource.id, key] = copied(obj)
        return obj


def _desired(obj: KubeObject) -> KubeObject:
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


def _merged(value: Any, given: Any, *, nulls: bool = False) -> Any:
    """RFC 7386 if `nulls` remove fields; lists are replaced."""
    if not isinstance(given, dict):
        return copied(given)
    result = dict(value) if isinstance(value, dict) else {}
    for name, each in given.items():
        if each is None and nulls:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), each, nulls=nulls)
    return result


def _without(value: KubeObject, before: KubeObject, after: KubeObject) -> KubeObject:
    """The value without fields that were applied before and are not applied now."""
    result = dict(value)
    for name, each in before.items():
        if name not in after:
            result.pop(name, None)
        elif all(isinstance(part, dict) for part in (each, after[name], value.get(name))):
            result[name] = _without(value[name], each, after[name])
    return result
