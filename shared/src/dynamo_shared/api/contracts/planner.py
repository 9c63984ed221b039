"""The planner's configuration, `features.planner` of a request: the planner service and Dynamo's planner read it.

Fields, defaults and rules are those of Dynamo's planner (planner.md, section a.10). Keys that only newer releases of it
read are in `planner_extensions`.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from math import isqrt
from typing import Annotated, ClassVar

from pydantic import AliasChoices, Field

from dynamo_shared.api.contracts.base import Problem, Whole
from dynamo_shared.api.contracts.planner_extensions import PlannerExtensions
from dynamo_shared.api.contracts.planner_interpolation import AicInterpolation
from dynamo_shared.api.model import Bool, Number
from dynamo_shared.api.registry import ports
from dynamo_shared.api.replica_limits import too_many

Seconds = Annotated[Whole, Field(ge=1)]
Milliseconds = Annotated[Number, Field(gt=0)]
Percent = Annotated[Number, Field(ge=0, le=100)]
Count = Annotated[Whole, Field(ge=1)]
Gpus = Annotated[Whole, Field(ge=-1)]
"""A limit in GPUs; -1: no limit."""


class Sweeping(StrEnum):
    """How engines are measured before the deployment."""

    NONE = "none"
    RAPID = "rapid"
    THOROUGH = "thorough"


class Environment(StrEnum):
    """Component that executes the planner's decisions."""

    KUBERNETES = "kubernetes"
    VIRTUAL = "virtual"
    GLOBAL_PLANNER = "global-planner"


