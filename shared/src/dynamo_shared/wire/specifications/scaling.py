"""What the scaler is asked, and what it reports."""

import msgspec

from dynamo_shared.wire.specifications import scaling_decisions
from dynamo_shared.wire.specifications.base import CommandSpec, Count, EventFamily, EventSpec, Int64

PLANNER = "planner"
"""Requester of the planner's commands: it plans graphs whose annotation asks for that."""


class ScaleTarget(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """How many replicas one component shall have. It is named, or it is the only one of its sub-component type."""

    component: str = ""
    """its name"""
    sub_component_type: str = ""
    """`prefill` or `decode`, where no component is named"""
    replicas: Count = 0
    """that are desired"""


class ScaleData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Asks for so many replicas of components of a graph deployment; components left out stay as they are."""

    graph_deployment: str
    """graph in the namespace of the subject"""
    targets: list[ScaleTarget]
    """components to scale"""
    reason: str = ""
    """why, in words of the sender"""
    requester: str = ""
    """who asks, for events and conditions: `planner`, or a name of the sender's choice"""
    expected_generation: Int64 = "0"
    """refuse where the graph deployment has another generation by now; 0: do not check"""
    dry_run: bool = False
    """say what would be done, and do nothing"""
    withdraw: bool = False
    """change no replicas, and forget what the requester asked for before and is not done; of all components without targets"""
    uid: str = ""
    """refuse where the graph deployment of the name has another metadata.uid by now; empty: do not check"""


SCALING_ADAPTER = "dynamographdeploymentscalingadapter"


class ScalingAdapterData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoGraphDeploymentScalingAdapter as it was when the event happened."""

    name: str
    namespace: str
    graph_deployment: str = ""
    """graph that the component is of"""
    component: str = ""
    """that the adapter scales"""
    previous_replicas: Count = 0
    """of the component, before"""
    replicas: Count = 0
    """of the component, now"""
    writers: list[str] = []
    """field managers, as Kubernetes knows them: who set the adapter's number, then the others that set one"""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"


_adapter = EventFamily("scaling", SCALING_ADAPTER, "scaler", ScalingAdapterData)

EVENTS: tuple[EventSpec, ...] = (
    _adapter("scaled", "A component has the replicas that its adapter was set to."),
    _adapter("conflict", "Another client sets the replicas of a component, too; the adapter's number counts."),
    _adapter("failed", "An adapter cannot do its work as things are; reason and message say why."),
    *scaling_decisions.EVENTS,
)

COMMANDS: tuple[CommandSpec, ...] = (
    CommandSpec(
        service="scaler",
        verb="scale",
        senders=("planner",),
        data=ScaleData,
        description="Asks for other replica counts of a graph deployment's components.",
    ),
)
