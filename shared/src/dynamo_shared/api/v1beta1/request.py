"""DynamoGraphDeploymentRequest: model, hardware and latency targets, from which profiling generates a graph."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from dynamo_shared.api.meta import JobSpec, ObjectMeta
from dynamo_shared.api.model import ApiModel, Bool, FreeForm, Int32, Int64, Number
from dynamo_shared.api.v1beta1.component import RuntimeVersionOverride
from dynamo_shared.api.v1beta1.status import Conditions


class OptimizationType(StrEnum):
    """Optimization goal of a graph."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"


class RequestPhase(StrEnum):
    """Progress of a request."""

    PENDING = "Pending"
    PROFILING = "Profiling"
    READY = "Ready"
    DEPLOYING = "Deploying"
    DEPLOYED = "Deployed"
    FAILED = "Failed"


class ProfilingPhase(StrEnum):
    """Progress of profiling."""

    INITIALIZING = "Initializing"
    SWEEPING_PREFILL = "SweepingPrefill"
    SWEEPING_DECODE = "SweepingDecode"
    SELECTING_CONFIG = "SelectingConfig"
    BUILDING_CURVES = "BuildingCurves"
    GENERATING_DGD = "GeneratingDGD"
    DONE = "Done"


class ModelCacheSpec(ApiModel):
    """Volume that already contains the model."""

    pvc_name: str | None = None
    """PersistentVolumeClaim in the same namespace."""
    pvc_model_path: str | None = None
    """Path of the model in the volume."""
    pvc_mount_path: str = "/opt/model-cache"
    """Path at which pods mount the volume."""


class HardwareSpec(ApiModel):
    """GPUs to plan for; values that are left out are discovered from the cluster's nodes."""

    gpu_sku: str | None = None
    """GPU type, such as h100_sxm or l40s."""
    vram_mb: Number | None = None
    """Memory of one GPU in MiB."""
    total_gpus: Int32 | None = None
    """GPUs that the graph may use."""
    num_gpus_per_node: Int32 | None = None
    """GPUs of one node."""
    interconnect: str | None = None
    """Interconnect of the GPUs of a node, such as nvlink or pcie."""
    rdma: Bool | None = None
    """Whether nodes are connected by RDMA."""


class WorkloadSpec(ApiModel):
    """Traffic to plan for."""

    isl: Int32 = 4000
    """Tokens of a typical prompt."""
    osl: Int32 = 1000
    """Tokens of a typical answer."""
    concurrency: Number | None = None
    """Requests at the same time."""
    request_rate: Number | None = None
    """Requests per second."""


class SlaSpec(ApiModel):
    """Latency targets."""

    ttft: Number | None = None
    """Time to the first token, in milliseconds."""
    itl: Number | None = None
    """Time between tokens, in milliseconds."""
    e2e_latency: Number | None = Field(default=None, alias="e2eLatency")
    """Time to the complete answer, in milliseconds."""
    optimization_type: OptimizationType | None = None
    """latency or throughput: the optimization goal if no latencies are set."""


class Overrides(ApiModel):
    """Changes to the objects that are generated for the request."""

    profiling_job: JobSpec | None = None
    """Merged over the profiling Job; its first container is the profiler's."""
    dgd: FreeForm | None = None
    """Merged over the graph that profiling generates: a DynamoGraphDeployment, or parts of one."""
    trust_remote_code: Bool | None = None
    """Whether engines run code of the model repository: --trust-remote-code of vLLM and SGLang."""


class Mocker(ApiModel):
    """Simulated engines."""

    enabled: Bool | None = None
    """Deploys simulated engines, which need no GPU."""


class KvRouter(ApiModel):
    """Routing by the contents of the engines' KV caches."""

    enabled: Bool | None = None
    """Frontends send a request to the worker that has cached most of its prompt: DYN_ROUTER_MODE is kv."""


class Features(ApiModel):
    """Features of the generated graph."""

    planner: FreeForm | None = None
    """Adds a planner that scales the graph; the value is its configuration."""
    kv_router: KvRouter | None = None
    """How frontends select workers; spec.overrides.dgd takes precedence."""
    mocker: Mocker | None = None
    """Simulated engines instead of real ones."""


class DynamoGraphDeploymentRequestSpec(ApiModel):
    """Model, hardware and latency targets. It cannot be changed after profiling starts."""

    model: str = Field(min_length=1)
    """Model to serve: its name on Hugging Face, or its path."""
    backend: str = "auto"
    """Inference engine: vllm, sglang, trtllm, or auto for the best one."""
    image: str | None = None
    """Image of the profiling Job; the platform's by default."""
    runtime_version_override: RuntimeVersionOverride | None = None
    """Version of Dynamo in the graph's images, such as 1.5.0, for components that spec.overrides.dgd gives none."""
    model_cache: ModelCacheSpec | None = None
    """Volume that already contains the model."""
    hardware: HardwareSpec | None = None
    """GPUs to plan for."""
    workload: WorkloadSpec | None = None
    """Traffic to plan for."""
    sla: SlaSpec | None = None
    """Latency targets."""
    overrides: Overrides | None = None
    """Changes to the profiling Job and to the graph."""
    features: Features | None = None
    """Planner, routing and simulated engines."""
    search_strategy: str = "rapid"
    """rapid estimates from existing measurements, thorough measures on the cluster; thorough needs a backend."""
    auto_apply: Bool = True
    """Deploys the graph when it is generated; if false, the graph waits in status.profilingResults."""


