"""`profilingConfig.config` of a v1alpha1 request: the keys that the profiler reads.

Keys are camelCase since Dynamo 0.8.1 and were snake_case before; both are accepted. The conversion moves values for
which v1beta1 has a field (sla, model cache, planner) to that field; absent values get the field's defaults.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AliasChoices, Field

from dynamo_shared.api.contracts.base import CamelContractModel, Problem, Whole
from dynamo_shared.api.contracts.planner import PlannerConfig
from dynamo_shared.api.model import Bool, Number
from dynamo_shared.api.v1alpha1.request import ProfilingConfigSpec

Count = Annotated[Whole, Field(ge=1)]
Maybe = Annotated[Whole, Field(ge=0)]
"""A number; with 0, the profiler determines it."""
Milliseconds = Annotated[Number, Field(gt=0)]


class Sla(CamelContractModel):
    """Load and latency targets of the deployment."""

    isl: Count | None = None
    """Input tokens of a request. In v1beta1 workload.isl."""
    osl: Count | None = None
    """Output tokens of a request. In v1beta1 workload.osl."""
    ttft: Milliseconds | None = None
    """Time to first token, ms. In v1beta1 sla.ttft."""
    itl: Milliseconds | None = None
    """Time between tokens, ms. In v1beta1 sla.itl."""
    optimization_type: Literal["latency", "throughput"] | None = None
    """Preference among configurations that meet the latencies. In v1beta1 sla.optimizationType."""


class Hardware(CamelContractModel):
    """GPUs that engines may use."""

    IGNORED: ClassVar[Mapping[str, str]] = {
        "min_num_gpus_per_engine": "engines start with the fewest GPUs that hold the model"
    }

    min_num_gpus_per_engine: Maybe = 0
    """Fewest GPUs of an engine; 0: computed from the size of the model."""
    max_num_gpus_per_engine: Maybe = 0
    """Most GPUs of an engine; 0: computed from model and cluster. In v1beta1 hardware.totalGpus, twice that."""
    num_gpus_per_node: Maybe = 0
    """GPUs of a node; 0: discovered. In v1beta1 hardware.numGpusPerNode."""
    gpu_type: str | None = None
    """GPU, such as `h200_sxm`; informative. In v1beta1 hardware.gpuSku."""
    enable_gpu_discovery: Bool = False
    """Whether values that are not set here are discovered on nodes."""

    def problems(self) -> Iterator[Problem]:
        """Bounds that contradict each other."""
        least, most = self.min_num_gpus_per_engine, self.max_num_gpus_per_engine
        if most and least > most:
            yield ("min_num_gpus_per_engine",), f"{least} GPUs are more than maxNumGpusPerEngine, {most}"


class Sweep(CamelContractModel):
    """Granularity of profiling, and whether it uses GPUs or a simulation."""

    IGNORED: ClassVar[Mapping[str, str]] = {
        "aic_hf_id": "spec.model is simulated",
        "aic_backend": "spec.backend is simulated",
        "aic_backend_version": "the simulator uses the newest version with measured data",
        "pick_with_webui": "with spec.autoApply: false you choose, in dynadmin or with dynamoctl dgdr",
        "webui_port": "the platform has no such page; dynadmin shows the results",
    }

    prefill_interpolation_granularity: Count = 16
    """Points of the prefill curve."""
    decode_interpolation_granularity: Count = 6
    """Points of each axis of the decode surface; the time grows with the square."""
    use_ai_configurator: Bool = False
    """Whether AI Configurator simulates engines, instead of running them on GPUs."""
    aic_system: str | None = None
    """Simulated GPU, such as `h200_sxm`."""
    aic_hf_id: str | None = None
    """Simulated model, on Hugging Face."""
    aic_backend: str | None = None
    """Simulated engine; unset: engine.backend."""
    aic_backend_version: str | None = None
    """Version of the simulated engine."""
    dry_run: Bool = False
    """Plans the sweep without running it."""
    pick_with_webui: Bool = False
    """Whether a user selects the configuration, on a web page."""
    webui_port: Annotated[Whole, Field(ge=1, le=65535)] = 8000
    """Port of that page."""

    def remarks(self) -> Iterator[Problem]:
        """Requirements of a simulation."""
        if self.use_ai_configurator and self.aic_system is None:
            yield ("aic_system",), "useAiConfigurator simulates this GPU; if unset, it simulates the discovered GPU"


class Engine(CamelContractModel):
    """The engine that is profiled."""

    IGNORED: ClassVar[Mapping[str, str]] = {
        "config": "name the ConfigMap in spec.profilingConfig.configMapRef",
        "max_context_length": "set it as an argument of the workers, in spec.overrides.dgd of v1beta1",
        "is_moe_model": "the platform reads this from the model's configuration",
    }

    backend: Literal["vllm", "sglang", "trtllm"] | None = None
    """Engine; unset: spec.backend of the request."""
    config: str | None = None
    """Path of a DynamoGraphDeployment to start from; set by configMapRef."""
    max_context_length: Maybe = 0
    """Longest context to serve, tokens; 0: the model's."""
    is_moe_model: Bool = False
    """Whether the model is a mixture of experts; by default read from its configuration."""


