"""The intent: what a user wants to deploy, in the terms of the form and of `dynamoctl deploy`.

Groups nest, so a JSON pointer names a field of the form. Secrets are referenced by name, never included.
"""

from enum import StrEnum
from typing import Annotated, Any, TypeVar

from dynamo_shared.api import quantity
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.model import Quantity
from dynamo_shared.api.untrusted.limits import SETTINGS, check_count
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from dynamo_dynadmin.deploy.problems import InvalidIntent, problems_of

T = TypeVar("T")
#: A Kubernetes name that is valid as a DNS label.
Name = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
Text = Annotated[str, Field(min_length=1, max_length=1024)]
Replicas = Annotated[int, Field(ge=0, le=1000)]
Positive = Annotated[int, Field(ge=1, le=1_000_000_000)]
Size = Annotated[int, Field(ge=1, le=1024)]
Milliseconds = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]


def _not_negative(amount: int | str) -> int | str:
    if quantity.parse(amount) < 0:
        raise PydanticCustomError("quantity", "must not be negative")
    return amount


def _bounded(given: T) -> T:
    """Limits values that are passed on unchanged: no field limits their size."""
    try:
        check_count(given, SETTINGS)
    except InvalidManifest as error:
        raise PydanticCustomError("size", "{problem}", {"problem": str(error)}) from None
    return given


Amount = Annotated[Quantity, AfterValidator(_not_negative)]
Labels = Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=64)]
Objects = Annotated[list[dict[str, Any]], Field(max_length=64), AfterValidator(_bounded)]


class IntentSection(BaseModel):
    """A group of fields: camelCase on the wire; unknown fields are errors."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, use_attribute_docstrings=True
    )

    @classmethod
    def alias_of(cls, field: str) -> str:
        """The name of a field on the wire."""
        return cls.model_fields[field].alias or field


class Mode(StrEnum):
    """Whether the intent describes a graph, or an objective for which profiling selects a graph."""

    GRAPH = "graph"
    OBJECTIVE = "objective"


class Backend(StrEnum):
    """Inference engine; `auto` leaves the choice to profiling."""

    AUTO = "auto"
    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"


class RouterMode(StrEnum):
    """How a frontend chooses a worker."""

    ROUND_ROBIN = "round-robin"
    RANDOM = "random"
    KV = "kv"
    DIRECT = "direct"


class ServingMode(StrEnum):
    """Whether the same workers compute prompts and answers."""

    AGGREGATED = "aggregated"
    DISAGGREGATED = "disaggregated"


class Tuning(StrEnum):
    """What to favour if no times are given."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"


class Search(StrEnum):
    """`rapid` simulates, `thorough` measures on the cluster."""

    RAPID = "rapid"
    THOROUGH = "thorough"


class ModelCache(IntentSection):
    """A PersistentVolumeClaim that holds the model or receives its download."""

    claim: ObjectName
    """Claim in the same namespace."""
    path: Text | None = None
    """Path of the model in the volume; without a path, the volume is a Hugging Face cache."""
    mount_path: Annotated[str, Field(pattern=r"^/", max_length=1024)] = "/opt/model-cache"
    """Path at which pods mount the volume."""


class Model(IntentSection):
    """What to serve."""

    name: Text
    """Name on Hugging Face, or a path in the containers."""
    revision: Text | None = None
    """Revision, such as a commit or a tag."""
    served_name: Text | None = None
    """Model name in requests; by default `name`."""
    cache: ModelCache | None = None
    """Volume with the model."""
    token_secret: ObjectName | None = None
    """Name of a Secret with HF_TOKEN; by default the platform's Secret, which may be missing."""


class Images(IntentSection):
    """Container images."""

    runtime: Text | None = None
    """Image of the engine's runtime; by default the platform's image of the backend."""
    pull_secrets: Annotated[list[ObjectName], Field(max_length=16)] = []
    """Names of Secrets with registry credentials."""


class ReplicaCounts(IntentSection):
    """Replicas of components."""

    frontend: Replicas | None = None
    """Frontends."""
    worker: Replicas | None = None
    """Workers of an aggregated graph."""
    prefill: Replicas | None = None
    """Prefill workers of a disaggregated graph."""
    decode: Replicas | None = None
    """Decode workers of a disaggregated graph."""


class Serving(IntentSection):
    """How components share the work."""

    mode: ServingMode | None = None
    """`aggregated` (default of a graph) or `disaggregated`."""
    replicas: ReplicaCounts | None = None
    """Replicas by component."""
    router: RouterMode | None = None
    """How frontends choose workers; by default the runtime decides."""
    autoscaling: bool | None = None
    """Whether workers get a scaling adapter, for autoscalers and planners."""


class Parallelism(IntentSection):
    """How one engine is distributed over GPUs."""

    tensor: Size | None = None
    """Tensor parallel size; by default the GPUs of one replica, divided by the other sizes."""
    pipeline: Size | None = None
    """Pipeline parallel size."""
    data: Size | None = None
    """Data parallel size."""
    expert: Size | None = None
    """Expert parallel size of a mixture-of-experts model."""


