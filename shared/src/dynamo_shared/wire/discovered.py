"""Workers and models in STATE: two resources that model-discovery publishes, and how they are encoded and decoded.

They have the shape of Kubernetes objects, but no API server knows them. `StateReader` and `ObjectCache` handle them
like any other resource:

    reader = StateReader(bus, cluster, [WORKERS], cache)
    ...
    capacities = {worker.name: worker.models[0].max_kv_tokens for worker in map(worker_of, cache.list(WORKERS)) if worker.models}

`StateReader.synced` also waits for these resources, and if model-discovery does not run, their marker never comes: a
service that can work without them uses a separate reader for them.
"""

from typing import Any

import msgspec

from dynamo_shared.api.resources import Resource
from dynamo_shared.wire.specifications.workers import ModelCard, ServedModelData, WorkerData

__all__ = ["MODELS", "WORKERS", "ModelCard", "ServedModelData", "WorkerData", "as_object", "model_of", "worker_of"]

GROUP = "discovery.dynamo"
WORKERS = Resource(GROUP, "v1", "workers", "Worker")
MODELS = Resource(GROUP, "v1", "models", "Model")


def worker_of(obj: dict[str, Any]) -> WorkerData:
    """The worker in an object of WORKERS; msgspec.ValidationError (a ValueError) if the object is not valid."""
    return msgspec.convert(obj["spec"], WorkerData)


def model_of(obj: dict[str, Any]) -> ServedModelData:
    """The model in an object of MODELS; msgspec.ValidationError (a ValueError) if the object is not valid."""
    return msgspec.convert(obj["spec"], ServedModelData)


def as_object(
    data: WorkerData | ServedModelData, *, uid: str, resource_version: str, created: str, generation: int = 1
) -> dict[str, Any]:
    """The STATE object of a worker or model. `created`: RFC 3339, since when it has been known."""
    resource = WORKERS if isinstance(data, WorkerData) else MODELS
    metadata: dict[str, Any] = {"name": data.name, "uid": uid, "resourceVersion": resource_version}
    if data.namespace:
        metadata["namespace"] = data.namespace
    metadata |= {"creationTimestamp": created, "generation": generation}
    return {**resource.type_meta, "metadata": metadata, "spec": msgspec.to_builtins(data)}
