"""The status of a DynamoModel, from its workers and their states."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from dynamo_shared.api.conditions import condition_of
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.wording import many

from dynamo_model_discovery.models.workers import Worker, WorkerSet

ENDPOINTS_READY = "EndpointsReady"
SERVICES_FOUND = "ServicesFound"

#: Limit of the pods and failures that a message names; it counts the rest.
NAMED = 5
#: Limit of the workers in a status: those of a model with 10,000 pods would take 1 MB, the limit of etcd for an object.
LISTED = 1000


@dataclass(frozen=True, slots=True)
class ModelReadiness:
    """Whether a model is served, with the condition's reason and message."""

    ready: bool
    reason: str
    message: str
    failures: Mapping[str, str] = field(default_factory=dict)
    """the last error of a pod that has not loaded the adapter, by pod"""


def base_verdict(workers: WorkerSet, base: str) -> ModelReadiness:
    """The readiness of a base model, which needs no loading: ready workers serve it."""
    if not workers.ready:
        return without_workers(workers, base)
    count = len(workers.ready)
    return ModelReadiness(True, "EndpointsDiscovered", f"{_workers(count)} {base!r}{_absent(workers)}")


def adapter_verdict(
    workers: WorkerSet, base: str, loaded: Sequence[Worker], failures: Mapping[str, str]
) -> ModelReadiness:
    """The readiness of an adapter: it is ready if all ready workers have loaded it."""
    total = len(workers.ready)
    if not total:
        return without_workers(workers, base)
    have = f"{len(loaded)} of {total} {'worker has' if total == 1 else 'workers have'} the adapter loaded"
    if len(loaded) == total:
        return ModelReadiness(True, "AllEndpointsReady", have + _absent(workers))
    return ModelReadiness(False, "NotReady", f"{have}{_failing(failures)}{_absent(workers)}", failures)


def unloading_verdict(workers: int, failures: Mapping[str, str]) -> ModelReadiness:
    """The readiness of an adapter that is being deleted, while `workers` workers may still have it."""
    have = "1 worker may" if workers == 1 else f"{workers} workers may"
    return ModelReadiness(False, "Unloading", f"{have} still have the adapter loaded{_failing(failures)}", failures)


def without_workers(workers: WorkerSet, base: str) -> ModelReadiness:
    """The readiness of a model without ready workers."""
    if workers.absent:
        return ModelReadiness(False, "NoEndpoints", f"no worker serves {base!r}{_absent(workers)}")
    message = f"no worker serves {base!r}: no pod of this namespace belongs to a component with modelRef.name {base!r}"
    return ModelReadiness(False, "NoEndpoints", message)


def status_of(
    model: KubeObject, workers: WorkerSet, verdict: ModelReadiness, serving: Sequence[Worker], now: datetime
) -> KubeObject:
    """The whole status; `serving` are the workers that have the model loaded."""
    has = {worker.uid for worker in serving}
    endpoints = [{"address": worker.url, "podName": worker.pod, "ready": worker.uid in has} for worker in workers.ready]
    services = _services(workers)
    more = len(endpoints) - LISTED
    if more > 0:
        verdict = replace(verdict, message=f"{verdict.message}; {more} workers are not listed in status.endpoints")
    return {
        # Also written if empty: otherwise a list of the reference operator would stay.
        "endpoints": endpoints[:LISTED],
        "readyEndpoints": sum(entry["ready"] is True for entry in endpoints),
        "totalEndpoints": len(endpoints),
        "conditions": [
            condition_of(model, type_, each.ready, each.reason, each.message, now=now)
            for type_, each in ((ENDPOINTS_READY, verdict), (SERVICES_FOUND, services))
        ],
    }


def _services(workers: WorkerSet) -> ModelReadiness:
    if not workers.services:
        message = "no EndpointSlice of this namespace belongs to a Service of the base model"
        return ModelReadiness(False, "NoServicesFound", message)
    return ModelReadiness(True, "ServicesFound", f"EndpointSlices of {', '.join(workers.services[:NAMED])}")


def _workers(count: int) -> str:
    return "1 worker serves" if count == 1 else f"{count} workers serve"


def _failing(failures: Mapping[str, str]) -> str:
    if not failures:
        return ""
    shown = [f"{pod}: {failures[pod]}" for pod in sorted(failures)[:NAMED]]
    return f"; {len(failures)} failing: {'; '.join(shown)}{_more(len(failures))}"


def _absent(workers: WorkerSet) -> str:
    if not workers.absent:
        return ""
    reasons = Counter(why for _, why in workers.absent)
    if len(workers.absent) <= NAMED:
        return "; not among them: " + ", ".join(f"{pod} ({why})" for pod, why in workers.absent)
    parts = ", ".join(f"{many(count, 'pod')} ({why})" for why, count in reasons.most_common(NAMED))
    return f"; not among them: {parts}"


def _more(count: int) -> str:
    return f"; and {count - NAMED} more" if count > NAMED else ""
