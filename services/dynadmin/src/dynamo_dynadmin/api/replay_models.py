"""Bodies and answers of replays, as they are on the wire."""

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

from dynamo_dynadmin.api.models import BodySchema, Schema
from dynamo_dynadmin.api.traffic import HIGHEST, ISL, LONGEST, MOST_STEPS, OSL

#: Maximum duration of a replay's traffic. Seconds.
LONGEST_REPLAY = 6 * 3600
_Tokens = Annotated[int, Field(ge=1, le=LONGEST)]


class PlannerChanges(BaseModel):
    """Keys of the PlannerConfig that a replay changes, with its names; what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    gpu_price: Annotated[Number | None, Field(ge=0, le=1)] = None
    """What part of the requests that a GPU serves at its best must be in time for each GPU; null: none, `attainment` decides."""
    attainment: Annotated[Number, Field(ge=0.5, le=0.999)] = 0.95
    """Share of requests that must be within both times."""
    ttft_ms: Milliseconds = 500.0
    """Time to first token."""
    itl_ms: Milliseconds = 50.0
    """Time between tokens."""
    max_gpu_budget: Gpus = 8
    """GPUs of all pools together at most; -1: no bound."""
    min_gpu_budget: Gpus = -1
    """GPUs of all pools together at least; -1: no bound."""
    min_endpoint: Annotated[int, Field(ge=0, le=1000)] = 1
    """Replicas that each pool keeps."""
    policy: PlanningPolicy = PlanningPolicy.ADAPTIVE
    """How it is decided: adaptive or reference."""
    optimization_target: Target = Target.THROUGHPUT
    """What scaling aims at."""
    load_predictor: Predictor = Predictor.ARIMA
    """How the load of the next interval is predicted."""
    throughput_adjustment_interval_seconds: Seconds = 180
    """Seconds between two decisions of predictive scaling."""
    load_adjustment_interval_seconds: Seconds = 5
    """Seconds between two decisions of reactive scaling."""
    enable_throughput_scaling: Bool = True
    """Predictive scaling."""
    enable_load_scaling: Bool = False
    """Reactive scaling."""
    load_min_observations: Count = 5
    """Iterations that must be measured before a model of an engine is used."""


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

    changes: PlannerChanges = PlannerChanges()
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
    """GPUs in use, including those of replicas that start or drain."""


class ReplayRun(Schema):
    """The results of one configuration; milliseconds. None if no request got that far."""

    config: dict[str, Any]
    """What decides of the configuration."""
    requests: int
    attainment: float | None
    """Share of requests within both times of this configuration; those that never ended are not."""
    ttft_attainment: float | None
    itl_attainment: float | None
    ttft_mean: float | None
    """Time to first token, including the wait in queues."""
    ttft_p99: float | None = Field(alias="ttftP99")
    itl_mean: float | None
    """Of requests' mean time between tokens."""
    itl_p99: float | None = Field(alias="itlP99")
    gpu_hours: float
    """Includes replicas that start or drain."""
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
    """What was assumed."""
    seconds: float
    """Duration of the simulation."""
