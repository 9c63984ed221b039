"""Assembles workers from records: all records of one process are one worker. Pure; the order of records does not
matter.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.wire.discovered import ModelCard, WorkerData

from dynamo_model_discovery.workers.locations import WorkerLocation, host_of
from dynamo_model_discovery.workers.records import EndpointRecord, Record

KUBERNETES = "kubernetes"
ETCD = "etcd"
FILE = "file"

#: Limits of the workers of one pod and of one namespace: a user of the namespace may register any number, and all
#: namespaces are assembled together. Each container may have several processes; 2,000 workers take 0.1 s.
MAX_WORKERS_OF_POD, MAX_WORKERS_OF_NAMESPACE = 32, 5000
#: Limit of the endpoints and cards of all workers of one namespace.
MAX_RECORDS_OF_NAMESPACE = 10 * MAX_WORKERS_OF_NAMESPACE
#: Limit of the models of one worker: a message has at most 1 MiB, a card has about 400 bytes.
MAX_MODELS = 500
MAX_ENDPOINTS = 100
#: Size limit of all cards of one worker. Bytes.
MAX_BYTES = 512 * 1024
#: So many cards cannot exceed MAX_BYTES, so their size is not computed.
_FEW = 32


@dataclass(frozen=True, slots=True)
class SourcedRecord:
    """A record, its source, and its location if the source knows it."""

    source: str
    record: Record
    location: WorkerLocation | None = None


@dataclass(frozen=True, slots=True)
class WorkerObservation:
    """The workers of all records."""

    workers: dict[ObjectKey, WorkerData]
    damaged: frozenset[ObjectKey] = frozenset()
    """workers with a record that is partly unreadable"""
    truncated: frozenset[str] = frozenset()
    """namespaces that exceed a limit; `workers` lacks some of their workers"""


@dataclass(slots=True)
class _Process:
    location: WorkerLocation | None
    endpoints: dict[str, EndpointRecord] = field(default_factory=dict)
    cards: dict[tuple[str, str], ModelCard] = field(default_factory=dict)
    """by endpoint and name"""
    damaged: bool = False


def assemble(records: Iterable[SourcedRecord], locations: Mapping[str, WorkerLocation]) -> WorkerObservation:
    """All workers, by the namespace of their pod and their name. `locations` has pods by address, for records without a
    pod.

    A process without an endpoint cannot be called, so it is not a worker.
    """
    processes: dict[tuple[str, str, str], _Process] = {}
    limiter = _Limiter()
    for each in records:
        known = each.location.namespace if each.location is not None else ""
        named = (each.source, known, each.record.identity.worker)
        if each.location is not None and not limiter.take(each.location, new=named not in processes):
            continue
        _add(processes.setdefault(named, _Process(each.location)), each.record)
    workers: dict[ObjectKey, WorkerData] = {}
    damaged: dict[ObjectKey, bool] = {}
    # Kubernetes comes last, so its workers replace those of other sources, which know only an address.
    for (source, _, _), process in sorted(processes.items(), key=lambda item: item[0][0] == KUBERNETES):
        if process.endpoints:
            worker = _worker(source, process, locations)
            key = ObjectKey(worker.namespace, worker.name)
            workers[key], damaged[key] = worker, process.damaged
    return WorkerObservation(
        workers, frozenset(key for key, is_damaged in damaged.items() if is_damaged), frozenset(limiter.truncated)
    )


class _Limiter:
    """Enforces the limits of pods and namespaces: the first records are used."""

    def __init__(self) -> None:
        self.truncated: set[str] = set()
        self._records: Counter[str] = Counter()
        self._workers_of_namespace: Counter[str] = Counter()
        self._workers_of_pod: Counter[tuple[str, str]] = Counter()

    def take(self, location: WorkerLocation, *, new: bool) -> bool:
        """Count a record, of a new or a known worker; returns False, without counting it, if it exceeds a limit."""
        namespace, pod = location.namespace, (location.namespace, location.pod)
        full = self._records[namespace] >= MAX_RECORDS_OF_NAMESPACE
        if new:
            full = full or self._workers_of_namespace[namespace] >= MAX_WORKERS_OF_NAMESPACE
            full = full or bool(location.pod and self._workers_of_pod[pod] >= MAX_WORKERS_OF_POD)
        if full:
            self.truncated.add(namespace)
            return False
        self._records[namespace] += 1
        self._workers_of_namespace[namespace] += new
        self._workers_of_pod[pod] += new
        return True


def _add(process: _Process, record: Record) -> None:
    identity = record.identity
    if isinstance(record, EndpointRecord):
        process.damaged |= record.damaged
        process.endpoints[identity.endpoint] = record
    elif record.card is None:
        process.damaged = True
    else:
        process.cards[identity.endpoint, record.card.name] = record.card


def _worker(source: str, process: _Process, locations: Mapping[str, WorkerLocation]) -> WorkerData:
    endpoints = dict(sorted(process.endpoints.items())[:MAX_ENDPOINTS])
    main = _main(endpoints, process.cards)
    location = process.location or _location_by_address(endpoints.values(), locations) or WorkerLocation("")
    models = _models(process.cards)
    return WorkerData(
        name=main.identity.worker,
        namespace=location.namespace,
        instance_id=str(main.identity.instance),
        dynamo_namespace=main.identity.namespace,
        component=main.identity.component,
        endpoints=list(endpoints),
        transport=main.transport,
        address=main.address,
        role=_role(models, location),
        source=source,
        graph_deployment=location.graph,
        graph_component=location.component,
        pod=location.pod,
        pod_uid=location.pod_uid,
        container=location.container,
        device_type=main.device_type,
        models=models,
    )


def _main(endpoints: Mapping[str, EndpointRecord], cards: Iterable[tuple[str, str]]) -> EndpointRecord:
    """The endpoint of a model card, otherwise the endpoint `generate`, otherwise the first by name."""
    for name in [*sorted(endpoint for endpoint, _ in cards), "generate"]:
        if name in endpoints:
            return endpoints[name]
    return next(iter(endpoints.values()))


def _location_by_address(
    endpoints: Iterable[EndpointRecord], locations: Mapping[str, WorkerLocation]
) -> WorkerLocation | None:
    return next((locations[host] for each in endpoints for host in [host_of(each.address)] if host in locations), None)


def _models(cards: Mapping[tuple[str, str], ModelCard]) -> list[ModelCard]:
    # The same model at two endpoints of a process is one model; the card of the first endpoint counts.
    by_name = {name: card for (_, name), card in sorted(cards.items(), key=lambda item: item[0], reverse=True)}
    bases = [card.name for card in by_name.values() if not card.lora]
    models = []
    for _, card in sorted(by_name.items())[:MAX_MODELS]:
        adapter = card.lora and not card.base_model and len(bases) == 1
        models.append(msgspec.structs.replace(card, base_model=bases[0]) if adapter else card)
    return models if len(models) <= _FEW else list(_within(models, MAX_BYTES))


def _within(cards: Iterable[ModelCard], limit: int) -> Iterator[ModelCard]:
    """The first cards that together have at most `limit` bytes."""
    size = 0
    for card in cards:
        size += len(msgspec.json.encode(card))
        if size > limit:
            return
        yield card


def _role(models: list[ModelCard], location: WorkerLocation) -> str:
    declared = sorted((card.lora, card.worker_type) for card in models if card.worker_type)
    if declared:
        return declared[0][1]
    if not models:
        return ""
    # Older cards lack the type: only the graph distinguishes a decode worker from an aggregated worker.
    return location.worker_type or "aggregated"
