"""Events of workers and of models: who serves what, where."""

from __future__ import annotations

import msgspec

from dynamo_shared.wire.specifications.base import Count, EventIdentity, EventSpec, Int64

DYNAMO_MODEL = "dynamomodel"


class DynamoModelData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoModel as it was when the event happened."""

    name: str
    namespace: str
    model_name: str = ""
    base_model_name: str = ""
    model_type: str = ""
    ready_endpoints: Count = 0
    total_endpoints: Count = 0
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"


class AdapterData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A LoRA adapter of a DynamoModel on one worker."""

    name: str
    namespace: str
    model_name: str = ""
    """name that clients ask for"""
    base_model_name: str = ""
    pod: str = ""
    pod_uid: str = ""
    address: str = ""
    message: str = ""
    """why, where it failed"""


def _model(event: str, description: str, identity: EventIdentity = EventIdentity.VERSION) -> EventSpec:
    sample = DynamoModelData(
        name="support-lora",
        namespace="prod",
        model_name="customer-support-v1",
        base_model_name="Qwen/Qwen3-0.6B",
        model_type="lora",
        ready_endpoints=2,
        total_endpoints=2,
        reason="AllEndpointsReady",
        message="2 of 2 workers have the adapter loaded",
        generation="1",
    )
    return EventSpec(
        family="model",
        event=event,
        kind=DYNAMO_MODEL,
        publisher="model-discovery",
        data=DynamoModelData,
        identity=identity,
        description=description,
        sample=sample,
    )


def _adapter(event: str, description: str) -> EventSpec:
    sample = AdapterData(
        name="support-lora",
        namespace="prod",
        model_name="customer-support-v1",
        base_model_name="Qwen/Qwen3-0.6B",
        pod="disagg-decode-7d9c5b6f4-x2x7k",
        pod_uid="7b0c9a52-3f0e-4f6e-9a38-0d2f5f0c8a11",
        address="http://10.0.0.7:9090",
    )
    return EventSpec(
        family="adapter",
        event=event,
        kind=DYNAMO_MODEL,
        publisher="model-discovery",
        data=AdapterData,
        identity=EventIdentity.VERSION,
        description=description,
        sample=sample,
    )


EVENTS: tuple[EventSpec, ...] = (
    _model("ready", "All its workers serve it."),
    _model("notready", "No worker serves it, or some do not; reason and message say why."),
    _model("deleted", "The DynamoModel is gone.", EventIdentity.OBJECT),
    _adapter("loaded", "A worker has loaded the adapter."),
    _adapter("failed", "A worker could not load or unload the adapter; it is tried again."),
    _adapter("unloaded", "A worker has unloaded the adapter."),
)
