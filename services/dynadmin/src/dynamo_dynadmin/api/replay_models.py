"""Bodies and answers of replays in the REST API."""

from typing import Annotated, Any

from dynamo_shared.api.contracts.planner import (
    Count,
    Gpus,
    Milliseconds,
    PlanningPolicy,
    Predictor,
    Seconds,
    Target,
)
from dynamo_shared.api.model import Bool, Number
from pydantic import BaseModel, ConfigDict, Field

from dynamo_dynadmin.api.schemas import BodySchema, Schema, without_defaults
from dynamo_dynadmin.api.traffic import HIGHEST, ISL, LONGEST, MOST_STEPS, OSL

#: Maximum duration of a replay's traffic. Seconds.
LONGEST_REPLAY = 6 * 3600
_Tokens = Annotated[int, Field(ge=1, le=LONGEST)]


class PlannerChanges(BaseModel):
    """Keys of the PlannerConfig that a replay changes, with its names; omitted keys stay unchanged."""

    # A client that filled in defaults would change what it does not name.
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, json_schema_extra=without_defaults)
    gpu_price: Annotated[Number | None, Field(ge=0, le=1)] = None
    """Share of a GPU's best throughput that must meet the target times, for each GPU; null: no price, `attainment` decides."""
    attainment: Annotated[Number, Field(ge=0.5, le=0.999)] = 0.95
    """Share of requests that must meet both target times."""
    ttft_ms: Milliseconds = 500.0
    """Time to first token."""
    itl_ms: Milliseconds = 50.0
    """Time between tokens."""
    max_gpu_budget: Gpus = 8
    """Maximum GPUs of all pools together; -1: no limit."""
    min_gpu_budget: Gpus = -1
    """Minimum GPUs of all pools together; -1: no limit."""
    min_endpoint: Annotated[int, Field(ge=0, le=1000)] = 1
    """Minimum replicas of each pool."""
    policy: PlanningPolicy = PlanningPolicy.ADAPTIVE
    """Planning policy: adaptive or reference."""
    optimization_target: Target = Target.THROUGHPUT
    """The goal of scaling."""
    load_predictor: Predictor = Predictor.ARIMA
    """Predictor of the next interval's load."""
    throughput_adjustment_interval_seconds: Seconds = 180
    """Seconds between two decisions of predictive scaling."""
    load_adjustment_interval_seconds: Seconds = 5
    """Seconds between two decisions of reactive scaling."""
    enable_throughput_scaling: Bool = True
    """Predictive scaling."""
    enable_load_scaling: Bool = False
    """Reactive scaling."""
    load_min_observations: Count = 5
    """Iterations to measure before an engine model is used."""


class ReplayStep(BodySchema):
    """A period of constant traffic."""

    requests_per_second: float = Field(ge=0, le=HIGHEST, allow_inf_nan=False)
    seconds: float = Field(gt=0, le=LONGEST_REPLAY, allow_inf_nan=False)
    isl: _Tokens = ISL
    """Input tokens of a request."""
    osl: _Tokens = OSL
    """Output tokens of a request."""


class ReplayBody(BodySchema):
    """The inputs of a replay; every field is optional."""

    changes: PlannerChanges = Field(default_factory=PlannerChanges)
    """Changes to the PlannerConfig."""
    seconds: int = Field(default=3600, ge=60, le=LONGEST_REPLAY)
    """Duration of the traffic in the decisions, up to ten minutes after the newest one."""
    trace: list[ReplayStep] | None = Field(default=None, min_length=1, max_length=MOST_STEPS)
    """Traffic that replaces the traffic in the decisions."""
    startup_seconds: float | None = Field(default=None, ge=0, le=3600, allow_inf_nan=False)
    """Start-up time of a new replica; by default measured from the graph's pods."""


class ReplayMoment(Schema):
    """Replicas at one moment; they stay the same until the next one."""

    at: float
    """Seconds since the start."""
    ready: dict[str, int]
    """Replicas that serve, by pool."""
    gpus: int
    """GPUs in use, including GPUs of starting and draining replicas."""


class ReplayRun(Schema):
    """The results of one configuration; milliseconds. null if no request reached this point."""

    config: dict[str, Any]
    """The fields of the configuration that affect the result."""
    requests: int
    attainment: float | None
    """Share of requests that met both target times of this configuration; unfinished requests did not."""
    ttft_attainment: float | None
    itl_attainment: float | None
    ttft_mean: float | None
    """Time to first token, including the wait in queues."""
    ttft_p99: float | None = Field(alias="ttftP99")
    itl_mean: float | None
    """Over the mean time between tokens of each request."""
    itl_p99: float | None = Field(alias="itlP99")
    gpu_hours: float
    """Includes starting and draining replicas."""
    scalings: int
    """Decisions that changed replicas."""
    replicas: list[ReplayMoment]


class Replay(Schema):
    """The same traffic with the current PlannerConfig, and with changes."""

    current: ReplayRun
    changed: ReplayRun
    traffic: list[ReplayStep]
    profile: str
    """Source of the engines' times."""
    notes: list[str]
    """Assumptions of the simulation."""
    seconds: float
    """Duration of the simulation."""