class Hardware(IntentSection):
    """GPUs and other resources of a replica."""

    gpu_sku: Text | None = None
    """Kind of GPU, such as h100_sxm (objective)."""
    gpu_product: Text | None = None
    """Value of the label nvidia.com/gpu.product of the nodes (graph)."""
    gpus_per_replica: Size | None = None
    """GPUs of one worker replica (graph); 1 by default."""
    gpus_per_node: Size | None = None
    """GPUs of one node; a replica with more GPUs spans several nodes."""
    total_gpus: Positive | None = None
    """GPUs that the graph may use (objective)."""
    vram_mib: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None = None
    """Memory of one GPU, MiB (objective)."""
    interconnect: Text | None = None
    """nvlink or pcie (objective)."""
    rdma: bool | None = None
    """Whether nodes reach each other by RDMA (objective)."""
    cpu: Amount | None = None
    """CPUs of a worker's container, as a quantity."""
    memory: Amount | None = None
    """Memory of a worker's container, as a quantity."""
    shared_memory: Amount | None = None
    """Size of /dev/shm, as a quantity; 8Gi by default, 0 for none."""


class Workload(IntentSection):
    """Traffic to plan for (objective)."""

    isl: Positive | None = None
    """Tokens of a typical prompt."""
    osl: Positive | None = None
    """Tokens of a typical answer."""
    concurrency: Rate | None = None
    """Concurrent requests."""
    request_rate: Rate | None = None
    """Requests per second."""


class Objective(IntentSection):
    """Times that users should experience (objective)."""

    ttft_ms: Milliseconds | None = None
    """Time to the first token."""
    itl_ms: Milliseconds | None = None
    """Time between tokens."""
    e2e_ms: Milliseconds | None = Field(default=None, alias="e2eMs")
    """Time to the complete answer; replaces the other two times."""
    optimize_for: Tuning | None = None
    """What to favour if no times are given."""
    search: Search | None = None
    """`rapid` by default."""
    auto_apply: bool | None = None
    """Whether the graph that profiling selects is deployed immediately; true by default."""


class EngineOptions(IntentSection):
    """Engine flags that all backends have in some form, and further arguments."""

    context_length: Positive | None = None
    """Maximum tokens of a sequence."""
    max_batch_size: Positive | None = None
    """Maximum concurrent sequences."""
    dtype: Text | None = None
    """Format of weights, such as bfloat16."""
    quantization: Text | None = None
    """Method of quantization, such as fp8."""
    prefix_cache: bool | None = None
    """Whether prefixes of prompts are reused."""
    trust_remote_code: bool | None = None
    """Whether code that the model contains is run."""
    args: Annotated[list[Annotated[str, Field(max_length=65536)]], Field(max_length=256)] = []
    """Further arguments, appended unchanged."""
    env: Annotated[dict[str, Annotated[str, Field(max_length=65536)]], Field(max_length=256)] = {}
    """Environment variables. Secrets do not belong here: name them in `envSecrets`."""
    env_secrets: Annotated[list[ObjectName], Field(max_length=16)] = []
    """Names of Secrets whose keys become environment variables."""


class Topology(IntentSection):
    """Keeps pods close together."""

    name: ObjectName
    """ClusterTopologyBinding, or ClusterTopology for an older Grove."""
    domain: Name
    """Topology domain that pods share, such as rack."""


class Placement(IntentSection):
    """Where pods run."""

    node_selector: Labels = {}
    """Labels that nodes must have."""
    tolerations: Objects = []
    """Tolerations, in Kubernetes' format."""
    priority_class: ObjectName | None = None
    """PriorityClass of the pods and of their Grove gangs."""
    scheduler: Name | None = None
    """Scheduler of the pods."""
    topology: Topology | None = None
    """Topology constraint of the graph."""


class CompilationCache(IntentSection):
    """Volume that keeps compiled kernels."""

    claim: ObjectName
    """Claim in the same namespace."""
    mount_path: Annotated[str, Field(pattern=r"^/", max_length=1024)] | None = None
    """Mount path; vLLM has a default."""


class DeployIntent(IntentSection):
    """What a user wants to deploy."""

    mode: Mode
    """`graph`: deploy the described graph. `objective`: profiling selects a graph that meets the times."""
    name: Name
    """Name of the graph or of the request."""
    labels: Labels = {}
    """Labels of the object and of the objects that it becomes."""
    annotations: Labels = {}
    """Annotations of the object and of the objects that it becomes."""
    model: Model
    backend: Backend | None = None
    """Inference engine; `auto` by default, which needs mode `objective`."""
    images: Images = Images()
    serving: Serving = Serving()
    parallelism: Parallelism = Parallelism()
    hardware: Hardware = Hardware()
    workload: Workload = Workload()
    objective: Objective = Objective()
    engine: EngineOptions = EngineOptions()
    placement: Placement = Placement()
    compilation_cache: CompilationCache | None = None
    planner: Annotated[dict[str, Any] | None, AfterValidator(_bounded)] = None
    """PlannerConfig of a planner that follows traffic (objective)."""
    mocker: bool | None = None
    """Simulated engines, which need no GPU."""


def read_intent(sent: Any) -> DeployIntent:
    """Parse what a caller sent. Raises InvalidIntent with every error, as pointers into it."""
    try:
        return DeployIntent.model_validate(sent)
    except ValidationError as error:
        raise InvalidIntent(problems_of(error, DeployIntent)) from None
