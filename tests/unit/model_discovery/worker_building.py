"""Builders of records, pods and views for the tests of worker discovery."""

import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dynamo_model_discovery.workers.assembly import ETCD, assemble
from dynamo_model_discovery.workers.locations import WorkerLocation
from dynamo_model_discovery.workers.sources.base import RecordTable
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.wire.discovered import ModelCard, WorkerData

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> dict[str, bytes]:
    """Keys and values of a recording."""
    records = json.loads((RECORDED / name).read_text())["records"]
    return {key: json.dumps(value).encode() for key, value in records.items()}


def workers(records: Mapping[str, bytes], locations: Mapping[str, WorkerLocation] | None = None, source: str = ETCD):
    """The workers that records of one source describe."""
    table = RecordTable(source)
    table.take(records)
    return assemble(table.records(), locations or {})


def instance(
    number: int, namespace="dyn", component="backend", endpoint="generate", **fields: Any
) -> tuple[str, bytes]:
    """Key and value of an instance."""
    content = {
        "type": "Endpoint", "namespace": namespace, "component": component, "endpoint": endpoint, "instance_id": number,
        "transport": {"tcp": f"10.0.0.{number % 250}:9999/{number:x}/{namespace}/{component}/{endpoint}"}, **fields,
    }  # fmt: skip
    return f"v1/instances/{namespace}/{component}/{endpoint}/{number:x}", json.dumps(content).encode()


def card(
    number: int, model="llama", namespace="dyn", component="backend", adapter="", **fields: Any
) -> tuple[str, bytes]:
    """Key and value of a model card."""
    content = {
        "type": "Model", "namespace": namespace, "component": component, "endpoint": "generate", "instance_id": number,
        "card_json": {"display_name": adapter or model, "model_type": "Chat | Completions", **fields},
    }  # fmt: skip
    suffix = f"/{adapter}" if adapter else ""
    return f"v1/mdc/{namespace}/{component}/generate/{number:x}{suffix}", json.dumps(content).encode()


def worker(name: str, *cards: ModelCard, namespace: str = "team", role: str = "", **fields: Any) -> WorkerData:
    """A worker that serves these models."""
    dynamo_namespace, component, _ = name.split("/")
    return WorkerData(
        name=name, namespace=namespace, dynamo_namespace=dynamo_namespace, component=component, source=ETCD,
        role=role or next((each.worker_type for each in cards), ""), models=list(cards), **fields,
    )  # fmt: skip


def pod(name: str, address: str = "", *, namespace: str = "team", **labels: str) -> dict[str, Any]:
    """A running pod; its labels are given without their prefix."""
    prefixed = {f"nvidia.com/{label.replace('_', '-')}": value for label, value in labels.items()}
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1", "labels": prefixed}
    return {"metadata": metadata, "spec": {}, "status": {"phase": "Running", **({"podIP": address} if address else {})}}


class Stamp:
    """A stamp whose uids and versions count up."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def uid(self) -> str:
        return f"uid-{next(self._numbers)}"

    def version(self) -> int:
        return next(self._numbers)

    def now(self) -> str:
        return "2026-03-01T12:00:00Z"


def keyed(observed: Iterable[WorkerData]) -> dict[ObjectKey, WorkerData]:
    """Workers by namespace and name."""
    return {ObjectKey(each.namespace, each.name): each for each in observed}
