"""DynamoGraphDeploymentRequest in v1alpha1: hardware and latency targets are in a free-form profiling configuration."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from dynamo_shared.api.meta import NamedResourceClaim, ObjectMeta, StatusCondition, Toleration
from dynamo_shared.api.model import ApiModel, Bool, FreeForm, Int64, Quantity, StringMap
from dynamo_shared.api.v1alpha1.enums import RequestBackend, RequestState
from dynamo_shared.api.v1beta1 import GraphState
from dynamo_shared.api.v1beta1.component import RuntimeVersionOverride


class ConfigReference(ApiModel):
    """A key of a ConfigMap in the same namespace."""

    name: str
    """Name of the ConfigMap."""
    key: str = "disagg.yaml"
    """Key in the ConfigMap."""


class JobResources(ApiModel):
    """Resources of the profiler's container."""

    limits: dict[str, Quantity] | None = None
    """Limits of the container, by resource."""
    requests: dict[str, Quantity] | None = None
    """Requests of the container, by resource."""
    claims: (
        Annotated[
            list[NamedResourceClaim],
            Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
        ]
        | None
    ) = None
    """Claims of dynamic resource allocation that the container uses."""


class ProfilingConfigSpec(ApiModel):
    """How to profile."""

    profiler_image: str
    """Image of the profiling Job."""
    config: FreeForm | None = None
    """Configuration of the profiler: sla, hardware, deployment, engine, planner."""
    config_map_ref: ConfigReference | None = None
    """ConfigMap with a graph to start from."""
    output_pvc: str | None = Field(default=None, alias="outputPVC")
    """PersistentVolumeClaim for the profiler's files."""
    resources: JobResources | None = None
    """Resources of the profiler's container."""
    tolerations: list[Toleration] | None = None
    """Tolerations of the profiling Job's pod."""
    node_selector: StringMap | None = None
    """Node labels that the profiling Job's pod requires."""


class DeploymentOverrides(ApiModel):
    """Metadata and images of the generated graph."""

    name: str | None = None
    """Name of the graph."""
    namespace: str | None = None
    """Namespace of the graph; the request's by default."""
    labels: StringMap | None = None
    """Labels of the graph."""
    annotations: StringMap | None = None
    """Annotations of the graph."""
    workers_image: str | None = None
    """Image of the workers."""


class DynamoGraphDeploymentRequestSpec(ApiModel):
    """Model, and how to profile it. It cannot be changed after profiling starts."""

    model: str
    """Model to serve: its name on Hugging Face, or its path."""
    backend: RequestBackend
    """Inference engine: vllm, sglang, trtllm, or auto for the best one."""
    runtime_version_override: RuntimeVersionOverride | None = None
    """Version of Dynamo in the graph's images, such as 1.5.0."""
    profiling_config: ProfilingConfigSpec
    """How to profile."""
    auto_apply: Bool = False
    """Deploys the graph when it is generated; if false, the graph waits in status.generatedDeployment."""
    deployment_overrides: DeploymentOverrides | None = None
    """Metadata and images of the graph."""
    enable_gpu_discovery: Bool = True
    """Discovers the cluster's GPUs."""
    use_mocker: Bool = False
    """Deploys simulated engines, which need no GPU."""


class DeploymentStatus(ApiModel):
    """The graph of a request."""

    model_config = ConfigDict(json_schema_extra={"required": ["state"]})

    state: GraphState = GraphState.INITIALIZING
    """State of the graph."""
    name: str | None = None
    """Name of the graph."""
    namespace: str | None = None
    """Namespace of the graph."""
    created: Bool | None = None
    """Whether the graph has been created."""


class DynamoGraphDeploymentRequestStatus(ApiModel):
    """State of a request."""

    # Required although it has a default: the API server sets it in a status without it.
    model_config = ConfigDict(json_schema_extra={"required": ["state"]})

    state: RequestState = RequestState.INITIALIZING
    """Initializing, Pending, Profiling, Deploying, Ready, DeploymentDeleted or Failed."""
    backend: str | None = None
    """Inference engine of the result."""
    observed_generation: Int64 | None = None
    """metadata.generation that this status describes."""
    conditions: list[StatusCondition] | None = None
    """Aspects of the state."""
    profiling_results: str | None = None
    """Location of the profiling results, such as configmap/name."""
    generated_deployment: FreeForm | None = None
    """The graph that profiling generated."""
    deployment: DeploymentStatus | None = None
    """The deployed graph."""


class DynamoGraphDeploymentRequest(ApiModel):
    """Requests a graph that serves a model within latency targets; profiling generates the graph."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoGraphDeploymentRequest"] = "DynamoGraphDeploymentRequest"
    metadata: ObjectMeta
    spec: DynamoGraphDeploymentRequestSpec | None = None
    """Model, and how to profile it."""
    status: DynamoGraphDeploymentRequestStatus | None = None
    """State of the request, written by the platform."""