class PlannerBackend(StrEnum):
    """Inference engines, and the simulated engine."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"
    MOCKER = "mocker"


class Mode(StrEnum):
    """Pools of workers that are planned."""

    DISAGG = "disagg"
    PREFILL = "prefill"
    DECODE = "decode"
    AGG = "agg"


class Target(StrEnum):
    """Goal of scaling."""

    THROUGHPUT = "throughput"
    LATENCY = "latency"
    LOAD = "load"
    SLA = "sla"


class Predictor(StrEnum):
    """Predictors of load: the last value, or models of time series."""

    CONSTANT = "constant"
    ARIMA = "arima"
    KALMAN = "kalman"
    PROPHET = "prophet"


class MetricsSource(StrEnum):
    """Source of the Prometheus metrics of the traffic."""

    FRONTEND = "frontend"
    ROUTER = "router"


class PlanningPolicy(StrEnum):
    """How the planner service decides."""

    ADAPTIVE = "adaptive"
    REFERENCE = "reference"


_REPORTS = "dynamoctl plan replay writes reports"
_PLUGINS = "the planner service has no plugins"
_OF_REFERENCE = frozenset(
    {
        "load_predictor",
        "load_predictor_log1p",
        "prophet_window_size",
        "kalman_q_level",
        "kalman_q_trend",
        "kalman_r",
        "max_num_fpm_samples",
        "fpm_sample_bucket_size",
        "load_scaling_down_sensitivity",
        "prefill_scale_up_queue_tokens",
        "prefill_scale_down_queue_tokens",
        "decode_scale_up_kv_rate",
        "decode_scale_down_kv_rate",
    }
)
"""Fields that the policy `adaptive` does not read."""
_OF_OTHER_POOL = {
    Mode.PREFILL: "decode_min_endpoint",
    Mode.DECODE: "prefill_min_endpoint",
    Mode.AGG: "prefill_min_endpoint",
}
"""For each mode, the minimum of the pool that it does not plan."""


class PlannerConfig(PlannerExtensions):
    """Configuration of the planner of one graph."""

    #: Only for a planner in its own pod.
    IGNORED: ClassVar[Mapping[str, str]] = {
        "log_dir": "the planner service writes its log on standard output",
        "profile_results_dir": "the profile is in the ConfigMap planner-profile-data-<graph>",
        "kalman_min_points": "the planner service predicts from the first value on",
        "metric_reporting_prometheus_port": "the planner service has metrics of each graph",
        "global_planner_namespace": "budgets of the scaler span graphs",
        "load_metric_samples": "engines report each iteration",
        "report_interval_hours": _REPORTS,
        "report_output_dir": _REPORTS,
        "report_filename": _REPORTS,
        "report_write_gzip_log": _REPORTS,
        "live_dashboard_port": "dynadmin shows the decisions of the planner",
        "control_api_port": "a change of this configuration takes effect at once",
        "speculative_nextn": "the measured times of tokens include it",
        "ais_perf_model": "the profile has the performance of the engines",
        "aic_perf_model": "the profile has the performance of the engines",
        "enable_runtime_reconfiguration": "a change of this configuration takes effect at once",
        "runtime_warmup_trace_dir": "load_predictor_warmup_trace names a key of the ConfigMap",
        "batch_scheduling": "the planner service plans batch jobs together with other requests",
        "scheduling": _PLUGINS,
        "plugin_registration": _PLUGINS,
    }

    #: The guides of Dynamo 1.2 use it.
    MISTAKEN: ClassVar[Mapping[str, str]] = {
        "enabled": "this object enables the planner, with any content; to disable the planner, leave the object out"
    }

    policy: PlanningPolicy = PlanningPolicy.ADAPTIVE
    """How the planner service decides: `adaptive`, or `reference` as Dynamo's planner, which does not read this."""
    attainment: Annotated[Number, Field(ge=0.5, le=0.999)] = 0.95
    """Policy `adaptive`: share of requests, over an hour, that must meet ttft_ms and itl_ms. The plan uses the fewest GPUs."""
    gpu_price: Annotated[Number | None, Field(ge=0, le=1)] = None
    """Policy `adaptive`, instead of `attainment`: requests that each added or kept GPU must bring within the targets, as a
    share of what a GPU serves at its best. Higher values save GPUs, and fewer requests meet the targets."""

    pre_deployment_sweeping_mode: Sweeping = Sweeping.RAPID
    """How engines are measured first: not at all, by simulation, or on GPUs."""
    environment: Environment = Environment.KUBERNETES
    """Component that executes decisions."""
    namespace: str | None = Field(default=None, min_length=1)
    """Dynamo namespace of the workers; unset: DYN_NAMESPACE of the planner's container, else `dynamo`."""
    backend: PlannerBackend = PlannerBackend.VLLM
    """Engine of the workers."""
    mode: Mode = Mode.DISAGG
    """Pools that are planned: prefill and decode, one of them, or one pool for both."""
    optimization_target: Target = Target.THROUGHPUT
    """Goal of scaling: `sla` meets ttft_ms and itl_ms, the others use fixed thresholds of load."""
    log_dir: str | None = None
    """Directory for logs; unset: no logs."""
    throughput_adjustment_interval_seconds: Seconds = Field(
        default=180,
        validation_alias=AliasChoices("throughput_adjustment_interval_seconds", "throughput_adjustment_interval"),
    )
    """Seconds between two decisions of predictive scaling."""
    max_gpu_budget: Gpus = 8
    """Most GPUs of all pools together; -1: no limit."""
    min_gpu_budget: Gpus = -1
    """Fewest GPUs of all pools together; -1: no limit."""
    min_endpoint: Annotated[Whole, Field(ge=0)] = 1
    """Fewest replicas of each pool. 0, scaling to zero, needs a planner newer than 1.1."""
    decode_engine_num_gpu: Annotated[Whole | None, Field(ge=1)] = None
    """GPUs of one decode engine; unset: read from the graph."""
    prefill_engine_num_gpu: Annotated[Whole | None, Field(ge=1)] = None
    """GPUs of one prefill engine; unset: read from the graph."""
    profile_results_dir: str = "profiling_results"
    """Directory of the profile with which the models of the engines start."""
    aic_interpolation: AicInterpolation | None = None
    """What to simulate if there is no profile."""
    ttft_ms: Milliseconds = Field(default=500.0, validation_alias=AliasChoices("ttft_ms", "ttft"))
    """Target for the time to first token, ms."""
    itl_ms: Milliseconds = Field(default=50.0, validation_alias=AliasChoices("itl_ms", "itl"))
    """Target for the time between tokens, ms."""
    load_predictor: Predictor = Predictor.ARIMA
    """How the load of the next interval is predicted."""
    load_predictor_log1p: Bool = False
    """Whether predictors use log(1 + x) of the load."""
    prophet_window_size: Count = 50
    """Points that Prophet uses."""
    load_predictor_warmup_trace: str | None = None
    """Trace (mooncake JSONL) for training predictors before the first request."""
    kalman_q_level: Annotated[Number, Field(ge=0)] = 1.0
    """Kalman filter: noise of the level."""
    kalman_q_trend: Annotated[Number, Field(ge=0)] = 0.1
    """Kalman filter: noise of the trend."""
    kalman_r: Annotated[Number, Field(gt=0)] = 10.0
    """Kalman filter: noise of the observations."""
    kalman_min_points: Count = 5
    """Kalman filter: points before it is used."""
    metric_pulling_prometheus_endpoint: str | None = None
    """Prometheus to query; unset: PROMETHEUS_ENDPOINT of the planner's container."""
    metric_reporting_prometheus_port: Annotated[Whole | None, Field(ge=0, le=65535)] = None
    """Port of the planner's own metrics, 0: none; unset: PLANNER_PROMETHEUS_PORT of its container, else none."""
    throughput_metrics_source: MetricsSource = MetricsSource.FRONTEND
    """Source of the metrics of the traffic."""
    model_name: str | None = None
    """Model whose traffic counts; unset: the model that the workers serve."""
    global_planner_namespace: str | None = None
    """Dynamo namespace of the global planner; environment `global-planner` needs it."""
    enable_throughput_scaling: Bool = True
    """Predictive scaling: the number of replicas that the predicted load needs. Only with target `sla`."""
    enable_load_scaling: Bool = False
    """Reactive scaling: one replica more or less as queues and caches fill. Always on with targets other than `sla`."""
    load_adjustment_interval_seconds: Seconds = Field(
        default=5, validation_alias=AliasChoices("load_adjustment_interval_seconds", "load_adjustment_interval")
    )
    """Seconds between two decisions of reactive scaling."""
    max_num_fpm_samples: Count = 64
    """Measured iterations that the models of the engines keep."""
    fpm_sample_bucket_size: Count = 16
    """Buckets for these iterations, a square number."""
    load_scaling_down_sensitivity: Percent = 80
    """Percent of the target below which a replica may be removed."""
    prefill_scale_up_queue_tokens: Annotated[Number | None, Field(ge=0)] = None
    """Target `load`: queued prefill tokens of an engine that add a replica."""
    prefill_scale_down_queue_tokens: Annotated[Number | None, Field(ge=0)] = None
    """Target `load`: queued prefill tokens of every engine that remove a replica."""
    decode_scale_up_kv_rate: Percent | None = Field(
        default=None, validation_alias=AliasChoices("decode_scale_up_kv_rate", "decode_sacle_up_kv_rate")
    )
    """Target `load`: percent of an engine's KV cache in use that adds a replica."""
    decode_scale_down_kv_rate: Percent | None = None
    """Target `load`: percent of every engine's KV cache in use that removes a replica."""
    load_metric_samples: Count = 10
    """Samples that one interval averages over; newer planners do not read it."""
    load_min_observations: Count = 5
    """Iterations that must be measured before the model of an engine is used."""
    advisory: Bool = Field(default=False, validation_alias=AliasChoices("advisory", "no_operation"))
    """Decides and reports, but does not scale."""
    report_interval_hours: Annotated[Number | None, Field(gt=0)] = 24.0
    """Hours between two reports; null: none."""
    report_output_dir: str = "./planner_reports"
    """Directory of the reports."""
    report_filename: str | None = None
    """Name of the report; unset: created from the time."""
    live_dashboard_port: Annotated[Whole, Field(ge=0, le=65535)] = ports.PLANNER_DASHBOARD.number
    """Port of the live page; 0: none."""

    _thresholds: ClassVar[tuple[tuple[str, str, frozenset[Mode]], ...]] = (
        ("prefill_scale_up_queue_tokens", "prefill_scale_down_queue_tokens", frozenset({Mode.DISAGG, Mode.PREFILL})),
        ("decode_scale_up_kv_rate", "decode_scale_down_kv_rate", frozenset({Mode.DISAGG, Mode.DECODE, Mode.AGG})),
    )

    @property
    def load_scaling(self) -> bool:
        """Whether reactive scaling is on; targets other than `sla` have only reactive scaling."""
        return self.enable_load_scaling or self.optimization_target is not Target.SLA

    @property
    def throughput_scaling(self) -> bool:
        """Whether predictive scaling is on."""
        return self.enable_throughput_scaling and self.optimization_target is Target.SLA

    @property
    def power_limit(self) -> int | None:
        """Power limit of the GPUs of all pools together, in watts; None without such a budget."""
        limit = self.total_gpu_power_limit if self.enable_power_awareness else None
        return None if limit is None else int(limit)

    def engine_gpus(self, role: str) -> int | None:
        """GPUs of one engine of `prefill`, or of any other role; None if the graph states it."""
        return self.prefill_engine_num_gpu if role == "prefill" else self.decode_engine_num_gpu

    def least_replicas(self, role: str) -> int:
        """Fewest replicas of the pool of a role: `prefill`, or any other."""
        own = self.prefill_min_endpoint if role == "prefill" else self.decode_min_endpoint
        return self.min_endpoint if own is None else own

    def problems(self) -> Iterator[Problem]:
        """Rules between fields (planner.md, section a.10)."""
        if not self.load_scaling and not self.throughput_scaling:
            yield (
                ("enable_throughput_scaling",),
                "is false, and enable_load_scaling is false, too: enable at least one of them, or the planner scales nothing",
            )
        load, throughput = self.load_adjustment_interval_seconds, self.throughput_adjustment_interval_seconds
        if self.load_scaling and self.throughput_scaling and load >= throughput:
            yield (
                ("load_adjustment_interval_seconds",),
                f"{load} s must be shorter than throughput_adjustment_interval_seconds, {throughput} s",
            )
        if self.environment is Environment.GLOBAL_PLANNER and not self.global_planner_namespace:
            yield ("global_planner_namespace",), "required with environment 'global-planner'"
        if isqrt(self.fpm_sample_bucket_size) ** 2 != self.fpm_sample_bucket_size:
            yield (
                ("fpm_sample_bucket_size",),
                f"{self.fpm_sample_bucket_size} is not a square number, such as 16 or 25",
            )
        if self.enable_power_awareness and self.total_gpu_power_limit is None:
            yield (
                ("total_gpu_power_limit",),
                "required with enable_power_awareness: the power limit of all pools together, in watts",
            )
        for name in ("min_endpoint", "prefill_min_endpoint", "decode_min_endpoint"):
            if problem := too_many(getattr(self, name) or 0):
                yield (name,), problem
        if self.optimization_target is Target.LOAD:
            yield from self._threshold_problems()

    def remarks(self) -> Iterator[Problem]:
        """Settings that another setting makes ineffective, and one setting that this platform ignores."""
        if self.environment is not Environment.KUBERNETES:
            yield ("environment",), f"'{self.environment.value}' has no effect: the scaler executes the decisions"
        if -1 < self.max_gpu_budget < self.min_gpu_budget:
            yield (
                ("min_gpu_budget",),
                f"{self.min_gpu_budget} is above max_gpu_budget, {self.max_gpu_budget}, which takes precedence",
            )
        if self.total_gpu_power_limit is not None and not self.enable_power_awareness:
            yield ("total_gpu_power_limit",), "ignored without enable_power_awareness: true"
        if self.gpu_price is not None and "attainment" in self.model_fields_set:
            yield ("attainment",), "ignored with gpu_price, which weighs requests against GPUs; leave one of them out"
        if (other := _OF_OTHER_POOL.get(self.mode, "")) and getattr(self, other) is not None:
            yield (other,), f"ignored in mode '{self.mode.value}', which has no such pool"
        yield from self._profile_remarks()
        if self.policy is PlanningPolicy.ADAPTIVE:
            for name in sorted(self.model_fields_set & _OF_REFERENCE):
                yield (name,), "ignored with policy 'adaptive'; only 'reference' reads it"
            return
        if self.optimization_target is Target.SLA:
            return
        target = f"optimization_target {self.optimization_target.value!r}"
        for name in ("ttft_ms", "itl_ms"):
            if name in self.model_fields_set:
                yield (name,), f"ignored with {target}; only 'sla' uses this target"
        if "enable_throughput_scaling" in self.model_fields_set and self.enable_throughput_scaling:
            yield ("enable_throughput_scaling",), f"ignored with {target}, which has only reactive scaling"
        if "enable_load_scaling" in self.model_fields_set and not self.enable_load_scaling:
            yield ("enable_load_scaling",), f"ignored with {target}, which has only reactive scaling"

    def _profile_remarks(self) -> Iterator[Problem]:
        predicts = self.throughput_scaling or self.policy is PlanningPolicy.ADAPTIVE
        if predicts and self.pre_deployment_sweeping_mode is Sweeping.NONE:
            yield (
                ("pre_deployment_sweeping_mode",),
                "'none' measures no profile: without one, the planner holds the replicas until the engines have "
                "reported enough iterations, load_min_observations",
            )

    def _threshold_problems(self) -> Iterator[Problem]:
        for above, below, modes in self._thresholds:
            if self.mode not in modes:
                continue
            up, down = getattr(self, above), getattr(self, below)
            missing = [name for name, value in ((above, up), (below, down)) if value is None]
            yield from (
                ((name,), f"required with optimization_target 'load' in mode '{self.mode}'") for name in missing
            )
            if not missing and up <= down:
                yield (
                    (above,),
                    f"{up:g} must be above {below}, {down:g}, or the planner alternately adds and removes replicas",
                )