class ModelCache(CamelContractModel):
    """Claim that already contains the weights. In v1beta1 modelCache."""

    pvc_name: str | None = None
    """Name of the PersistentVolumeClaim."""
    model_path_in_pvc: str | None = Field(
        default=None, validation_alias=AliasChoices("modelPathInPvc", "model_path_in_pvc", "pvcPath", "pvc_path")
    )
    """Directory of the model in the claim."""
    pvc_mount_path: str | None = Field(
        default=None, validation_alias=AliasChoices("pvcMountPath", "pvc_mount_path", "mountPath", "mount_path")
    )
    """Path in containers; unset: /opt/model-cache."""


class Deployment(CamelContractModel):
    """The graphs that the profiler deploys for measurements."""

    IGNORED: ClassVar[Mapping[str, str]] = {
        "namespace": "the profiler measures graphs in the request's namespace",
        "service_name": "the profiler sends requests to the graph's frontend",
        "model": "spec.model is served",
    }

    namespace: str | None = None
    """Namespace of these graphs; the request's."""
    service_name: str | None = None
    """Service that gets the requests; unset: the frontend's."""
    model: str | None = None
    """Name of the served model; unset: spec.model of the request."""
    dgd_image: str | None = None
    """Image of all components; unset: as in the initial graph."""
    deployment_timeout: Count | None = None
    """Seconds until a deployment must be ready."""
    model_cache: ModelCache | None = None
    """Claim that already contains the weights."""


class ProfilerConfig(CamelContractModel):
    """Configuration of the profiler."""

    IGNORED: ClassVar[Mapping[str, str]] = {"output_dir": "name a claim in spec.profilingConfig.outputPVC"}

    sla: Sla | None = None
    """Load and latency targets of the deployment."""
    hardware: Hardware | None = None
    """GPUs that engines may use."""
    sweep: Sweep | None = None
    """Granularity of profiling."""
    engine: Engine | None = None
    """The engine that is profiled."""
    deployment: Deployment | None = None
    """The graphs that are deployed for profiling."""
    planner: PlannerConfig | None = None
    """The planner of the generated graph. In v1beta1 features.planner."""
    output_dir: str | None = None
    """Directory of the results."""
    deployment_ready_timeout_s: Count | None = Field(
        default=None, validation_alias=AliasChoices("deploymentReadyTimeoutS", "deployment_ready_timeout_s")
    )
    """Seconds until a deployment must be ready; deployment.deploymentTimeout takes precedence."""


class ProfilingConfig(ProfilingConfigSpec):
    """How to profile. The API server accepts any object as config; here it is the profiler's configuration."""

    config: ProfilerConfig | None = None  # type: ignore[assignment]
    """Configuration of the profiler."""
