"""Applies one child object: creates it, corrects it, leaves it, or refuses if another owner has its name.

`child_steps.py` decides which; this module carries it out.
"""

import contextlib
import enum
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import structlog
from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.owned_fields import managers_of
from dynamo_shared.api.registry.annotations import LAST_APPLIED_GENERATION
from dynamo_shared.api.resources import GROUP, ObjectKey, Resource
from dynamo_shared.kube import KubeClient, coverage, create_or_get, get_if_present
from dynamo_shared.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from dynamo_shared.kube.field_ownership import claim_fields
from dynamo_shared.kube.overruled import OverruledWrites
from dynamo_shared.state.cache import ObjectCache
from dynamo_shared.state.memory import ObjectMemory

from dynamo_pod_builder import co_owners
from dynamo_pod_builder.child_steps import (
    Apply,
    Create,
    Leave,
    Patch,
    Refuse,
    Replace,
    SetReplicas,
    Step,
    TakeOver,
    step,
)
from dynamo_pod_builder.errors import NameTaken

log = structlog.get_logger("dynamo.pod-builder.applying")

#: On graphs and components that the reference operator handled.
REFERENCE_FINALIZER = f"{GROUP}/finalizer"


class ChildChange(enum.Enum):
    """What `ensure` did to an object."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class SetBack:
    """Replicas that another client set on an object although its owner decides the number."""

    writer: str
    """its field manager"""
    replicas: int


@dataclass(frozen=True, slots=True)
class Ensured:
    """An object after `ensure`."""

    change: ChildChange
    obj: KubeObject
    #: The number that another client had set, and that was reset.
    set_back: SetBack | None = None


class Applier:
    """Writes children, and puts the API server's answers into the cache, so that the next reconcile knows these writes."""

    def __init__(self, kube: KubeClient, cache: ObjectCache, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._cache = cache
        #: Adopted Deployments of the reference operator, by uid: the hash of the desired object, which they lack.
        self._adopted: ObjectMemory[str] = cache.memory()
        #: The last desired replicas of scaled objects, by uid. If they are desired again, another client changed them.
        self._numbers: ObjectMemory[int] = cache.memory()
        self._overruled = OverruledWrites(cache.memory(), clock)
        #: Uids of objects whose deletion was requested, while the cache shows no deletion: an answer may be lost, and
        #: objects with finalizers end later.
        self._ending: ObjectMemory[bool] = cache.memory()

    async def exists(self, owner: KubeObject) -> bool:
        """Whether the API server has this object, with this uid. Called before its first child is created.

        STATE alone does not suffice: the garbage collector would delete children of a deleted or forged owner, and they
        would be created again until STATE is corrected. Raises KubeError if the API server is unavailable.
        """
        return await self._present(owner) is not None

    async def is_outdated(self, observed: KubeObject) -> bool:
        """Whether the API server has a newer version of a cached object, or none. The cache then has the present state.

        Raises KubeError if the API server is unavailable.
        """
        present = await self._present(observed)
        return present is None or self._cache.put(resources.of(observed), present)

    async def _present(self, obj: KubeObject) -> KubeObject | None:
        """The object with this uid as the API server has it; if there is none, it leaves the cache."""
        resource, key, uid = resources.of(obj), resources.key_of(obj), objects.uid(obj)
        existing = await get_if_present(self._kube, resource, key)
        if existing is not None and objects.uid(existing) == uid:
            return existing
        self._cache.remove(resource, key, uid)
        return None

    async def as_stored(self, desired: KubeObject) -> KubeObject:
        """The existing object of that name, or a dry run's result: admission's changes say which controllers manage it."""
        resource = resources.of(desired)
        if (observed := self._cache.get(resource, resources.key_of(desired))) is not None:
            return observed
        return await create_or_get(self._kube, resource, desired, dry_run=True)

    async def ensure(self, desired: KubeObject, family: Collection[str] = ()) -> Ensured:
        """Apply `desired`. Raises NameTaken (or PredecessorRemains), or KubeError if the API server refuses or is away.

        An object whose controller is one of `family` (uids) is taken over from it.
        """
        resource, key = resources.of(desired), resources.key_of(desired)
        observed = await self._there(resource, key)
        taken_over = False
        while True:
            match self._step(desired, observed, family):
                case Create(body):
                    try:
                        with self._cache.writing(resource, key):
                            created = await self._kube.create(resource, body)
                            return self._remembered(resource, ChildChange.CREATED, created)
                    except AlreadyExists:
                        observed = await self._kube.get(resource, key)
                case Refuse(error):
                    raise error
                case TakeOver(patch):
                    # Only once: if a third-party webhook gives it back, it has another owner.
                    if taken_over:
                        raise NameTaken(resource, observed or desired)
                    taken_over = True
                    observed = await self._kube.merge_patch(resource, key, patch)
                case Leave(right):
                    left = self._remembered(resource, ChildChange.UNCHANGED, right)
                    self._note_number(right)
                    return left
                case Patch(differs, body):
                    metadata = {**body["metadata"], "resourceVersion": differs["metadata"]["resourceVersion"]}
                    patched = await self._kube.merge_patch(resource, key, {**body, "metadata": metadata})
                    return self._compared(resource, body, patched)
                case SetReplicas(differs, replicas):
                    return await self._correct_number(resource, differs, replicas)
                case Replace(differs, body, because):
                    _log_difference(resource, key, because)
                    await self.delete(resource, differs)
                    created = await self._kube.create(resource, body)
                    return self._compared(resource, body, created)
                case Apply() as apply:
                    _log_difference(resource, key, apply.because)
                    if (written := await self._apply(resource, apply)) is not None:
                        return written
                    observed = await self._there(resource, key)

    def _step(self, desired: KubeObject, observed: KubeObject | None, family: Collection[str]) -> Step:
        adopted = self._adopted.get(objects.uid(observed)) if observed is not None else None
        decided = step(desired, observed, family, adopted)
        if isinstance(decided, Apply | Patch | Replace) and self._overruled.have(decided.body, decided.observed):
            return Leave(decided.observed)
        return decided

    async def _apply(self, resource: Resource, of: Apply) -> Ensured | None:
        """Apply to this object only. None if it was deleted or replaced by another, which is read before any write."""
        observed, body, uid = of.observed, of.body, objects.uid(of.observed)
        try:
            await claim_fields(self._kube, resource, resources.key_of(observed), of_predecessor=LAST_APPLIED_GENERATION)
            result = await self._kube.apply(resource, objects.of_uid(body, uid))
        except (Conflict, NotFound):
            if await self.exists(observed):
                # Another writer was faster. The cache keeps the object, because after a removal only STATE could return
                # it.
                raise
            return None
        if coverage.missing(body, result):
            replaced = await self._kube.replace(resource, coverage.drop_foreign(body, result))
            ensured = self._compared(resource, body, replaced)
        else:
            ensured = self._remembered(resource, ChildChange.UPDATED, result)
        if of.adopts is not None:
            self._adopted.keep(ensured.obj, of.adopts)
        return ensured

    async def create_once(self, resource: Resource, desired: KubeObject) -> bool:
        """Create an object that other owners may also create, and that never changes. Returns whether it was created."""
        if self._cache.get(resource, resources.key_of(desired)) is not None:
            return False
        # Another owner may have been faster; the result is the same.
        with contextlib.suppress(AlreadyExists):
            self._remembered(resource, ChildChange.CREATED, await self._kube.create(resource, desired))
            return True
        return False

    async def remove(self, owner: KubeObject, child: KubeObject) -> bool:
        """Delete a child that its owner no longer desires. Returns False if other owners keep it."""
        resource = resources.of(child)
        if rest := co_owners.others(owner, child):
            with contextlib.suppress(NotFound):
                left = await self._kube.merge_patch(resource, resources.key_of(child), co_owners.patch_of(child, rest))
                self._cache.put(resource, left)
            return False
        await self.delete(resource, child)
        return True

    async def delete(self, resource: Resource, observed: KubeObject) -> None:
        """Delete exactly this object: another one that took its name meanwhile stays."""
        if objects.is_deleting(observed):
            return
        key, uid = resources.key_of(observed), observed["metadata"]["uid"]
        self._ending.keep(observed, True)
        # Deleted, or deleted and replaced by another of its name: this object no longer exists in both cases.
        with contextlib.suppress(NotFound, Conflict):
            await self._kube.delete(resource, key, uid=uid)
        if not observed["metadata"].get("finalizers"):
            # Removed at once: events about its children's end may come first, and would bring the children back.
            self._cache.remove(resource, key, uid)

    async def _there(self, resource: Resource, key: ObjectKey) -> KubeObject | None:
        """The existing object. If its deletion was requested and the cache does not show that yet, it is read again.

        If it counted as staying, it would count as serving, and the objects that serve in its place would be deleted.
        """
        observed = self._cache.get(resource, key)
        if observed is None or objects.uid(observed) not in self._ending:
            return observed
        uid = objects.uid(observed)
        now = await get_if_present(self._kube, resource, key)
        if now is None or objects.uid(now) != uid:
            self._cache.remove(resource, key, uid)
            return now
        self._ending.pop(uid, None)
        self._cache.put(resource, now)
        return now

    async def remove_reference_finalizer(self, resource: Resource, observed: KubeObject) -> None:
        """Remove the reference operator's finalizer from an object that is being deleted: no other client would.

        Owner references delete what the finalizer guarded.
        """
        rest = objects.without_finalizer(observed, REFERENCE_FINALIZER)
        if rest is None:
            return
        patch = {"metadata": {"resourceVersion": observed["metadata"]["resourceVersion"], "finalizers": rest}}
        with contextlib.suppress(NotFound):
            await self._kube.merge_patch(resource, resources.key_of(observed), patch)

    async def annotate(
        self, resource: Resource, observed: KubeObject, annotations: Mapping[str, str | None]
    ) -> KubeObject:
        """Set annotations, and remove those that are None. Returns the changed object, or `observed` if it is deleted.

        Raises Conflict if the object has changed: otherwise, conclusions about one version would be reported for
        another.
        """
        with contextlib.suppress(NotFound):
            version = observed["metadata"]["resourceVersion"]
            patch = {"metadata": {"annotations": dict(annotations), "resourceVersion": version}}
            written = await self._kube.merge_patch(resource, resources.key_of(observed), patch)
            return self._remembered(resource, ChildChange.UPDATED, written).obj
        return observed

    async def scale(self, resource: Resource, observed: KubeObject, replicas: int) -> Ensured:
        """Set `spec.replicas` of an object that another controller creates and whose number it leaves to this platform."""
        if observed.get("spec", {}).get("replicas") != replicas:
            return await self._correct_number(resource, observed, replicas)
        self._note_number(observed)
        return Ensured(ChildChange.UNCHANGED, observed)

    async def patch_replicas(self, resource: Resource, observed: KubeObject, replicas: int) -> Ensured:
        """Set only `spec.replicas`: if nothing else differs, or for a leftover whose desired object is no longer known."""
        key, metadata = resources.key_of(observed), observed["metadata"]
        # A third less work for the API server than a patch of the object, which compares fields with their managers.
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "spec": {"replicas": replicas}}
        try:
            scale = await self._kube.merge_patch(resource, key, patch, subresource="scale")
        except Conflict as outdated:
            result = await self._replace_number(resource, observed, replicas, outdated)
        else:
            result = _scaled(observed, replicas, scale["metadata"]["resourceVersion"])
        return self._remembered(resource, ChildChange.UPDATED, result)

    async def _correct_number(self, resource: Resource, observed: KubeObject, replicas: int) -> Ensured:
        """Set `spec.replicas` of an otherwise correct object, and name the client that had set another number."""
        expected = self._numbers.get(objects.uid(observed)) == replicas
        writer = await self._other_writer(resource, observed) if expected else ""
        ensured = await self.patch_replicas(resource, observed, replicas)
        self._note_number(ensured.obj)
        return replace(ensured, set_back=SetBack(writer, objects.replicas(observed))) if writer else ensured

    async def _other_writer(self, resource: Resource, observed: KubeObject) -> str:
        """The field manager of `spec.replicas`, which STATE omits; "" if it is this service, or unknown."""
        with contextlib.suppress(NotFound):
            now = await self._kube.get(resource, resources.key_of(observed))
            writer = next(iter(managers_of(now, "spec", "replicas")), "")
            return "" if writer == self._kube.field_manager else writer
        return ""

    def _note_number(self, obj: KubeObject) -> None:
        if (number := obj.get("spec", {}).get("replicas")) is not None:
            self._numbers.keep(obj, number)

    async def _replace_number(
        self, resource: Resource, observed: KubeObject, replicas: int, outdated: Conflict
    ) -> KubeObject:
        """Set `spec.replicas` of an object whose status changes constantly, if its uid and spec stay the same.

        Raises `outdated` if another object has its name, or another writer was faster: the cache then has its version.
        """
        key, uid = resources.key_of(observed), observed["metadata"]["uid"]
        now = await self._kube.get(resource, key)
        is_same = now["metadata"]["uid"] == uid
        if is_same and now["spec"] == {**observed["spec"], "replicas": replicas}:
            return now
        if not is_same or now["spec"] != observed["spec"]:
            self._cache.put(resource, now)
            raise outdated
        operations: list[KubeObject] = [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": "/metadata/generation", "value": now["metadata"]["generation"]},
            {"op": "add", "path": "/spec/replicas", "value": replicas},
        ]
        try:
            return await self._kube.json_patch(resource, key, operations)
        except Invalid as changed:
            raise outdated from changed

    def _compared(self, resource: Resource, written: KubeObject, stored: KubeObject) -> Ensured:
        """An updated object; it is left alone for a while if it is not stored as written."""
        ensured = self._remembered(resource, ChildChange.UPDATED, stored)
        self._overruled.compare(written, stored)
        return ensured

    def _remembered(self, resource: Resource, change: ChildChange, obj: KubeObject) -> Ensured:
        self._cache.put(resource, obj)
        return Ensured(change, obj)


def _scaled(observed: KubeObject, replicas: int, version: str) -> KubeObject:
    """The object in that version, which differs only in this number: `observed` was the version before."""
    metadata, spec = observed["metadata"], observed["spec"]
    generation = metadata["generation"] + (spec.get("replicas") != replicas)
    return {
        **observed,
        "metadata": {**metadata, "resourceVersion": version, "generation": generation},
        "spec": {**spec, "replicas": replicas},
    }


def _log_difference(resource: Resource, key: ObjectKey, because: str) -> None:
    log.info("an object is written again", kind=resource.kind, key=str(key), because=because)
