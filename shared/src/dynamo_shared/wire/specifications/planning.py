"""Events of deployment requests and of plans: what was decided, from what, and why."""

import msgspec

from dynamo_shared.wire.specifications.base import Count, EventFamily, EventIdentity, EventSpec, Int64
from dynamo_shared.wire.specifications.deployment import GRAPH_DEPLOYMENT

REQUEST = "dynamographdeploymentrequest"


class RequestData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoGraphDeploymentRequest as it was when the event happened."""

    name: str
    namespace: str
    phase: str = ""
    """as its status has it"""
    profiling_phase: str = ""
    """step of profiling, as its status has it"""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"
    model: str = ""
    """model that was asked for"""
    backend: str = ""
    """that was asked for; of a result, that was selected"""
    graph_deployment: str = ""
    """graph that was created for it"""
    figures: dict[str, float] = {}
    """of the selected graph: gpus, ttft and itl in milliseconds, tokensPerSecondPerGPU, ..."""


class PlanAlternative(msgspec.Struct, kw_only=True, frozen=True):
    """What else was considered."""

    replicas: dict[str, Count] = {}
    """by pool"""
    figures: dict[str, float] = {}
    """what the policy predicts for it, by name"""
    reason: str = ""
    """why it was not taken"""


class PlanData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """What the planner concluded at one moment, from what, and why. Pools are `prefill` and `decode`."""

    graph_deployment: str
    """graph that is planned"""
    namespace: str
    policy: str = ""
    """`adaptive` or `reference`"""
    reason: str = ""
    message: str = ""
    replicas: dict[str, Count] = {}
    """desired, by pool; empty where nothing shall change"""
    current: dict[str, Count] = {}
    """ready, by pool"""
    inputs: dict[str, float] = {}
    """what the policy was given, by name"""
    missing: dict[str, str] = {}
    """inputs that are not there, and why"""
    predictions: dict[str, float] = {}
    """what the policy predicts, by name"""
    alternatives: list[PlanAlternative] = []
    """what else was considered"""
    command: str = ""
    """id of the command that the scaler was sent; empty where none was"""
    advisory: bool = False
    """whether the plan is only reported"""


_request = EventFamily("request", REQUEST, "profiler", RequestData)
_plan = EventFamily("plan", GRAPH_DEPLOYMENT, "planner", PlanData, EventIdentity.CAUSE)

EVENTS: tuple[EventSpec, ...] = (
    _request("pending", "A deployment request was observed, and its hardware is known."),
    _request("profiling", "Profiling has begun, or is at another step."),
    _request("ready", "A graph is ready and waits to be applied."),
    _request("deploying", "The graph was applied and is not ready yet."),
    _request("deployed", "The graph serves."),
    _request("failed", "Nothing will come of it as it is; reason and message say why."),
    _request("deleted", "It is gone, and the work for it has stopped."),
    _plan("planned", "The planner asks for other replicas, and says why."),
    _plan("plan-held", "The planner leaves the replicas as they are: it is held back, or has too little data."),
)
