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
    _request("pending", "The platform has observed a new deployment request; its hardware is known."),
    _request("profiling", "Profiling has started or has reached another step."),
    _request("ready", "A graph is generated and can be applied."),
    _request("deploying", "The graph is applied and not ready yet."),
    _request("deployed", "The graph is ready."),
    _request("failed", "The request cannot succeed without a change; see reason and message."),
    _request("deleted", "The deployment request is deleted, and its work has stopped."),
    _plan("planned", "The planner requests other replicas; see reason and message."),
    _plan("plan-held", "The planner keeps the replicas: a limit holds them, or it has too little data."),
)
