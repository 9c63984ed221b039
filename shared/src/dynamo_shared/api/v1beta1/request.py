"""DynamoGraphDeploymentRequest: what to serve, on what, how fast; profiling finds the graph for it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from dynamo_shared.api.meta import JobSpec, ObjectMeta
from dynamo_shared.api.model import ApiModel, Bool, FreeForm, Int32, Int64, Number
from dynamo_shared.api.v1beta1.component import RuntimeVersionOverride
from dynamo_shared.api.v1beta1.status import Conditions


class OptimizationType(StrEnum):
    """What a graph is tuned for."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"


class RequestPhase(StrEnum):
    """How far a request is."""

    PENDING = "Pending"
    PROFILING = "Profiling"
    READY = "Ready"
    DEPLOYING = "Deploying"
    DEPLOYED = "Deployed"
    FAILED = "Failed"


class ProfilingPhase(StrEnum):
    """How far profiling is."""

    INITIALIZING = "Initializing"
    SWEEPING_PREFILL = "SweepingPrefill"
    SWEEPING_DECODE = "SweepingDecode"
    SELECTING_CONFIG = "SelectingConfig"
    BUILDING_CURVES = "BuildingCurves"
    GENERATING_DGD = "GeneratingDGD"
    DONE = "Done"


class ModelCacheSpec(ApiModel):
    """Volume that holds the model already."""

    pvc_name: str | None = None
    """PersistentVolumeClaim in the same namespace."""
    pvc_model_path: str | None = None
    """Path of the model in the volume."""
    pvc_mount_path: str = "/opt/model-cache"
    """Path at which pods mount the volume."""


class HardwareSpec(ApiModel):
    """GPUs to plan for; what is left out is read from the cluster's nodes."""

    gpu_sku: str | None = None
    """Kind of GPU, such as h100_sxm or l40s."""
    vram_mb: Number | None = None
    """Memory of one GPU in MiB."""
    total_gpus: Int32 | None = None
    """GPUs that the graph may use."""
    num_gpus_per_node: Int32 | None = None
    """GPUs of one node."""
    interconnect: str | None = None
    """What connects the GPUs of a node, such as nvlink or pcie."""
    rdma: Bool | None = None
    """Whether nodes reach each other by RDMA."""


class WorkloadSpec(ApiModel):
    """Traffic to plan for."""

    isl: Int32 = 4000
    """Tokens of a typical prompt."""
    osl: Int32 = 1000
    """Tokens of a typical answer."""
    concurrency: Number | None = None
    """Requests at the same time."""
    request_rate: Number | None = None
    """Requests a second."""


class SlaSpec(ApiModel):
    """How fast answers must be."""

    ttft: Number | None = None
    """Time to the first token, in milliseconds."""
    itl: Number | None = None
    """Time between tokens, in milliseconds."""
    e2e_latency: Number | None = Field(default=None, alias="e2eLatency")
    """Time to the whole answer, in milliseconds."""
    optimization_type: OptimizationType | None = None
    """latency or throughput: what to tune for where no times are given."""


class Overrides(ApiModel):
    """Changes to what is made of the request."""

    profiling_job: JobSpec | None = None
    """Merged over the profiling job; its first container is the profiler's."""
    dgd: FreeForm | None = None
    """Merged over the graph that profiling finds: a DynamoGraphDeployment, or parts of one."""
    trust_remote_code: Bool | None = None
    """Whether engines run code that comes with the model: --trust-remote-code of vLLM and SGLang."""


class Mocker(ApiModel):
    """Simulated engines."""

    enabled: Bool | None = None
    """Deploys simulated engines, which need no GPU."""


class KvRouter(ApiModel):
    """Routing by what engines have in their KV caches."""

    enabled: Bool | None = None
    """Frontends send a request to the worker that has most of its prompt cached: DYN_ROUTER_MODE is kv."""


class Features(ApiModel):
    """Features of the graph that profiling finds."""

    planner: FreeForm | None = None
    """Adds a planner that scales the graph; its configuration."""
    kv_router: KvRouter | None = None
    """How frontends choose workers; spec.overrides.dgd wins over it."""
    mocker: Mocker | None = None
    """Simulated engines instead of real ones."""


class DynamoGraphDeploymentRequestSpec(ApiModel):
    """What to serve, on what, how fast. It cannot be changed from the start of profiling on."""

    model: str = Field(min_length=1)
    """Model to serve: its name on Hugging Face, or its path."""
    backend: str = "auto"
    """Inference engine: vllm, sglang, trtllm, or auto for the best one."""
    image: str | None = None
    """Image of the profiling job; the platform's by default."""
    runtime_version_override: RuntimeVersionOverride | None = None
    """Version of Dynamo in the graph's images, such as 1.5.0; for components that spec.overrides.dgd gives none."""
    model_cache: ModelCacheSpec | None = None
    """Volume that holds the model already."""
    hardware: HardwareSpec | None = None
    """GPUs to plan for."""
    workload: WorkloadSpec | None = None
    """Traffic to plan for."""
    sla: SlaSpec | None = None
    """How fast answers must be."""
    overrides: Overrides | None = None
    """Changes to the profiling job and to the graph."""
    features: Features | None = None
    """Planner, routing and simulated engines."""
    search_strategy: str = "rapid"
    """rapid estimates from known measurements, thorough measures on the cluster; thorough needs a backend."""
    auto_apply: Bool = True
    """Deploys the graph once it is generated; otherwise it waits in status.profilingResults."""


