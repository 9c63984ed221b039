"""The API server of a story, and the feed of its changes as the watcher publishes them."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import ObjectKey, Resource, key_of
from dynamo_shared.state.versions import Version, version_of

from tests.building.memory_kube import NOW, MemoryKube
from tests.building.objects import copied

#: Workloads. `availableReplicas` of their status is the number of serving replicas.
WORKLOADS = ("Deployment", "LeaderWorkerSet", "PodClique", "PodCliqueScalingGroup")


class Word(NamedTuple):
    """A message of STATE about an object; `obj` is None if the object of `version` was deleted."""

    resource: Resource
    key: ObjectKey
    obj: KubeObject | None
    version: Version


class World(MemoryKube):
    """Calls take effect at once and without faults: the clients of a story are slower (`faults.Client`).

    `feed` has the unread messages of each resource; only messages of one resource keep their order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.feed: dict[str, deque[Word]] = {}
        self.statuses = 0
        """writes of statuses by the client"""

    @property
    def version(self) -> int:
        """A new version after each change."""
        return self._version

    def create_as_other(self, obj: KubeObject) -> None:
        """Create an object as another client; the API server assigns a uid."""
        metadata = {**obj["metadata"], "uid": f"other-{self._version}", "generation": 1, "creationTimestamp": NOW}
        self._store(resources.of(obj), key_of(obj), {**obj, "metadata": metadata})

    def change(self, resource: Resource, key: ObjectKey, change: Callable[[KubeObject], object]) -> None:
        """Change an object as another client. A deleted object stays deleted."""
        if (before := self.objects.get((resource.id, key))) is not None:
            after = copied(before)
            change(after)
            self._change(resource, key, copied(before), after)

    def end(self, resource: Resource, key: ObjectKey) -> None:
        """Delete an object as another client: it stays while it has finalizers."""
        if (obj := self.objects.get((resource.id, key))) is None:
            return
        if not obj["metadata"].get("finalizers"):
            self.remove(resource, key)
        elif not objects.is_deleting(obj):
            ending = {"deletionTimestamp": NOW, "generation": objects.generation(obj) + 1}
            self._store(resource, key, {**obj, "metadata": {**obj["metadata"], **ending}})

    def of_kinds(self, kinds: Iterable[str]) -> list[KubeObject]:
        """Objects that are not being deleted."""
        return [each for each in self.objects.values() if each["kind"] in kinds and not objects.is_deleting(each)]

    def orphans(self) -> list[KubeObject]:
        """Objects whose controller is gone."""
        uids = {"", *(objects.uid(each) for each in self.objects.values())}
        return [each for each in self.objects.values() if _owner(each) not in uids]

    def is_ending(self) -> bool:
        """Whether any object is being deleted."""
        return any(map(objects.is_deleting, self.objects.values())) or bool(self.orphans())

    def serving(self) -> set[str]:
        """Components with at least one serving pod that are to go on serving."""
        uids = {objects.uid(each) for each in self.objects.values()}
        return {
            objects.labels(each).get(labels.COMPONENT, "")
            for each in self.of_kinds(WORKLOADS)
            if each.get("status", {}).get("availableReplicas") and _owner(each) in uids
        }

    def owned(self, owner: KubeObject) -> list[KubeObject]:
        """Objects with that controller."""
        return [each for each in self.objects.values() if _owner(each) == objects.uid(owner)]

    async def create(
        self, resource: Resource, obj: KubeObject, *, dry_run: bool = False, strict: bool = True
    ) -> KubeObject:
        created = await super().create(resource, obj, dry_run=dry_run, strict=strict)
        if not dry_run:
            self._applied[resource.id, key_of(obj)] = copied(obj)
        return created

    async def apply_status(self, resource: Resource, obj: KubeObject) -> KubeObject:
        self.statuses += 1
        return await super().apply_status(resource, obj)

    async def replace(self, resource: Resource, obj: KubeObject) -> KubeObject:
        """A PUT, which does not change the status."""
        key = key_of(obj)
        before = await self._checked(resource, key, obj)
        self.writes.append(f"replace {resource.kind} {key.name}")
        status = {"status": before["status"]} if "status" in before else {}
        return self._change(resource, key, before, {**copied(obj), **status})

    def remove(self, resource: Resource, key: ObjectKey) -> None:
        gone = self.objects[resource.id, key]
        super().remove(resource, key)
        self._applied.pop((resource.id, key), None)
        self._version += 1
        last = {"metadata": {**gone["metadata"], "resourceVersion": str(self._version)}}
        self._publish(Word(resource, key, None, version_of(last)))

    def _store(self, resource: Resource, key: ObjectKey, obj: KubeObject) -> KubeObject:
        stored = super()._store(resource, key, obj)
        self._publish(Word(resource, key, copied(stored), version_of(stored)))
        return stored

    def _publish(self, word: Word) -> None:
        self.feed.setdefault(word.resource.id, deque()).append(word)

    def publish_all(self) -> None:
        """All objects, as a new reader gets them first."""
        self.feed.clear()
        for obj in self.objects.values():
            self._publish(Word(resources.of(obj), key_of(obj), copied(obj), version_of(obj)))


def _owner(obj: KubeObject) -> str:
    return str((objects.controller_of(obj) or {}).get("uid", ""))
