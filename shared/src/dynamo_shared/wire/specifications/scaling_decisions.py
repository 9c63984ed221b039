"""Events of the scaler's decisions about scale commands: decisions, their inputs and their reasons."""

from typing import Annotated

import msgspec

from dynamo_shared.wire.specifications.base import Count, EventFamily, EventIdentity, EventSpec, Int64
from dynamo_shared.wire.specifications.deployment import GRAPH_DEPLOYMENT


class ScaledComponent(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """One component in a decision."""

    graph_deployment: str
    """graph of the component"""
    namespace: str
    """namespace of that graph"""
    component: str
    """name of the component"""
    sub_component_type: str = ""
    """`prefill`, `decode`, or another type"""
    current: Count = 0
    """replicas that were desired before"""
    requested: Count = 0
    """replicas that the command requests"""
    allowed: Count = 0
    """replicas that are desired now, or would be"""
    gpus_per_replica: Count = 0
    """GPUs of one replica; 0: none, or unknown"""
    shared_gpus: Count = 0
    """GPUs of ResourceClaims that all replicas share"""
    adapter: str = ""
    """scaling adapter that was written; empty: the graph deployment itself was"""
    reason: str = ""
    """why `allowed` differs from `requested`: Cooldown, RolloutInProgress, CapacityPending, ..."""
    message: str = ""
    """the reason as text"""


class BudgetFigures(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A GPU budget as observed at the decision. -1: unbounded."""

    name: str
    """as configured"""
    min_gpus: Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)] = -1
    """its floor"""
    max_gpus: Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)] = -1
    """its ceiling"""
    before: Count = 0
    """GPUs of all desired replicas"""
    after: Count = 0
    """GPUs of all desired replicas after all requested changes that no other limit holds"""
    tolerance: Count = 0
    """how far a transfer may leave the total below the floor"""
    unknown: list[str] = []
    """components that may have more GPUs than counted, as `namespace/graph component`"""


class ScalingDecision(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """The scaler's decision about a request for replicas, its inputs and its reason."""

    name: str
    namespace: str
    generation: Int64 = "0"
    reason: str = ""
    message: str = ""
    components: list[ScaledComponent] = []
    """components of the request, then components of other requests that it was paired with"""
    budgets: list[BudgetFigures] = []
    """budgets that count these components"""
    requester: str = ""
    """who sent the request"""
    request_reason: str = ""
    """why, as text of the requester"""
    command: str = ""
    """id of the command"""
    dry_run: bool = False
    """whether the request was only a dry run"""


_decision = EventFamily("scaling", GRAPH_DEPLOYMENT, "scaler", ScalingDecision, EventIdentity.CAUSE)

EVENTS: tuple[EventSpec, ...] = (
    _decision("scale-applied", "Replicas were changed as requested, or as far as allowed."),
    _decision("scale-held", "A request waits, at most for its lifetime, and is executed as soon as it is allowed."),
    _decision("scale-refused", "A request was refused; see reason and message."),
    _decision("scale-advised", "The decision that would have been made: for a dry run, or with advisory budgets."),
)
