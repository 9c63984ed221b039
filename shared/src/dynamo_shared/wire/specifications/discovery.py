"""Events of workers and of models: which workers serve which models."""

import msgspec

from dynamo_shared.wire.specifications.base import Count, EventFamily, EventIdentity, EventSpec, Int64

DYNAMO_MODEL = "dynamomodel"


class DynamoModelData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoModel as it was when the event happened."""

    name: str
    namespace: str
    model_name: str = ""
    """name that clients request"""
    base_model_name: str = ""
    """its base model"""
    model_type: str = ""
    """`base`, `lora` or `adapter`"""
    ready_endpoints: Count = 0
    """endpoints that serve it"""
    total_endpoints: Count = 0
    """endpoints that should serve it"""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"


class AdapterData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A LoRA adapter of a DynamoModel on one worker."""

    name: str
    namespace: str
    model_name: str = ""
    """name that clients request"""
    base_model_name: str = ""
    """model that the adapter changes"""
    pod: str = ""
    pod_uid: str = ""
    address: str = ""
    """URL of the request to the worker"""
    message: str = ""
    """why it failed; empty otherwise"""


_model = EventFamily("model", DYNAMO_MODEL, "model-discovery", DynamoModelData)
_adapter = EventFamily("adapter", DYNAMO_MODEL, "model-discovery", AdapterData)

EVENTS: tuple[EventSpec, ...] = (
    _model("ready", "All workers of the model serve it."),
    _model("notready", "Some or all workers do not serve the model; see reason and message."),
    _model("deleted", "The DynamoModel is deleted.", EventIdentity.OBJECT),
    _adapter("loaded", "A worker has loaded the adapter."),
    _adapter("failed", "A worker failed to load or unload the adapter; this is retried."),
    _adapter("unloaded", "A worker has unloaded the adapter."),
)
