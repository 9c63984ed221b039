"""Events of the scaler's decisions about scale commands: what was decided, from what, and why."""

from typing import Annotated

import msgspec

from dynamo_shared.wire.specifications.base import Count, EventFamily, EventIdentity, EventSpec, Int64
from dynamo_shared.wire.specifications.deployment import GRAPH_DEPLOYMENT


class ScaledComponent(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """What became of one component in a decision."""

    graph_deployment: str
    """graph that it is of"""
    namespace: str
    """of that graph"""
    component: str
    """its name"""
    sub_component_type: str = ""
    """`prefill`, `decode`, or another type"""
    current: Count = 0
    """replicas that were desired before"""
    requested: Count = 0
    """replicas that the command asks for"""
    allowed: Count = 0
    """replicas that are desired now, or would be"""
    gpus_per_replica: Count = 0
    """0: none, or not known"""
    shared_gpus: Count = 0
    """GPUs of ResourceClaims that all replicas share"""
    adapter: str = ""
    """scaling adapter that was written; empty: the graph deployment itself"""
    reason: str = ""
    """why `allowed` is not what was requested: Cooldown, RolloutInProgress, CapacityPending, ..."""
    message: str = ""
    """the reason, in words"""


class BudgetFigures(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A budget of GPUs as a decision observed it. -1: unbounded."""

    name: str
    """as configured"""
    min_gpus: Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)] = -1
    """its floor"""
    max_gpus: Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)] = -1
    """its ceiling"""
    before: Count = 0
    """GPUs of all desired replicas"""
    after: Count = 0
    """GPUs of all desired replicas if everything requested that nothing else holds is done"""
    tolerance: Count = 0
    """how far a transfer may leave the total below the floor"""
    unknown: list[str] = []
    """components that may have more GPUs than are counted, as `namespace/graph component`"""


class ScalingDecision(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """What the scaler decided about a request for other replicas, from what, and why."""

    name: str
    namespace: str
    generation: Int64 = "0"
    reason: str = ""
    message: str = ""
    components: list[ScaledComponent] = []
    """those of the request, then those of others that it was paired with"""
    budgets: list[BudgetFigures] = []
    """those that count the components"""
    requester: str = ""
    """who asked"""
    request_reason: str = ""
    """why, in words of the requester"""
    command: str = ""
    """id of the command"""
    dry_run: bool = False
    """whether nothing was to be written"""


_decision = EventFamily("scaling", GRAPH_DEPLOYMENT, "scaler", ScalingDecision, EventIdentity.CAUSE)

EVENTS: tuple[EventSpec, ...] = (
    _decision("scale-applied", "Replicas were changed as a command asked, or as far as was allowed."),
    _decision(
        "scale-held", "What a command asked for waits, for its life time at most, and is carried out after that."
    ),
    _decision("scale-refused", "What a command asked for is not done; reason and message say why."),
    _decision("scale-advised", "What would have been decided: of a dry run, or where budgets are advisory."),
)
