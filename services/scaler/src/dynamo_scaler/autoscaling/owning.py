"""Keeping the autoscaler of an adapter as it is asked for: made, set right, removed; what is not ours is left alone."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
from dynamo_shared.api import resources
from dynamo_shared.api.contracts import ComponentAutoscaling
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import LAST_APPLIED_HASH
from dynamo_shared.api.resources import HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS, Resource, key_of
from dynamo_shared.bus import ObjectCache
from dynamo_shared.kube import KubeClient, coverage
from dynamo_shared.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from dynamo_shared.kube.field_ownership import claim_fields

from dynamo_scaler.adapters.status import Verdict
from dynamo_scaler.autoscaling.rendering import autoscaler, described
from dynamo_scaler.autoscaling.wishes import Unclear, wish_of
from dynamo_scaler.events import Reporter

KINDS: tuple[Resource, ...] = (HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS)
#: A refusal may be somebody's policy, and a name may become free, without our hearing of it. Seconds.
RETRY = 30.0


@dataclass(frozen=True, slots=True)
class Found:
    """How an adapter's autoscaler is; without a verdict none is asked for. `again`: seconds until the next look."""

    verdict: Verdict | None = None
    again: float | None = None


@dataclass(frozen=True, slots=True)
class Autoscalers:
    """The autoscalers that belong to adapters."""

    kube: KubeClient
    cache: ObjectCache
    reporter: Reporter
    is_served: Callable[[Resource], bool]

    async def ensure(self, graph: KubeObject, adapter: KubeObject) -> Found:
        """Make what is asked for beside an adapter, and nothing else, be there. Raises KubeError: again later."""
        try:
            wish = wish_of(graph, adapter["spec"]["dgdRef"]["componentName"])
        except Unclear as error:
            # What is there goes on working: nobody said that it should not.
            return Found(Verdict(False, "InvalidAutoscaling", str(error)))
        if wish is not None and wish.triggers and not self.is_served(SCALED_OBJECTS):
            return Found(
                Verdict(False, "KedaNotInstalled", "triggers need KEDA, which this cluster does not have"), RETRY
            )
        try:
            return await self._ensure(adapter, wish)
        except _Taken as error:
            return Found(Verdict(False, "NameTaken", str(error)), RETRY)
        except (Invalid, Forbidden) as error:
            return Found(Verdict(False, "RefusedByApiServer", str(error)), RETRY)

    async def _ensure(self, adapter: KubeObject, wish: ComponentAutoscaling | None) -> Found:
        wanted = stamped(autoscaler(adapter, wish)) if wish is not None else None
        for resource, other in self._present(adapter):
            if wanted is None or resources.of(wanted) != resource:
                # Before another kind takes its place: two of them would undo each other's work.
                with contextlib.suppress(NotFound, Conflict):
                    await self.kube.delete(resource, key_of(other), uid=other["metadata"]["uid"])
                self.cache.remove(resource, key_of(other), other["metadata"]["uid"])
                self.reporter.autoscaled(adapter, "Deleted", described(other))
        if wanted is None:
            return Found()
        await self._make(adapter, wanted)
        return Found(Verdict(True, wanted["kind"], described(wanted)))

    async def _make(self, adapter: KubeObject, wanted: KubeObject) -> None:
        resource, key = resources.of(wanted), key_of(wanted)
        observed = self.cache.get(resource, key)
        if observed is None:
            try:
                self.cache.put(resource, await self.kube.create(resource, wanted))
            except AlreadyExists:
                observed = await self.kube.get(resource, key)
            else:
                self.reporter.autoscaled(adapter, "Created", described(wanted))
                return
        if not _is_of(adapter, observed):
            raise _Taken(
                f"a {resource.kind} named {key.name!r} exists already and is not this adapter's; it is left as it is: "
                "delete or rename it, or ask for no autoscaler"
            )
        if _hash_of(observed) == _hash_of(wanted) and not coverage.missing(wanted, observed):
            return
        await claim_fields(self.kube, resource, key)
        self.cache.put(resource, await self.kube.apply(resource, wanted))
        self.reporter.autoscaled(adapter, "Updated", described(wanted))

    def _present(self, adapter: KubeObject) -> Iterator[tuple[Resource, KubeObject]]:
        for resource in KINDS:
            found = self.cache.get(resource, key_of(adapter))
            if found is not None and _is_of(adapter, found) and "deletionTimestamp" not in found["metadata"]:
                yield resource, found


class _Taken(Exception):
    """An object of the wanted name is somebody else's."""


def stamped(wanted: KubeObject) -> KubeObject:
    """`wanted` with the hash of itself as an annotation, which tells when something is no longer asked for."""
    digest = hashlib.sha256(msgspec.json.encode(wanted, order="sorted")).hexdigest()[:16]
    return {**wanted, "metadata": {**wanted["metadata"], "annotations": {LAST_APPLIED_HASH: digest}}}


def _hash_of(obj: KubeObject) -> str:
    return str(obj["metadata"].get("annotations", {}).get(LAST_APPLIED_HASH, ""))


def _is_of(adapter: KubeObject, obj: KubeObject) -> bool:
    owners = obj["metadata"].get("ownerReferences", ())
    return any(owner.get("controller") and owner["uid"] == adapter["metadata"]["uid"] for owner in owners)
