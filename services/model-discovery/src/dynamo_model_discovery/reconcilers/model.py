"""Reconciles a DynamoModel: discovers its workers, loads its adapter there, and reports progress in its status.

One of these cases applies, checked in this order:

1. The model no longer exists, or was replaced: nothing to do.
2. The model is being deleted: its adapter is unloaded everywhere, within a time limit; then the finalizer is removed.
3. It is a base model, which needs no loading: the ready workers serve it. An adapter from an earlier spec is unloaded.
4. It is an adapter that cannot be loaded (bad name, bad source, or another model has the name): the status says so.
5. It is a valid adapter: an annotation records what may be loaded, then the keeper loads it, and the status reports the
   progress.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from dynamo_shared.api import objects
from dynamo_shared.api.base_models import base_model_hash
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import LOADED_ADAPTER
from dynamo_shared.api.resources import DYNAMO_MODELS, ENDPOINT_SLICES, GROUP, PODS, ObjectKey, key_of
from dynamo_shared.api.wording import many
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import NotFound
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.runtime.settings.model_discovery import ModelDiscovery
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.state.cache import ObjectCache

from dynamo_model_discovery import events
from dynamo_model_discovery.lora.adapter import (
    Adapter,
    AdapterRecord,
    InvalidAdapter,
    adapter_of,
    advanced,
    is_lora,
    is_segment,
    record_of,
    written,
)
from dynamo_model_discovery.lora.keeper import AdapterKeeper
from dynamo_model_discovery.lora.names import NAME_INDEX, claim, rank, requests_name
from dynamo_model_discovery.models.status import (
    ENDPOINTS_READY,
    ModelReadiness,
    adapter_verdict,
    base_verdict,
    status_of,
    unloading_verdict,
)
from dynamo_model_discovery.models.workers import Worker, WorkerSet, find_workers, index_value, of_pods
from dynamo_model_discovery.routing import BASE_MODEL_INDEX

FINALIZER = f"{GROUP}/finalizer"
"""The reference operator's finalizer, so that models of that operator are deleted in the same way."""


NAME_TAKEN, TOO_MANY = "NameTaken", "TooManyAdapters"

#: Interval of retries of an adapter that exceeds the limit of its namespace. Seconds.
LIMIT_RETRY = 60.0

#: The status reports an unload only if it takes longer than this. Seconds.
REPORT_AFTER = 1.0


