"""Keys of the planner's configuration that only releases after 1.1 read (planner.md, marked W there)."""

from typing import Annotated

from pydantic import Field, JsonValue

from dynamo_shared.api.contracts.base import ContractModel, Whole
from dynamo_shared.api.model import Bool, Number
from dynamo_shared.api.registry import ports


class PluginGateway(ContractModel):
    """Gateway at which plugins of the planner register."""

    enabled: Bool = False
    """Whether there is a gateway."""
    listen: str = "unix:///var/run/dynamo/planner/registry.sock"
    """Its address."""
    allow_insecure: Bool = False
    """Whether it may listen without TLS on a network."""


class PlannerScheduling(ContractModel):
    """Timing of the planner's stages."""

    tick_max_duration_seconds: Annotated[Number, Field(gt=0)] = 30
    """Timeout of a round of stages, in seconds."""
    external_plugins: list[JsonValue] = Field(default_factory=list)
    """Plugins that run in separate processes."""
    gateway: PluginGateway = PluginGateway()
    """Gateway at which they register."""
    scale_interval_seconds: Annotated[Number | None, Field(gt=0)] = None
    """Seconds between rounds; unset: the greatest common divisor of the intervals in use."""


class PlannerExtensions(ContractModel):
    """Keys that planners after 1.1 read; older planners ignore them."""

    max_throughput_scaling_replicas: Annotated[Whole, Field(ge=1)] = 8
    """Most replicas by which predictive scaling changes a pool at once. Planners after 1.1."""
    prefill_min_endpoint: Annotated[Whole | None, Field(ge=0)] = None
    """min_endpoint of only the prefill pool. Planners after 1.1."""
    decode_min_endpoint: Annotated[Whole | None, Field(ge=0)] = None
    """min_endpoint of only the decode pool. Planners after 1.1."""
    control_api_port: Annotated[Whole, Field(ge=0, le=65535)] = ports.PLANNER_CONTROL.number
    """Port on localhost for changes of budgets and min_endpoint. Planners after 1.1."""
    metric_pulling_prometheus_token: str | None = None
    """Bearer token for Prometheus; unset: PROMETHEUS_TOKEN. A token file is better. Planners after 1.1."""
    metric_pulling_prometheus_token_file: str | None = None
    """File with the token, read before each request; unset: PROMETHEUS_TOKEN_FILE. Planners after 1.1."""
    metric_pulling_prometheus_ssl_verify: Bool | None = None
    """Whether the certificate of Prometheus is verified; unset: PROMETHEUS_SSL_VERIFY, else not. Planners after 1.1."""
    metric_pulling_prometheus_extra_query_params: dict[str, str] | None = None
    """Additional parameters of each query; unset: PROMETHEUS_EXTRA_QUERY_PARAMS. Planners after 1.1."""
    metric_pulling_prometheus_ca_bundle: str | None = None
    """CA certificates to trust for Prometheus, a PEM file; unset: PROMETHEUS_CA_BUNDLE. Planners after 1.1."""
    metric_pulling_prometheus_request_timeout_seconds: Annotated[Number, Field(gt=0)] = 10.0
    """Timeout of a query to Prometheus, in seconds. Planners after 1.1."""
    speculative_nextn: Annotated[Whole, Field(ge=0)] = 0
    """Tokens that speculative decoding drafts, if the worker does not report it. Planners after 1.1."""
    enable_power_awareness: Bool = False
    """Whether GPU power is a budget, too; Dynamo's planner does not support it in mode `agg`. Planners after 1.1."""
    total_gpu_power_limit: Annotated[Number | None, Field(gt=0)] = None
    """Power budget, watts: the sum of dynamo.nvidia.com/gpu-power-limit over all GPUs. Planners after 1.1."""
    ais_perf_model: JsonValue = None
    """Performance model for each role (prefill, decode, aggregated). Planners after 1.1."""
    aic_perf_model: JsonValue = None
    """Performance model of AIConfigurator for each role, as the releases 1.3 to 1.5 name it. Planners after 1.1."""
    report_write_gzip_log: Bool = True
    """Whether a compressed log is written next to each report. Planners after 1.1."""
    enable_runtime_reconfiguration: Bool = False
    """Whether the planner's pod accepts other settings over HTTP. Planners from 1.7 on."""
    runtime_warmup_trace_dir: Annotated[str, Field(min_length=1)] | None = None
    """Directory of traces that such settings may name. Planners from 1.7 on."""
    batch_scheduling: JsonValue = None
    """How batch jobs of a gateway are planned next to other requests. Planners from 1.7 on."""
    scheduling: PlannerScheduling = PlannerScheduling()
    """Timing of the planner's stages. Planners after 1.1."""
    plugin_registration: JsonValue = None
    """How plugins register. Planners after 1.1."""
