"""DynamoModels on a real API server: objects for tests, and functions that wait for their status."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dynamo_shared.api.base_models import base_model_hash
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_MODELS, EVENTS, PODS, SERVICES, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import NotFound

from tests.building.objects import object_of

from . import platform

BASE = "Qwen/Qwen3-0.6B"
HASH = base_model_hash(BASE)
URI = "s3://adapters/support/v1"


def model(namespace: str, name: str = "support", type_: str = "lora", **spec: Any) -> KubeObject:
    """A DynamoModel; an adapter by default."""
    source = {"source": {"uri": URI}} if type_ == "lora" else {}
    spec = {"modelName": f"org/{name}", "baseModelName": BASE, "modelType": type_, **source, **spec}
    return object_of(DYNAMO_MODELS, name, namespace, spec=spec)


def model_service(namespace: str) -> KubeObject:
    """The headless Service of the base model, as the pod-builder creates it."""
    of_model = {labels.BASE_MODEL_HASH: HASH}
    spec = {"clusterIP": "None", "selector": of_model, "ports": [{"name": "system", "port": 9090}]}
    return object_of(SERVICES, f"dynamo-model-{HASH}", namespace, labels=of_model, spec=spec)


def worker_pod(namespace: str, name: str, **pod_labels: str) -> KubeObject:
    """A worker's pod, as a component's Deployment creates it."""
    object_labels = {labels.COMPONENT: "Worker", labels.BASE_MODEL_HASH: HASH, **pod_labels}
    spec = {"containers": [{"name": "main", "image": "worker"}], "terminationGracePeriodSeconds": 0}
    return object_of(PODS, name, namespace, labels=object_labels, spec=spec)


async def workers(kube: KubeClient, namespace: str, count: int) -> dict[str, str]:
    """That many ready workers behind the Service; address by pod."""
    await kube.create(SERVICES, model_service(namespace))
    for number in range(count):
        await kube.create(PODS, worker_pod(namespace, f"worker-{number}"))
    return {
        f"worker-{number}": await address(kube, ObjectKey(namespace, f"worker-{number}")) for number in range(count)
    }


async def address(kube: KubeClient, key: ObjectKey) -> str:
    """A pod's address, once it has one."""
    status = await platform.until_status(kube, PODS, key, "an address", lambda status: status.get("podIP"))
    return str(status["podIP"])


async def set_ready(kube: KubeClient, key: ObjectKey, ready: bool) -> None:
    """Make a pod ready or not, as its kubelet would."""
    pod = await kube.get(PODS, key)
    conditions = [
        {**entry, "status": str(ready)} if entry["type"] in ("Ready", "ContainersReady") else entry
        for entry in pod["status"]["conditions"]
    ]
    await kube.merge_patch(PODS, key, {"status": {"conditions": conditions}}, subresource="status")


async def until_status(
    kube: KubeClient, key: ObjectKey, desired: Callable[[KubeObject], bool], what: str, within: float = platform.WITHIN
) -> KubeObject:
    """The model's status once it satisfies the condition."""
    return await platform.until_status(
        kube, DYNAMO_MODELS, key, what, lambda status: status and desired(status), within=within
    )


async def until_ready(
    kube: KubeClient, key: ObjectKey, ready: int, total: int, within: float = platform.WITHIN
) -> KubeObject:
    """The model's status once so many of so many workers serve it."""
    return await until_status(
        kube,
        key,
        lambda status: (status["readyEndpoints"], status["totalEndpoints"]) == (ready, total),
        f"{ready} of {total} ready",
        within,
    )


def condition(status: KubeObject, type_: str = "EndpointsReady") -> KubeObject:
    """A condition of a status."""
    return next(entry for entry in status["conditions"] if entry["type"] == type_)


async def event_reasons(kube: KubeClient, key: ObjectKey) -> dict[str, str]:
    """Messages of a model's Events by reason."""
    events = await kube.list(EVENTS, key.namespace)
    return {event["reason"]: event["note"] for event in events if event["regarding"].get("name") == key.name}


async def release(kube: KubeClient, namespace: str) -> None:
    """Take finalizers out of what a test leaves, so that its namespace can go after the service has."""
    for each in await kube.list(DYNAMO_MODELS, namespace):
        with suppress(NotFound):
            patch = {"metadata": {"finalizers": None}}
            await kube.merge_patch(DYNAMO_MODELS, ObjectKey(namespace, each["metadata"]["name"]), patch)
