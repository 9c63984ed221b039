"""Workers and the models that they serve, according to Dynamo's own discovery: the data of their events and in STATE.

`dynamo_shared.wire.discovered` defines and decodes their two resources in STATE.
"""

import msgspec

from dynamo_shared.wire.specifications.base import Count, EventFamily, EventIdentity, EventSpec

WORKER = "worker"
MODEL = "model"


class ModelCard(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A model as one worker serves it, according to its model card. 0: the card lacks the number."""

    name: str
    """name that clients request; of a LoRA adapter, the adapter's"""
    base_model: str = ""
    """of a LoRA adapter, its base model, if the worker reports it; otherwise empty"""
    lora: bool = False
    """whether it is a LoRA adapter"""
    worker_type: str = ""
    """aggregated, prefill, decode or encode; empty if the release's cards do not have it"""
    model_type: str = ""
    """`Chat | Completions`; empty for a prefill worker"""
    model_input: str = ""
    """Tokens or Text"""
    needs: list[str] = []
    """worker types that are also required, one of these sets: `prefill`, `prefill+decode`"""
    context_length: Count = 0
    """tokens of a request, prompt and answer together"""
    kv_cache_block_size: Count = 0
    """tokens of a block"""
    total_kv_blocks: Count = 0
    """blocks of one data parallel rank"""
    max_num_seqs: Count = 0
    """requests in one forward pass"""
    max_num_batched_tokens: Count = 0
    """tokens in one forward pass"""
    data_parallel_size: Count = 0
    """ranks of the worker"""

    @property
    def max_kv_tokens(self) -> int:
        """Capacity in tokens of the KV cache of one data parallel rank; 0 if the card lacks it."""
        return self.total_kv_blocks * self.kv_cache_block_size


class WorkerData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A process that serves a component of Dynamo, according to its discovery records."""

    name: str
    """`<dynamoNamespace>/<component>/<instance id in hex>`"""
    namespace: str = ""
    """Kubernetes namespace of its pod; empty if it has no pod, or the namespace is unknown"""
    instance_id: str = ""
    """unsigned 64 bit integer in decimal; a string, because JSON numbers lose precision"""
    dynamo_namespace: str = ""
    component: str = ""
    """its name in Dynamo"""
    endpoints: list[str] = []
    """names of its endpoints, sorted"""
    transport: str = ""
    """transport of its requests: tcp, http, nats, quic"""
    address: str = ""
    """address, in that transport's format"""
    role: str = ""
    """aggregated, prefill, decode or encode; empty if it serves no model (a router, a planner)"""
    source: str = ""
    """source of its records: etcd, kubernetes or file"""
    graph_deployment: str = ""
    """graph of its pod; empty if there is none"""
    graph_component: str = ""
    """its component's name in that graph deployment"""
    pod: str = ""
    pod_uid: str = ""
    container: str = ""
    """only if each container of the pod is a worker of its own"""
    device_type: str = ""
    """`cuda`, `cpu` or another kind, if the worker reports it"""
    models: list[ModelCard] = []
    """sorted by name"""


class ServedModelData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A model as all workers of one Dynamo namespace serve it together."""

    name: str
    """`<dynamoNamespace>/<model>`"""
    namespace: str = ""
    """Kubernetes namespace of its workers"""
    model: str = ""
    """name that clients request"""
    base_model: str = ""
    """of a LoRA adapter, its base model"""
    lora: bool = False
    """whether it is a LoRA adapter"""
    dynamo_namespace: str = ""
    graph_deployment: str = ""
    """graph of its workers, if they have one"""
    available: bool = False
    """whether all worker types that are required to answer a request exist"""
    missing: list[str] = []
    """worker types that are missing"""
    workers: dict[str, Count] = {}
    """number of workers that serve it, by worker type"""
    model_type: str = ""
    """`Chat | Completions`"""
    context_length: Count = 0
    """minimum of its workers"""


_worker = EventFamily("worker", WORKER, "model-discovery", WorkerData)
_model = EventFamily("model", MODEL, "model-discovery", ServedModelData)

EVENTS: tuple[EventSpec, ...] = (
    _worker("joined", "A new worker is registered in Dynamo's discovery.", EventIdentity.OBJECT),
    _worker("changed", "A worker's record has changed, for example its model or role."),
    _worker(
        "left", "A worker is no longer registered in Dynamo's discovery; data is its last record.", EventIdentity.OBJECT
    ),
    _model("available", "All workers exist that are required to serve the model."),
    _model("gone", "The model is no longer served: some or all required workers do not exist."),
)
