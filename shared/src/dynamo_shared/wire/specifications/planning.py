"""Events of deployment requests and of plans: decisions, their inputs and their reasons."""

import msgspec

from dynamo_shared.wire.specifications.base import Count, EventFamily, EventIdentity, EventSpec, Int64
from dynamo_shared.wire.specifications.deployment import GRAPH_DEPLOYMENT

REQUEST = "dynamographdeploymentrequest"


class RequestData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoGraphDeploymentRequest as it was when the event happened."""

    name: str
    namespace: str
    phase: str = ""
    """as in its status"""
    profiling_phase: str = ""
    """step of profiling, as in its status"""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"
    model: str = ""
    """requested model"""
    backend: str = ""
    """requested backend; in a result, the selected one"""
    graph_deployment: str = ""
    """graph that was created for the request"""
    figures: dict[str, float] = {}
    """of the selected graph: gpus, ttft and itl in milliseconds, tokensPerSecondPerGPU, ..."""


class PlanAlternative(msgspec.Struct, kw_only=True, frozen=True):
    """An alternative that was considered."""

    replicas: dict[str, Count] = {}
    """by pool"""
    figures: dict[str, float] = {}
    """the policy's predictions for it, by name"""
    reason: str = ""
    """why it was not selected"""


class PlanData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A decision of the planner, its inputs and its reason. Pools are `prefill` and `decode`."""

    graph_deployment: str
    """graph that is planned"""
    namespace: str
    policy: str = ""
    """`adaptive` or `reference`"""
    reason: str = ""
    message: str = ""
    replicas: dict[str, Count] = {}
    """desired, by pool; empty if nothing should change"""
    current: dict[str, Count] = {}
    """ready, by pool"""
    inputs: dict[str, float] = {}
    """inputs of the policy, by name"""
    missing: dict[str, str] = {}
    """missing inputs, and why they are missing"""
    predictions: dict[str, float] = {}
    """the policy's predictions, by name"""
    alternatives: list[PlanAlternative] = []
    """alternatives that were considered"""
    command: str = ""
    """id of the command to the scaler; empty if none was sent"""
    advisory: bool = False
    """whether the plan is only reported, not executed"""


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
