"""Keeps adapters loaded where they shall be: many workers at once, each at its own pace.

Two queues share the work. A worker that failed last time waits in the second one, whose quarter of the hands is all that
workers which hang can hold. Nothing here waits for Kubernetes, and no reconciler waits for a worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import structlog
from dynamo_shared.aio import Randomness, delay, spread
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.runtime import Result, WorkQueue
from dynamo_shared.runtime.settings.model_discovery import ModelDiscovery

from dynamo_model_discovery.lora.adapter import Adapter
from dynamo_model_discovery.lora.answers import LoraError
from dynamo_model_discovery.lora.api import Listing, WorkerApi
from dynamo_model_discovery.lora.settling import settle
from dynamo_model_discovery.lora.standing import Standing
from dynamo_model_discovery.models.workers import Worker

#: Pause after the first failure. Seconds.
FIRST_RETRY = 0.5
#: While somebody else is at work on the same name at the same worker. Seconds.
TAKEN = 0.5
#: Listings that are remembered: one a worker, and none with more names or characters than an honest one has.
LISTINGS = 20_000
LISTED_NAMES = 2_000
LISTED_CHARACTERS = 128 * 1024

log = structlog.get_logger("dynamo.model-discovery.lora")


class Place(NamedTuple):
    """One model at one worker."""

    model: str
    """uid"""
    pod: str
    """uid"""
    namespace: str


def lane(place: Place) -> str:
    """Places wait their turn by namespace."""
    return place.namespace


class Listener(Protocol):
    """Who is told how adapters come and go."""

    def loaded(self, standing: Standing) -> None:
        """A worker has the adapter."""

    def failed(self, standing: Standing) -> None:
        """A try failed, for another reason than the one before it."""

    def unloaded(self, standing: Standing) -> None:
        """A worker has let an adapter of a model go that is gone or being deleted."""

    def given_up(self, model: KubeObject, standing: Standing) -> None:
        """A worker kept an adapter of a model that is gone, and is not tried any more."""


@dataclass(frozen=True, slots=True)
class _Owed:
    """A model that is gone, while workers may still have its adapter."""

    model: KubeObject
    until: float


class AdapterKeeper:
    """What shall be loaded where, and whether it is. All methods belong to one event loop."""

    def __init__(
        self,
        api: WorkerApi,
        settings: ModelDiscovery,
        queues: tuple[WorkQueue[Place], WorkQueue[Place]],
        listener: Listener,
        *,
        may: Callable[[ObjectKey], bool],
        changed: Callable[[ObjectKey], None],
        clock: Callable[[], float],
        jitter: Randomness | None = None,
    ) -> None:
        self._api = api
        self._settings = settings
        self._first, self._second = queues
        self._listener = listener
        self._may = may
        self._changed = changed
        self._clock = clock
        self._jitter = jitter
        self._models: dict[str, dict[str, Standing]] = {}
        self._owed: dict[str, _Owed] = {}
        #: Last listing of a worker, and of which incarnation: many adapters on one worker are looked for in one answer.
        self._listings: dict[str, tuple[str, float, Listing]] = {}

    async def run(self) -> None:
        """Work until cancelled."""
        second = max(1, self._settings.concurrency // 4)
        first = self._settings.concurrency - second
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._first.run(first, self._work, reserved=first // 4, finish_within=0.0))
            tasks.create_task(self._second.run(second, self._work, reserved=second // 4, finish_within=0.0))

    def want(
        self,
        model: ObjectKey,
        uid: str,
        workers: Sequence[Worker],
        adapter: Adapter | None,
        stale: Sequence[str],
    ) -> Mapping[str, Standing]:
        """Say what a model's workers shall have loaded, and get how things stand, by uid of the pod.

        `workers` are all that exist, ready or not: one that is left out is gone. `stale` are names that may be loaded on
        workers of which nothing is known yet, and must not be.
        """
        standings = self._models.setdefault(uid, {})
        self.prune(uid, workers)
        for worker in workers:
            standing = standings.get(worker.uid)
            if standing is None:
                standing = standings[worker.uid] = Standing.unknown(model, worker, adapter, stale)
                act = not standing.idle
            else:
                act = standing.wish(worker, adapter, stale)
            if adapter is not None and self._take_over(standing, uid):
                act = not standing.idle
            if act:
                self._add(Place(uid, worker.uid, model.namespace), standing)
        return standings

    def drop(self, uid: str) -> None:
        """A model is nobody's here any more: nothing is asked for it, nothing remembered."""
        self._models.pop(uid, None)
        self._owed.pop(uid, None)

    def leave(self, model: KubeObject, names: Sequence[str]) -> list[Standing]:
        """A model goes: workers that have not let its adapters go are tried a while longer. Returns these."""
        uid = model["metadata"]["uid"]
        standings = self._models.get(uid, {})
        if uid not in self._owed:
            self._owed[uid] = _Owed(model, self._clock() + self._settings.unload_later)
        for pod, standing in list(standings.items()):
            if standing.adapter is not None and standing.wish(standing.worker, None, names):
                self._add(Place(uid, pod, model["metadata"]["namespace"]), standing)
            if standing.settled:
                del standings[pod]
        if not standings:
            self.drop(uid)
        return list(standings.values())

    def prune(self, uid: str, workers: Sequence[Worker]) -> None:
        """Forget workers that are gone, of a model that asks for nothing new."""
        present = {worker.uid for worker in workers}
        standings = self._models.get(uid, {})
        for gone in standings.keys() - present:
            del standings[gone]

    def pod_gone(self, uid: str) -> None:
        """A pod does not exist any more, and nothing that was loaded there."""
        for model in [model for model in self._owed if uid in self._models.get(model, {})]:
            del self._models[model][uid]
            if not self._models[model]:
                self.drop(model)
        self._listings.pop(uid, None)

    def disown(self) -> None:
        """Keys were lost to other replicas: what is theirs is forgotten, and looked at anew if it comes back."""
        self._end(lambda model: not self._may(model))

    async def release(self, gone: Callable[[ObjectKey], bool]) -> None:
        """Keys are about to be given away: requests for them end now, since the next replica may ask the same."""
        self._end(gone)
        for queue in (self._first, self._second):
            await queue.drain(lambda place: place.model not in self._models)

    def standings(self) -> Iterator[Standing]:
        """All there are, for figures."""
        for standings in self._models.values():
            yield from standings.values()

    def _end(self, concerns: Callable[[ObjectKey], bool]) -> None:
        for uid, standings in list(self._models.items()):
            if any(concerns(standing.model) for standing in standings.values()):
                self.drop(uid)
        for queue in (self._first, self._second):
            queue.abort(lambda place: place.model not in self._models)

    def _take_over(self, standing: Standing, uid: str) -> bool:
        """A model that is gone still owes the unloading of this name here: the newcomer sees to it. Says whether it did."""
        adapter = standing.adapter
        for other in self._owed:
            debt = self._models.get(other, {}).get(standing.worker.uid) if other != uid else None
            if debt is None or adapter is None or adapter.name not in debt.stale or debt.busy:
                continue
            debt.stale.discard(adapter.name)
            standing.stale.add(adapter.name)
            if adapter.name in debt.unanswered:
                standing.unanswered.add(adapter.name)
            standing.loaded = False
            standing.version += 1
            return True
        return False

    def _taken(self, place: Place, standing: Standing) -> bool:
        """Whether the debt of a model that is gone is at work on the name that shall be loaded here."""
        adapter = standing.adapter
        debts = (self._models.get(other, {}).get(place.pod) for other in self._owed if other != place.model)
        return adapter is not None and any(debt is not None and adapter.name in debt.stale for debt in debts)

    def _add(self, place: Place, standing: Standing, after: float = 0.0) -> None:
        (self._second if standing.failures else self._first).add(place, after)

    async def _work(self, place: Place) -> Result:
        standing = self._models.get(place.model, {}).get(place.pod)
        if standing is None:
            return Result()
        if standing.busy:
            standing.again = True
            return Result()
        if not self._may(standing.model):
            self.drop(place.model)
            return Result()
        owed = self._owed.get(place.model)
        if owed is not None and self._clock() >= owed.until:
            self._forget(place)
            self._listener.given_up(owed.model, standing)
            return Result()
        if standing.idle:
            return Result()
        if standing.adapter is not None and (self._take_over(standing, place.model) or self._taken(place, standing)):
            self._add(place, standing, TAKEN)
            return Result()
        standing.busy = True
        try:
            await self._try(standing)
        finally:
            standing.busy = False
        if self._models.get(place.model, {}).get(place.pod) is standing:
            self._go_on(place, standing)
        return Result()

    async def _try(self, standing: Standing) -> None:
        was, version = standing.loaded, standing.version
        try:
            listing = await settle(self._api, standing, self._clock, self._recent(standing))
        except LoraError as error:
            if standing.failed(str(error)):
                self._listener.failed(standing)
                log.info("failed, again later", model=str(standing.model), pod=standing.worker.pod, error=str(error))
        else:
            if listing is None:
                return
            self._remember(standing.worker, listing)
            if standing.loaded and not was:
                self._listener.loaded(standing)
            elif standing.adapter is None and standing.version == version:
                self._listener.unloaded(standing)
            if standing.loaded and was:
                return
        self._changed(standing.model)

    def _go_on(self, place: Place, standing: Standing) -> None:
        """When this worker is looked at next."""
        again, standing.again = standing.again, False
        if standing.failures:
            longest = self._settings.longest_retry
            self._add(place, standing, delay(standing.failures, FIRST_RETRY, longest, self._jitter))
        elif again or standing.version != standing.settled_version:
            self._add(place, standing)
        elif standing.adapter is not None:
            self._add(
                place, standing, spread(self._settings.probe_interval, least=0.75, most=1.25, randomness=self._jitter)
            )
        elif place.model in self._owed:
            self._forget(place)

    def _forget(self, place: Place) -> None:
        self._models[place.model].pop(place.pod, None)
        if not self._models[place.model]:
            self.drop(place.model)

    def _recent(self, standing: Standing) -> Listing | None:
        """A listing that is good enough to see that all is still as it was; whatever is to be done is begun with a new one."""
        worker = standing.worker
        incarnation, at, listing = self._listings.get(worker.uid, ("", float("-inf"), None))
        if (
            listing is None
            or incarnation != worker.incarnation
            or not standing.loaded
            or standing.stale
            or standing.adapter is None
        ):
            return None
        if standing.adapter.name not in listing.names or at <= standing.last_heard:
            return None
        return listing if self._clock() - at < self._settings.probe_interval / 2 else None

    def _remember(self, worker: Worker, listing: Listing) -> None:
        self._listings.pop(worker.uid, None)
        names = listing.names
        if len(names) > LISTED_NAMES or sum(map(len, names)) > LISTED_CHARACTERS:
            return
        if len(self._listings) >= LISTINGS:
            self._listings.clear()
        self._listings[worker.uid] = (worker.incarnation, self._clock(), listing)