@dataclass(slots=True)
class ModelReconciler:
    """Reconciles one DynamoModel."""

    kube: KubeClient
    cache: ObjectCache
    statuses: StatusWriter
    keeper: AdapterKeeper
    announcer: Announcer
    settings: ModelDiscovery
    clock: Callable[[], float]
    now: Callable[[], datetime]
    #: Start of the unload by uid, by the clock.
    _deleting: dict[str, float] = field(default_factory=dict)
    #: Errors of failing workers in the last report, by uid.
    _failures: dict[str, frozenset[str]] = field(default_factory=dict)

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile the model as far as possible now."""
        model = self.cache.get(DYNAMO_MODELS, key)
        if model is None or "spec" not in model:
            return Result()
        workers = await self._workers(model)
        before, model = model, self.cache.get(DYNAMO_MODELS, key)
        if model is None or (objects.uid(model), model.get("spec")) != (objects.uid(before), before["spec"]):
            # The model was deleted, replaced or changed; a change has its own reconcile.
            return Result()
        if objects.is_deleting(model):
            return await self._delete(model, workers)
        spec = model["spec"]
        base = spec.get("baseModelName", "")
        if not is_lora(spec):
            verdict = base_verdict(workers, base)
            if record_of(model) is not None:
                return await self._clear(model, workers, verdict, workers.ready)
            return await self._report(model, workers, verdict, workers.ready)
        try:
            adapter = adapter_of(spec)
            self._check_name(model, adapter.name)
            self._check_limit(model, workers)
        except InvalidAdapter as invalid:
            verdict = ModelReadiness(False, invalid.reason, str(invalid))
            if invalid.reason == NAME_TAKEN and record_of(model) is not None:
                return await self._clear(model, workers, verdict, ())
            self.keeper.prune(model["metadata"]["uid"], workers.workers)
            result = await self._report(model, workers, verdict, ())
            return Result(LIMIT_RETRY) if invalid.reason == TOO_MANY and result.requeue_after is None else result
        remembered = await self._remember(model, advanced(record_of(model), adapter))
        if remembered is None:
            return Result()
        model, record = remembered
        return await self._keep(model, workers, adapter, record)

    def gone(self, model: KubeObject, *, owned: bool) -> None:
        """A model no longer exists. If this replica owned it (`owned`), its keeper unloads the remaining adapters."""
        self.announcer.announce(model, events.gone(model))
        if owned:
            self.keeper.unload_deleted(model, self._to_unload(model))
        else:
            self.keeper.drop(model["metadata"]["uid"])
        self._failures.pop(model["metadata"]["uid"], None)
        self._deleting.pop(model["metadata"]["uid"], None)

    async def _keep(self, model: KubeObject, workers: WorkerSet, adapter: Adapter, record: AdapterRecord) -> Result:
        """Load the adapter on all workers."""
        uid, base = model["metadata"]["uid"], model["spec"].get("baseModelName", "")
        states = self.keeper.set_desired(key_of(model), uid, workers.workers, adapter, record.previous)
        loaded = [worker for worker in workers.ready if states[worker.uid].loaded]
        failures = {
            states[worker.uid].worker.pod: states[worker.uid].failure
            for worker in workers.ready
            if states[worker.uid].failure
        }
        if record.previous and all(state.settled for state in states.values()):
            remembered = await self._remember(model, AdapterRecord(record.name, record.source))
            if remembered is None:
                return Result()
            model = remembered[0]
        return await self._report(model, workers, adapter_verdict(workers, base, loaded, failures), loaded)

    async def _clear(
        self, model: KubeObject, workers: WorkerSet, verdict: ModelReadiness, serving: Sequence[Worker]
    ) -> Result:
        """Unload the adapters that were loaded for a model.

        Either another model has the new name: without this, two models that swap names would wait for each other. Or the
        model is no longer an adapter: admission, which refuses a change of the type, was down.
        """
        names = self._to_unload(model)
        states = self.keeper.set_desired(key_of(model), model["metadata"]["uid"], workers.workers, None, names)
        if all(state.settled for state in states.values()):
            patched = await self._patch(model, {"annotations": {LOADED_ADAPTER: None}})
            self.keeper.drop(model["metadata"]["uid"])
            if patched is None:
                return Result()
            model = patched
        return await self._report(model, workers, verdict, serving)

    async def _delete(self, model: KubeObject, workers: WorkerSet) -> Result:
        """Unload the adapter from all workers, then remove the finalizer; after `unload_within` seconds in any case."""
        metadata = model["metadata"]
        uid = metadata["uid"]
        if FINALIZER not in metadata.get("finalizers", ()):
            return Result()
        names = self._to_unload(model)
        began = self._deleting.setdefault(uid, self.clock())
        states = self.keeper.set_desired(key_of(model), uid, workers.workers, None, names) if names else {}
        unsettled = [state for state in states.values() if not state.settled]
        remaining = began + self.settings.unload_within - self.clock()
        if unsettled and remaining > 0:
            failures = {state.worker.pod: state.failure for state in unsettled if state.failure}
            quiet = began + REPORT_AFTER - self.clock()
            if quiet > 0 and not failures:
                return Result(requeue_after=min(remaining, quiet))
            again = await self._report(model, workers, unloading_verdict(len(unsettled), failures), ())
            return Result(requeue_after=min(remaining, again.requeue_after or remaining))
        if unsettled:
            self.announcer.announce(model, events.unload_failed(self.keeper.unload_deleted(model, names), names))
        elif states:
            self.announcer.announce(model, events.unloaded(names, len(states)))
        await self._patch(model, {"finalizers": objects.without_finalizer(model, FINALIZER)})
        if not unsettled:
            # After the patch: if the patch fails, the next reconcile still has the states.
            self.keeper.drop(uid)
        return Result()

    def _to_unload(self, model: KubeObject) -> tuple[str, ...]:
        """Names that may be loaded for a model, without names that another model has taken over."""
        spec, record = model.get("spec", {}), record_of(model)
        if record is None:
            # The reference operator loads adapters without a record.
            names: tuple[str, ...] = (spec["modelName"],) if is_lora(spec) and spec.get("modelName") else ()
        else:
            names = record.names
        taken = {
            name
            for name in names
            for other in self._rivals(model, name)
            if not objects.is_deleting(other)
            and (other_record := record_of(other)) is not None
            and other_record.name == name
        }
        return tuple(name for name in names if name not in taken and is_segment(name))

    def _check_name(self, model: KubeObject, name: str) -> None:
        """Raises InvalidAdapter if another model has the name: a worker can have only one adapter of a name."""
        own_rank = rank(model, name)
        for other in self._rivals(model, name):
            other_model = f"DynamoModel {other['metadata']['name']!r}"
            if requests_name(other, name):
                if rank(other, name) < own_rank:
                    message = f"{name!r} is taken by {other_model}; choose another name, or delete that model"
                    raise InvalidAdapter(NAME_TAKEN, f"spec.modelName: {message}")
                continue
            # A deleted model has unloaded its adapters once its finalizer is removed.
            record = record_of(other)
            deleted = objects.is_deleting(other) and FINALIZER not in other["metadata"].get("finalizers", ())
            if record is not None and name in record.names and not deleted:
                message = f"{name!r} was loaded for {other_model} and is being unloaded"
                raise InvalidAdapter(NAME_TAKEN, f"{message}: this adapter is loaded after that")

    def _check_limit(self, model: KubeObject, workers: WorkerSet) -> None:
        """Raises InvalidAdapter if the adapters of the namespace would be on more workers in total than allowed."""
        others = self.keeper.loads_of_others(objects.namespace(model), objects.uid(model))
        limit = self.settings.loads_per_namespace
        if others + len(workers.workers) > limit:
            message = (
                f"the adapters of this namespace are on {many(others, 'worker')} in total, and "
                f"{len(workers.workers)} more would exceed the limit of {limit}: delete DynamoModels, use another "
                "namespace, or raise platform.modelDiscovery.loadsPerNamespace"
            )
            raise InvalidAdapter(TOO_MANY, message)

    def _rivals(self, model: KubeObject, name: str) -> list[KubeObject]:
        """All other models of the same base in the namespace that request a name or may have loaded it."""
        uid, models = model["metadata"]["uid"], self.cache.by_index(DYNAMO_MODELS, NAME_INDEX, claim(model, name))
        return [each for each in models if each["metadata"]["uid"] != uid]

    async def _workers(self, model: KubeObject) -> WorkerSet:
        namespace, base = model["metadata"]["namespace"], model["spec"].get("baseModelName", "")
        value = index_value(namespace, base_model_hash(base))
        slices = []
        for key in tuple(self.cache.keys_by_index(ENDPOINT_SLICES, BASE_MODEL_INDEX, value)):
            if (each := self.cache.get(ENDPOINT_SLICES, key)) is not None:
                slices.append(of_pods(each, self.cache.keys_by_index(PODS, BASE_MODEL_INDEX, value)))
            # A slice has up to 1,000 endpoints, and users may create hundreds: let other tasks run in between.
            await asyncio.sleep(0)
        pods = await self.cache.read_by_index(PODS, BASE_MODEL_INDEX, value)
        return find_workers(pods, slices, port=self.settings.worker_port)

    async def _remember(self, model: KubeObject, record: AdapterRecord) -> tuple[KubeObject, AdapterRecord] | None:
        """Write the record and the finalizer to the model; returns the patched model, or None if it no longer exists."""
        finalizers = model["metadata"].get("finalizers", [])
        if record == record_of(model) and FINALIZER in finalizers:
            return model, record
        kept = finalizers if FINALIZER in finalizers else [*finalizers, FINALIZER]
        changes = {"finalizers": kept, "annotations": {LOADED_ADAPTER: written(record)}}
        patched = await self._patch(model, changes)
        return None if patched is None else (patched, record)

    async def _patch(self, model: KubeObject, changes: KubeObject) -> KubeObject | None:
        metadata = {"resourceVersion": model["metadata"]["resourceVersion"], **changes}
        try:
            patched = await self.kube.merge_patch(DYNAMO_MODELS, key_of(model), {"metadata": metadata})
        except NotFound:
            self.cache.remove(DYNAMO_MODELS, key_of(model), model["metadata"]["uid"])
            return None
        if objects.is_deleting(patched) and not patched["metadata"].get("finalizers"):
            self.cache.remove(DYNAMO_MODELS, key_of(model), model["metadata"]["uid"])
        else:
            self.cache.put(DYNAMO_MODELS, patched)
        return patched

    async def _report(
        self, model: KubeObject, workers: WorkerSet, verdict: ModelReadiness, serving: Sequence[Worker]
    ) -> Result:
        status = status_of(model, workers, verdict, serving, self.now())
        urgent = _ready_reason(model) != _ready_reason({"status": status})
        again = await self.statuses.write(
            DYNAMO_MODELS,
            model,
            status,
            urgent=urgent,
            report=lambda: self._announce(model, status, verdict),
        )
        return Result(requeue_after=again)

    def _announce(self, model: KubeObject, status: KubeObject, verdict: ModelReadiness) -> None:
        """Announce new errors of workers, and a changed readiness. More workers with a known error are not announced."""
        uid, failures = model["metadata"]["uid"], frozenset(verdict.failures.values())
        if failures - self._failures.pop(uid, frozenset()):
            self.announcer.announce(model, events.PARTIAL_FAILURE(verdict.message))
        if failures:
            self._failures[uid] = failures
        before = objects.condition(model, ENDPOINTS_READY)
        if before is None or (before["status"], before["reason"]) != (str(verdict.ready), verdict.reason):
            self.announcer.announce(model, events.changed(model, status, verdict))


def _ready_reason(model: KubeObject) -> object:
    return (objects.condition(model, ENDPOINTS_READY) or {}).get("reason")
