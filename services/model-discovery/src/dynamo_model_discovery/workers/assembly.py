"""Assembles workers from records: all records of one process are one worker. Pure; the order of records does not
matter.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.wire.discovered import ModelCard, WorkerData

from dynamo_model_discovery.workers.places import WorkerLocation, host_of
from dynamo_model_discovery.workers.records import EndpointRecord, Record

KUBERNETES = "kubernetes"
ETCD = "etcd"
FILE = "file"

#: Largest number of workers of one pod, and of one namespace: a user who may write there can name any number, and all
#: namespaces are assembled together. Each container may have several processes; 2,000 workers take a tenth of a second.
MOST_OF_POD, MOST_OF_NAMESPACE = 32, 5000
#: Largest number of endpoints and cards of all workers of one namespace.
MOST_RECORDS_OF_NAMESPACE = 10 * MOST_OF_NAMESPACE
#: Largest number of models of one worker. A message holds 1 MiB, a card about 400 bytes.
MOST_MODELS = 500
MOST_ENDPOINTS = 100
#: Size limit of all cards of one worker in bytes; only many cards reach it.
MOST_BYTES = 512 * 1024
_FEW = 32


@dataclass(frozen=True, slots=True)
class SourcedRecord:
    """A record, its source, and its location if the source knows it."""

    source: str
    record: Record
    place: WorkerLocation | None = None


@dataclass(frozen=True, slots=True)
class WorkerObservation:
    """The result of all records."""

    workers: dict[ObjectKey, WorkerData]
    damaged: frozenset[ObjectKey] = frozenset()
    """those of which a part could not be read"""
    left_out: frozenset[str] = frozenset()
    """namespaces with more than is put together"""


@dataclass(slots=True)
class _Process:
    place: WorkerLocation | None
    endpoints: dict[str, EndpointRecord] = field(default_factory=dict)
    cards: dict[tuple[str, str], ModelCard] = field(default_factory=dict)
    """by endpoint and name"""
    damaged: bool = False


def assemble(records: Iterable[SourcedRecord], places: Mapping[str, WorkerLocation]) -> WorkerObservation:
    """All workers, by the namespace of their pod and their name. `places`: pods by address, for records without a pod.

    A process with a model but without an endpoint cannot be called, so it is not a worker.
    """
    processes: dict[tuple[str, str, str], _Process] = {}
    room = _Room()
    for each in records:
        known = each.place.namespace if each.place is not None else ""
        named = (each.source, known, each.record.identity.worker)
        if each.place is not None and not room.take(each.place, new=named not in processes):
            continue
        _add(processes.setdefault(named, _Process(each.place)), each.record)
    workers: dict[ObjectKey, WorkerData] = {}
    damaged: dict[ObjectKey, bool] = {}
    # Kubernetes comes last and has priority: it knows more than an address.
    for (source, _, _), process in sorted(processes.items(), key=lambda item: item[0][0] == KUBERNETES):
        if process.endpoints:
            worker = _worker(source, process, places)
            key = ObjectKey(worker.namespace, worker.name)
            workers[key], damaged[key] = worker, process.damaged
    return WorkerObservation(
        workers, frozenset(key for key, is_damaged in damaged.items() if is_damaged), frozenset(room.left_out)
    )


class _Room:
    """Enforces the limits of pods and namespaces; the first records count."""

    def __init__(self) -> None:
        self.left_out: set[str] = set()
        self._records: Counter[str] = Counter()
        self._workers: Counter[tuple[str, ...]] = Counter()

    def take(self, place: WorkerLocation, *, new: bool) -> bool:
        """Whether there is room for one more record, of a new or a known worker."""
        namespace, pod = place.namespace, (place.namespace, place.pod)
        full = self._records[namespace] >= MOST_RECORDS_OF_NAMESPACE or bool(
            new
            and ((place.pod and self._workers[pod] >= MOST_OF_POD) or self._workers[namespace,] >= MOST_OF_NAMESPACE)
        )
        if full:
            self.left_out.add(namespace)
            return False
        self._records[namespace] += 1
        self._workers.update([pod, (namespace,)] if new else ())
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


def _worker(source: str, process: _Process, places: Mapping[str, WorkerLocation]) -> WorkerData:
    endpoints = dict(sorted(process.endpoints.items())[:MOST_ENDPOINTS])
    main = _main(endpoints, process.cards)
    place = process.place or _placed(endpoints.values(), places) or WorkerLocation("")
    models = _models(process.cards)
    return WorkerData(
        name=main.identity.worker,
        namespace=place.namespace,
        instance_id=str(main.identity.instance),
        dynamo_namespace=main.identity.namespace,
        component=main.identity.component,
        endpoints=list(endpoints),
        transport=main.transport,
        address=main.address,
        role=_role(models, place),
        source=source,
        graph_deployment=place.graph,
        graph_component=place.component,
        pod=place.pod,
        pod_uid=place.pod_uid,
        container=place.container,
        device_type=main.device_type,
        models=models,
    )


def _main(endpoints: Mapping[str, EndpointRecord], cards: Iterable[tuple[str, str]]) -> EndpointRecord:
    """The endpoint for model requests, otherwise the endpoint with the usual name, otherwise the first."""
    for name in [*sorted(endpoint for endpoint, _ in cards), "generate"]:
        if name in endpoints:
            return endpoints[name]
    return next(iter(endpoints.values()))


def _placed(endpoints: Iterable[EndpointRecord], places: Mapping[str, WorkerLocation]) -> WorkerLocation | None:
    return next((places[host] for each in endpoints for host in [host_of(each.address)] if host in places), None)


def _models(cards: Mapping[tuple[str, str], ModelCard]) -> list[ModelCard]:
    # The same model at two endpoints of a process is one model; the card of the first endpoint counts.
    by_name = {name: card for (_, name), card in sorted(cards.items(), key=lambda item: item[0], reverse=True)}
    bases = [card.name for card in by_name.values() if not card.lora]
    models = []
    for _, card in sorted(by_name.items())[:MOST_MODELS]:
        adapter = card.lora and not card.base_model and len(bases) == 1
        models.append(msgspec.structs.replace(card, base_model=bases[0]) if adapter else card)
    return models if len(models) <= _FEW else list(_within(models, MOST_BYTES))


def _within(cards: Iterable[ModelCard], most: int) -> Iterator[ModelCard]:
    """The first cards that fit into so many bytes: more would not fit into a message."""
    size = 0
    for card in cards:
        size += len(msgspec.json.encode(card))
        if size > most:
            return
        yield card


def _role(models: list[ModelCard], place: WorkerLocation) -> str:
    declared = sorted((card.lora, card.worker_type) for card in models if card.worker_type)
    if declared:
        return declared[0][1]
    if not models:
        return ""
    # Older cards do not state the type: only the graph distinguishes a decode worker from an aggregated worker.
    return place.worker_type or "aggregated"
