"""The API server of a story, and the feed of its changes, as the watcher publishes them."""

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

#: What runs pods. `availableReplicas` of their status says how many serve.
WORKLOADS = ("Deployment", "LeaderWorkerSet", "PodClique", "PodCliqueScalingGroup")


class Word(NamedTuple):
    """What STATE says next about a name; `obj` is None for the end of the object of `version`."""

    resource: Resource
    key: ObjectKey
    obj: KubeObject | None
    version: Version


class World(MemoryKube):
    """Its calls write at once and without faults: clients of a story are slower (`faults.Client`).

    `feed` has what is not yet read of each resource: only words about one resource keep their order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.feed: dict[str, deque[Word]] = {}
        self.statuses = 0
        """writes of statuses by the client"""

    @property
    def version(self) -> int:
        """Another one after each change."""
        return self._version

    def create_as_other(self, obj: KubeObject) -> None:
        """What another client creates: the API server gives it a uid."""
        metadata = {**obj["metadata"], "uid": f"other-{self._version}", "generation": 1, "creationTimestamp": NOW}
        self._store(resources.of(obj), key_of(obj), {**obj, "metadata": metadata})

    def change(self, resource: Resource, key: ObjectKey, change: Callable[[KubeObject], object]) -> None:
        """What another client writes. Nothing where the object is gone."""
        if (before := self.objects.get((resource.id, key))) is not None:
            after = copied(before)
            change(after)
            self._change(resource, key, copied(before), after)

    def end(self, resource: Resource, key: ObjectKey) -> None:
        """What another client deletes: it stays while it has finalizers."""
        if (obj := self.objects.get((resource.id, key))) is None:
            return
        if not obj["metadata"].get("finalizers"):
            self.remove(resource, key)
        elif not objects.is_deleting(obj):
            ending = {"deletionTimestamp": NOW, "generation": objects.generation(obj) + 1}
            self._store(resource, key, {**obj, "metadata": {**obj["metadata"], **ending}})

    def of_kinds(self, kinds: Iterable[str]) -> list[KubeObject]:
        """Objects that no one deletes."""
        return [each for each in self.objects.values() if each["kind"] in kinds and not objects.is_deleting(each)]

    def orphans(self) -> list[KubeObject]:
        """Objects whose controller is gone."""
        uids = {"", *(objects.uid(each) for each in self.objects.values())}
        return [each for each in self.objects.values() if _owner(each) not in uids]

    def is_ending(self) -> bool:
        """Whether something is on its way out."""
        return any(map(objects.is_deleting, self.objects.values())) or bool(self.orphans())

    def serving(self) -> set[str]:
        """Components of which at least one pod serves, and is to go on."""
        uids = {objects.uid(each) for each in self.objects.values()}
        return {
            objects.labels(each).get(labels.COMPONENT, "")
            for each in self.of_kinds(WORKLOADS)
            if each.get("status", {}).get("availableReplicas") and _owner(each) in uids
        }

    def owned(self, owner: KubeObject) -> list[KubeObject]:
        """Objects whose controller it is."""
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
        """A PUT, which leaves the status alone."""
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
        """What a new reader gets first: everything as it is."""
        self.feed.clear()
        for obj in self.objects.values():
            self._publish(Word(resources.of(obj), key_of(obj), copied(obj), version_of(obj)))


def _owner(obj: KubeObject) -> str:
    return str((objects.controller_of(obj) or {}).get("uid", ""))
