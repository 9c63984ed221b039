"""Commands to the scaler, and its events."""

import msgspec

from dynamo_shared.wire.specifications import scaling_decisions
from dynamo_shared.wire.specifications.base import CommandSpec, Count, EventFamily, EventSpec, Int64

PLANNER = "planner"
"""Requester in the planner's commands: it plans graphs whose annotation requests that."""


class ScaleTarget(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Desired replicas of one component, which is given by name or as the only one of its sub-component type."""

    component: str = ""
    """its name"""
    sub_component_type: str = ""
    """`prefill` or `decode`, if no component is named"""
    replicas: Count = 0
    """desired replicas"""


class ScaleData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Requests replica counts for components of a graph deployment; other components keep theirs."""

    graph_deployment: str
    """graph in the namespace of the subject"""
    targets: list[ScaleTarget]
    """components to scale"""
    reason: str = ""
    """why, as text of the sender"""
    requester: str = ""
    """name of the requester, for events and conditions: `planner`, or a name of the sender's choice"""
    expected_generation: Int64 = "0"
    """the command is refused if the graph deployment has another generation; 0: not checked"""
    dry_run: bool = False
    """whether the decision is only reported"""
    withdraw: bool = False
    """change no replicas, and drop the requester's earlier requests that are not done; without targets, of all components"""
    uid: str = ""
    """the command is refused if the graph deployment has another metadata.uid; empty: not checked"""


SCALING_ADAPTER = "dynamographdeploymentscalingadapter"


class ScalingAdapterData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoGraphDeploymentScalingAdapter as it was when the event happened."""

    name: str
    namespace: str
    graph_deployment: str = ""
    """graph of the component"""
    component: str = ""
    """component that the adapter scales"""
    previous_replicas: Count = 0
    """the component's replicas before"""
    replicas: Count = 0
    """the component's replicas now"""
    writers: list[str] = []
    """field managers in Kubernetes: first the one that set the adapter's number, then others that set one"""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"


_adapter = EventFamily("scaling", SCALING_ADAPTER, "scaler", ScalingAdapterData)

EVENTS: tuple[EventSpec, ...] = (
    _adapter("scaled", "The replicas of the component were set to those of the scaling adapter."),
    _adapter("conflict", "Another client also sets the replicas of the component; those of the adapter are used."),
    _adapter("failed", "The scaling adapter cannot scale its component; see reason and message."),
    *scaling_decisions.EVENTS,
)

COMMANDS: tuple[CommandSpec, ...] = (
    CommandSpec(
        service="scaler",
        verb="scale",
        senders=("planner",),
        data=ScaleData,
        description="Requests other replicas of components of a graph deployment.",
    ),
)
