"""Workers and the models that they serve, as Dynamo's own discovery knows them: the data of their events, and of STATE.

Two views of STATE carry it, too: `dynamo_shared.wire.discovered` says which, and reads them.
"""

import msgspec

from dynamo_shared.wire.specifications.base import Count, EventFamily, EventIdentity, EventSpec

WORKER = "worker"
MODEL = "model"


class ModelCard(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A model as one worker serves it: what its model card says. A number of 0 is one that the card lacks."""

    name: str
    """name that clients ask for; of a LoRA adapter, the adapter's"""
    base_model: str = ""
    """of a LoRA adapter, the model that it changes, where the worker says so; empty for a model of its own"""
    lora: bool = False
    """whether it is a LoRA adapter"""
    worker_type: str = ""
    """aggregated, prefill, decode or encode; empty on cards of releases that do not say"""
    model_type: str = ""
    """`Chat | Completions`; empty for a prefill worker"""
    model_input: str = ""
    """Tokens or Text"""
    needs: list[str] = []
    """worker types that must be there as well, one of these sets: `prefill`, `prefill+decode`"""
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
        """Tokens that the KV cache of one data parallel rank holds; 0 where the card lacks it."""
        return self.total_kv_blocks * self.kv_cache_block_size


class WorkerData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A process that serves a component of Dynamo, as its records say."""

    name: str
    """`<dynamoNamespace>/<component>/<instance id in hex>`"""
    namespace: str = ""
    """Kubernetes namespace of its pod; empty where it is not a pod, or unknown"""
    instance_id: str = ""
    """unsigned, 64 bits, decimal; a string, since JSON numbers lose it"""
    dynamo_namespace: str = ""
    component: str = ""
    """its name in Dynamo"""
    endpoints: list[str] = []
    """names of what can be called, sorted"""
    transport: str = ""
    """how its requests travel: tcp, http, nats, quic"""
    address: str = ""
    """where to, in that transport's own words"""
    role: str = ""
    """aggregated, prefill, decode or encode; empty for what serves no model (a router, a planner)"""
    source: str = ""
    """where its records are: etcd, kubernetes or file"""
    graph_deployment: str = ""
    """graph that its pod is of; empty where it has none"""
    graph_component: str = ""
    """its component's name in that graph deployment"""
    pod: str = ""
    pod_uid: str = ""
    container: str = ""
    """only where each container of a pod is a worker of its own"""
    device_type: str = ""
    """`cuda`, `cpu` or another kind, where the worker says so"""
    models: list[ModelCard] = []
    """sorted by name"""


class ServedModelData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A model, as the workers of one Dynamo namespace serve it together."""

    name: str
    """`<dynamoNamespace>/<model>`"""
    namespace: str = ""
    """Kubernetes namespace of its workers"""
    model: str = ""
    """name that clients ask for"""
    base_model: str = ""
    """of a LoRA adapter, the model that it changes"""
    lora: bool = False
    """whether it is a LoRA adapter"""
    dynamo_namespace: str = ""
    graph_deployment: str = ""
    """graph of its workers, where they have one"""
    available: bool = False
    """whether all kinds of workers are there that it takes to answer a request"""
    missing: list[str] = []
    """worker types that are not"""
    workers: dict[str, Count] = {}
    """how many serve it, by worker type"""
    model_type: str = ""
    """`Chat | Completions`"""
    context_length: Count = 0
    """the least of its workers'"""


_worker = EventFamily("worker", WORKER, "model-discovery", WorkerData)
_model = EventFamily("model", MODEL, "model-discovery", ServedModelData)

EVENTS: tuple[EventSpec, ...] = (
    _worker("joined", "Dynamo's discovery has a worker that it did not have.", EventIdentity.OBJECT),
    _worker("changed", "A worker reports something else about itself: another model, another role."),
    _worker(
        "left", "Dynamo's discovery does not have the worker any more; data is as it was last.", EventIdentity.OBJECT
    ),
    _model("available", "All workers are there that it takes to answer requests for a model."),
    _model("gone", "Requests for a model cannot be answered any more: workers are missing, or all are gone."),
)
