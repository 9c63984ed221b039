"""Keeps the desired adapters loaded on their workers, in parallel to the reconciles, which never wait for a worker.

There are two queues. A worker whose last attempt failed is in the second queue, which has a quarter of the tasks: hanging
workers can block only these.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

import structlog
from dynamo_shared.aio import delay, spread
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.runtime import Result, WorkQueue
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.runtime.settings.model_discovery import ModelDiscovery

from dynamo_model_discovery import events
from dynamo_model_discovery.lora.adapter import Adapter
from dynamo_model_discovery.lora.adapter_state import AdapterState
from dynamo_model_discovery.lora.api import Listing, WorkerApi
from dynamo_model_discovery.lora.responses import LoraError
from dynamo_model_discovery.lora.settle import settle
from dynamo_model_discovery.models.workers import Worker

#: Pause after the first failure. Seconds.
FIRST_RETRY = 0.5
#: Pause before a retry while another task works on the same name at the same worker. Seconds.
BUSY_RETRY = 0.5
#: Limit of the cached listings (one per worker), and limits of the names and characters of a cached listing.
MAX_LISTINGS = 20_000
MAX_LISTED_NAMES = 2_000
MAX_LISTED_CHARACTERS = 128 * 1024
#: Size limit of all cached listings, because workers of tenants may list any names. Bytes.
MAX_LISTED_BYTES = 64 << 20
#: Memory of a name in addition to its characters. Bytes.
NAME_BYTES = 150
_METADATA = frozenset({"name", "namespace", "uid", "resourceVersion"})

log = structlog.get_logger("dynamo.model-discovery.lora")


class WorkerModel(NamedTuple):
    """One model at one worker."""

    model: str
    """uid"""
    pod: str
    """uid"""
    namespace: str


def lane(place: WorkerModel) -> str:
    """The lane of a task, its namespace: lanes take turns."""
    return place.namespace


@dataclass(frozen=True, slots=True)
class _PendingUnload:
    """A deleted model whose adapter workers may still have."""

    model: KubeObject
    """only the fields that an Event needs"""
    until: float
    """end of the retries, by the clock"""


@dataclass(eq=False)
class AdapterKeeper:
    """Desired and observed adapters of all workers. Call its methods only in one event loop.

    `model` reads a model of a uid, `may` says whether this replica may work on it, `changed` requests a reconcile of it.
    """

    api: WorkerApi
    settings: ModelDiscovery
    queue: WorkQueue[WorkerModel]
    failing: WorkQueue[WorkerModel]
    """the queue of workers after a failure"""
    announcer: Announcer
    _: KW_ONLY
    model: Callable[[ObjectKey, str], KubeObject | None]
    may: Callable[[ObjectKey], bool]
    changed: Callable[[ObjectKey], None]
    clock: Callable[[], float]
    _models: dict[str, dict[str, AdapterState]] = field(default_factory=dict, init=False)
    _loads: Counter[str] = field(default_factory=Counter, init=False)
    """number of states by namespace"""
    _pending: dict[str, _PendingUnload] = field(default_factory=dict, init=False)
    _pending_by_pod: dict[str, dict[str, None]] = field(default_factory=dict, init=False)
    """uids of deleted models that must be unloaded, by uid of the pod: an index of `_pending`, which may be large"""
    _listings: dict[str, tuple[str, float, Listing]] = field(default_factory=dict, init=False)
    """last listing by uid of the pod, with incarnation and time: one listing serves many adapters on a worker"""
    _listed_bytes: int = field(default=0, init=False)

    async def run(self) -> None:
        """Work until cancelled."""
        second = max(1, self.settings.concurrency // 4)
        first = self.settings.concurrency - second
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.queue.run(first, self._work, reserved=first // 4, finish_within=0.0))
            tasks.create_task(self.failing.run(second, self._work, reserved=second // 4, finish_within=0.0))

    def loads_of_others(self, namespace: str, uid: str) -> int:
        """Number of adapters on the workers of a namespace, without those of one model: for the limit of a namespace."""
        return self._loads[namespace] - len(self._models.get(uid, ()))

    def set_desired(
        self,
        model: ObjectKey,
        uid: str,
        workers: Sequence[Worker],
        adapter: Adapter | None,
        stale: Sequence[str],
    ) -> Mapping[str, AdapterState]:
        """Set the desired adapter of a model's workers; returns their states by uid of the pod.

        `workers`: all existing workers, ready or not; a missing worker counts as deleted. `stale`: names that may be
        loaded for the model, and must be unloaded.
        """
        states = self._models.setdefault(uid, {})
        self.prune(uid, workers)
        for worker in workers:
            state = states.get(worker.uid)
            if state is None:
                state = states[worker.uid] = AdapterState.unknown(model, worker, adapter, stale)
                self._loads[model.namespace] += 1
                act = not state.idle
            else:
                act = state.set_desired(worker, adapter, stale)
            if state.take_over(self._pending_unloads(uid, state)):
                act = not state.idle
            if act:
                self._add(WorkerModel(uid, worker.uid, model.namespace), state)
        return states

    def drop(self, uid: str) -> None:
        """A model is no longer managed here: discard its states; running requests have no effect on states."""
        for pod in tuple(self._models.get(uid, {})):
            self._abandon(uid, pod)
        self._models.pop(uid, None)
        self._pending.pop(uid, None)

    def unload_deleted(self, model: KubeObject, names: Sequence[str]) -> list[AdapterState]:
        """A model is deleted: unload its adapters until `settings.unload_later` has passed. Returns the states of workers
        that may still have one.
        """
        uid = model["metadata"]["uid"]
        states = self._models.get(uid, {})
        if uid not in self._pending:
            self._pending[uid] = _PendingUnload(_event_fields(model), self.clock() + self.settings.unload_later)
        for pod, state in list(states.items()):
            if state.adapter is not None and state.set_desired(state.worker, None, names):
                self._add(WorkerModel(uid, pod, model["metadata"]["namespace"]), state)
            if state.settled:
                self._abandon(uid, pod)
            else:
                self._pending_by_pod.setdefault(pod, {})[uid] = None
        if not states:
            self.drop(uid)
        return list(states.values())

    def prune(self, uid: str, workers: Sequence[Worker]) -> None:
        """Discard the states of a model's deleted workers: those that are not in `workers`."""
        present = {worker.uid for worker in workers}
        states = self._models.get(uid, {})
        for gone in states.keys() - present:
            self._abandon(uid, gone)

    def pod_gone(self, uid: str) -> None:
        """A pod no longer exists or has left its address, or another replica owns it: discard its pending unloads."""
        for model in tuple(self._pending_by_pod.get(uid, ())):
            self._forget(model, uid)
        self._forget_listing(uid)

    def disown(self) -> None:
        """Other replicas now own some keys: discard their states."""
        self._end(lambda model: not self.may(model))

    async def release(self, gone: Callable[[ObjectKey], bool]) -> None:
        """Before keys are released: cancel their requests, because the next owner may send the same ones."""
        self._end(gone)
        for queue in (self.queue, self.failing):
            await queue.drain(lambda place: place.model not in self._models)

    def states(self) -> Iterator[AdapterState]:
        """All states, for metrics."""
        for states in self._models.values():
            yield from states.values()

    def _end(self, concerns: Callable[[ObjectKey], bool]) -> None:
        for uid, states in list(self._models.items()):
            if any(concerns(state.model) for state in states.values()):
                self.drop(uid)
        for queue in (self.queue, self.failing):
            queue.abort(lambda place: place.model not in self._models)

    def _pending_unloads(self, uid: str, state: AdapterState) -> list[AdapterState]:
        """States of deleted models that must still unload the desired name of this state from its worker."""
        pod = state.worker.uid
        pending = (self._models[other][pod] for other in self._pending_by_pod.get(pod, ()) if other != uid)
        return [unload for unload in pending if state.waits_for(unload)]

    def _add(self, place: WorkerModel, state: AdapterState, after: float = 0.0) -> None:
        (self.failing if state.failures else self.queue).add(place, after)

    async def _work(self, place: WorkerModel) -> Result:
        state = self._models.get(place.model, {}).get(place.pod)
        if state is None:
            return Result()
        if state.busy:
            state.rerun = True
            return Result()
        if not self.may(state.model):
            self.drop(place.model)
            return Result()
        pending = self._pending.get(place.model)
        if pending is not None and self.clock() >= pending.until:
            self._forget(place.model, place.pod)
            self.announcer.announce(pending.model, events.cleanup_failed(pending.model, state))
            return Result()
        if state.idle:
            return Result()
        if unloads := self._pending_unloads(place.model, state):
            state.take_over(unloads)
            self._add(place, state, BUSY_RETRY)
            return Result()
        state.busy = True
        try:
            await self._try(place.model, state)
        finally:
            state.busy = False
        if self._models.get(place.model, {}).get(place.pod) is state:
            self._enqueue_next(place, state)
        return Result()

    async def _try(self, uid: str, state: AdapterState) -> None:
        was, version, recent = state.loaded, state.version, self._recent(state)
        try:
            listing = await settle(self.api, state, self.clock, recent)
        except LoraError as error:
            if state.failed(str(error), version):
                self._announce("failed", uid, state)
                log.info(
                    "request to a worker failed, will retry",
                    model=str(state.model),
                    pod=state.worker.pod,
                    error=str(error),
                )
        else:
            if listing is None:
                if was and not state.loaded:
                    self.changed(state.model)
                return
            if listing is not recent:
                # A cached listing retains its age: otherwise the adapters of a worker would prevent a new request.
                self._cache_listing(state.worker, listing)
            if state.loaded and not was:
                self._announce("loaded", uid, state)
            elif state.adapter is None and state.version == version:
                self._announce("unloaded", uid, state)
            if state.loaded and was:
                return
        self.changed(state.model)

    def _announce(self, event: str, uid: str, state: AdapterState) -> None:
        # The pending unloads of a deleted model do not concern a new model with its name.
        if (model := self.model(state.model, uid)) is not None:
            self.announcer.announce(model, events.adapter(event, model, state))

    def _enqueue_next(self, place: WorkerModel, state: AdapterState) -> None:
        """Queue the next work on this worker."""
        again, state.rerun = state.rerun, False
        if state.failures:
            longest = self.settings.longest_retry
            self._add(place, state, delay(state.failures, FIRST_RETRY, longest))
        elif again or state.version != state.settled_version:
            self._add(place, state)
        elif state.adapter is not None:
            self._add(place, state, spread(self.settings.probe_interval, least=0.75, most=1.25))
        elif place.model in self._pending:
            self._forget(place.model, place.pod)

    def _forget(self, model: str, pod: str) -> None:
        self._abandon(model, pod)
        if not self._models[model]:
            self.drop(model)

    def _recent(self, state: AdapterState) -> Listing | None:
        """A cached listing that is recent enough to confirm that the adapter is loaded; None if a request is needed."""
        worker = state.worker
        incarnation, at, listing = self._listings.get(worker.uid, ("", float("-inf"), None))
        if listing is None or incarnation != worker.incarnation or at <= state.last_listed:
            return None
        if not state.loaded or state.stale or state.adapter is None or state.adapter.name not in listing.names:
            return None
        return listing if self.clock() - at < self.settings.probe_interval / 2 else None

    def _cache_listing(self, worker: Worker, listing: Listing) -> None:
        self._forget_listing(worker.uid)
        names = listing.names
        if len(names) > MAX_LISTED_NAMES or sum(map(len, names)) > MAX_LISTED_CHARACTERS:
            return
        self._listings[worker.uid] = (worker.incarnation, self.clock(), listing)
        self._listed_bytes += _size(listing)
        while len(self._listings) > MAX_LISTINGS or self._listed_bytes > MAX_LISTED_BYTES:
            self._forget_listing(next(iter(self._listings)))

    def _forget_listing(self, pod: str) -> None:
        if (known := self._listings.pop(pod, None)) is not None:
            self._listed_bytes -= _size(known[2])

    def _abandon(self, model: str, pod: str) -> None:
        """Discard a state. A running attempt stops at its next step: another pod may get the address of a deleted pod."""
        state = self._models[model].pop(pod)
        state.version += 1
        namespace = state.model.namespace
        self._loads[namespace] -= 1
        if not self._loads[namespace]:
            del self._loads[namespace]
        models = self._pending_by_pod.get(pod, {})
        models.pop(model, None)
        if not models:
            self._pending_by_pod.pop(pod, None)


def _size(listing: Listing) -> int:
    return sum(map(len, listing.names)) + NAME_BYTES * len(listing.names)


def _event_fields(model: KubeObject) -> KubeObject:
    """The fields of a model that an Event needs: a whole model may have a megabyte, and users may delete many."""
    metadata = {name: value for name, value in model["metadata"].items() if name in _METADATA}
    spec = {"modelName": model.get("spec", {}).get("modelName", "")}
    return {
        **{name: model[name] for name in ("apiVersion", "kind") if name in model},
        "metadata": metadata,
        "spec": spec,
    }