class Figures(ApiModel):
    """Estimated performance of a graph."""

    backend: str | None = None
    """Inference engine: vllm, sglang or trtllm."""
    serving: str | None = None
    """disagg or agg."""
    gpus: Int32 | None = None
    """GPUs of all replicas together."""
    meets_sla: Bool | None = Field(default=None, alias="meetsSLA")
    """Whether it meets the latency targets of spec.sla."""
    ttft: Number | None = None
    """Time to the first token, in milliseconds."""
    itl: Number | None = None
    """Time between tokens, in milliseconds."""
    request_latency: Number | None = None
    """Time to the complete answer, in milliseconds."""
    concurrency: Number | None = None
    """Requests at the same time."""
    requests_per_second: Number | None = None
    """Answered requests per second."""
    tokens_per_second: Number | None = None
    """Generated tokens per second, of all GPUs."""
    tokens_per_second_per_gpu: Number | None = Field(default=None, alias="tokensPerSecondPerGPU")
    """Generated tokens per second and GPU."""
    tokens_per_second_per_user: Number | None = None
    """Generated tokens per second and request."""


class ParetoConfig(ApiModel):
    """A graph that no other graph exceeds in every respect."""

    config: FreeForm
    """The graph."""
    figures: Figures | None = None
    """Its estimated performance."""


class ProfilingResults(ApiModel):
    """Result of profiling."""

    pareto: list[ParetoConfig] | None = None
    """Graphs to select from."""
    selected_config: FreeForm | None = None
    """The graph that fits best."""
    selected_figures: Figures | None = None
    """Its estimated performance."""
    source: str | None = None
    """Source of the figures: aiconfigurator, naive or thorough."""


class GpuNodes(ApiModel):
    """Nodes with GPUs of one type."""

    product: str | None = None
    """Product name of the GPU."""
    gpu_sku: str | None = None
    """GPU type, as in spec.hardware."""
    vram_mb: Number | None = None
    """Memory of one GPU in MiB."""
    num_gpus_per_node: Int32 | None = None
    """GPUs of one node."""
    nodes: Int32 | None = None
    """Number of nodes."""
    total_gpus: Int32 | None = None
    """GPUs of all these nodes."""


class HardwareStatus(ApiModel):
    """Hardware to plan for, and hardware that was observed on the cluster."""

    planned: HardwareSpec | None = None
    """Hardware to plan for: spec.hardware, completed with observed values."""
    observed: list[GpuNodes] | None = Field(None, alias="found")
    """GPU types on the cluster; the type to plan for is first."""
    source: str | None = None
    """Source of the values: spec, dcgm, nodeLabels or resourceSlices."""


class DeploymentInfo(ApiModel):
    """Number of replicas of the deployed graph."""

    replicas: Int32 | None = None
    """Replicas of all components."""
    available_replicas: Int32 | None = None
    """Replicas that are available."""


class DynamoGraphDeploymentRequestStatus(ApiModel):
    """State of a request."""

    phase: RequestPhase | None = None
    """Pending, Profiling, Ready, Deploying, Deployed or Failed."""
    profiling_phase: ProfilingPhase | None = None
    """Current step of profiling."""
    dgd_name: str | None = None
    """Name of the DynamoGraphDeployment."""
    profiling_job_name: str | None = None
    """Name of the profiling Job."""
    conditions: Conditions | None = None
    """Aspects of the state; Succeeded summarizes them."""
    hardware: HardwareStatus | None = None
    """GPUs to plan for."""
    profiling_results: ProfilingResults | None = None
    """Result of profiling."""
    deployment_info: DeploymentInfo | None = None
    """Replicas of the deployed graph."""
    observed_generation: Int64 | None = None
    """metadata.generation that this status describes."""


class DynamoGraphDeploymentRequest(ApiModel):
    """Requests a graph that serves a model within latency targets; profiling generates the graph."""

    api_version: Literal["nvidia.com/v1beta1"] = "nvidia.com/v1beta1"
    kind: Literal["DynamoGraphDeploymentRequest"] = "DynamoGraphDeploymentRequest"
    metadata: ObjectMeta
    spec: DynamoGraphDeploymentRequestSpec | None = None
    """Model, hardware and latency targets."""
    status: DynamoGraphDeploymentRequestStatus | None = None
    """State of the request, written by the platform."""