class Figures(ApiModel):
    """What a graph is expected to do."""

    backend: str | None = None
    """Inference engine: vllm, sglang or trtllm."""
    serving: str | None = None
    """disagg or agg."""
    gpus: Int32 | None = None
    """GPUs that all replicas take together."""
    meets_sla: Bool | None = Field(default=None, alias="meetsSLA")
    """Whether it keeps the times of spec.sla."""
    ttft: Number | None = None
    """Time to the first token, in milliseconds."""
    itl: Number | None = None
    """Time between tokens, in milliseconds."""
    request_latency: Number | None = None
    """Time to the whole answer, in milliseconds."""
    concurrency: Number | None = None
    """Requests at the same time."""
    requests_per_second: Number | None = None
    """Requests answered a second."""
    tokens_per_second: Number | None = None
    """Tokens written a second, by all GPUs."""
    tokens_per_second_per_gpu: Number | None = Field(default=None, alias="tokensPerSecondPerGPU")
    """Tokens written a second by one GPU."""
    tokens_per_second_per_user: Number | None = None
    """Tokens written a second for one request."""


class ParetoConfig(ApiModel):
    """A graph of which no other is better in every respect."""

    config: FreeForm
    """The graph."""
    figures: Figures | None = None
    """What it is expected to do."""


class ProfilingResults(ApiModel):
    """Result of profiling."""

    pareto: list[ParetoConfig] | None = None
    """Graphs to choose among."""
    selected_config: FreeForm | None = None
    """The graph that fits best."""
    selected_figures: Figures | None = None
    """What it is expected to do."""
    source: str | None = None
    """Where the figures come from: aiconfigurator, naive or thorough."""


class GpuNodes(ApiModel):
    """Nodes with GPUs of one kind."""

    product: str | None = None
    """Name that the GPU's maker gives it."""
    gpu_sku: str | None = None
    """Kind of GPU, as in spec.hardware."""
    vram_mb: Number | None = None
    """Memory of one GPU in MiB."""
    num_gpus_per_node: Int32 | None = None
    """GPUs of one node."""
    nodes: Int32 | None = None
    """Nodes."""
    total_gpus: Int32 | None = None
    """GPUs of all of them."""


class HardwareStatus(ApiModel):
    """Hardware that is planned for, and what was observed on the cluster."""

    planned: HardwareSpec | None = None
    """What is planned for: spec.hardware, completed by what was observed."""
    observed: list[GpuNodes] | None = Field(None, alias="found")
    """Kinds of GPUs on the cluster, the one planned for first."""
    source: str | None = None
    """spec, dcgm, nodeLabels or resourceSlices: where it was read."""


class DeploymentInfo(ApiModel):
    """Pods of the deployed graph, counted."""

    replicas: Int32 | None = None
    """Replicas of all components."""
    available_replicas: Int32 | None = None
    """Replicas that are available."""


class DynamoGraphDeploymentRequestStatus(ApiModel):
    """State of a request."""

    phase: RequestPhase | None = None
    """Pending, Profiling, Ready, Deploying, Deployed or Failed."""
    profiling_phase: ProfilingPhase | None = None
    """Step that profiling is at."""
    dgd_name: str | None = None
    """Name of the DynamoGraphDeployment."""
    profiling_job_name: str | None = None
    """Name of the profiling job."""
    conditions: Conditions | None = None
    """Aspects of the state; Succeeded sums them up."""
    hardware: HardwareStatus | None = None
    """GPUs that are planned for."""
    profiling_results: ProfilingResults | None = None
    """Result of profiling."""
    deployment_info: DeploymentInfo | None = None
    """Pods of the deployed graph."""
    observed_generation: Int64 | None = None
    """metadata.generation that this status is about."""


class DynamoGraphDeploymentRequest(ApiModel):
    """Asks for a graph that serves a model within given times; profiling finds it."""

    api_version: Literal["nvidia.com/v1beta1"] = "nvidia.com/v1beta1"
    kind: Literal["DynamoGraphDeploymentRequest"] = "DynamoGraphDeploymentRequest"
    metadata: ObjectMeta
    spec: DynamoGraphDeploymentRequestSpec | None = None
    """What to serve, on what, how fast."""
    status: DynamoGraphDeploymentRequestStatus | None = None
    """State of the request, written by the platform."""
