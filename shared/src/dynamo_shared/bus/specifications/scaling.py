"""What the scaler is asked, and what it tells."""

from __future__ import annotations

import msgspec

from dynamo_shared.bus.specifications.base import CommandSpec, Count, EventSpec, Int64


class ScaleTarget(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """How many replicas one component shall have. It is named, or it is the only one of its sub-component type."""

    component: str = ""
    sub_component_type: str = ""
    """`prefill` or `decode`, where no component is named"""
    replicas: Count = 0


class ScaleData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Asks for so many replicas of components of a graph deployment; components left out stay as they are."""

    graph_deployment: str
    targets: list[ScaleTarget]
    reason: str = ""
    requester: str = ""
    """who asks, for events and conditions: `planner`, or a name of the sender's choice"""
    expected_generation: Int64 = "0"
    """refuse where the graph deployment has another generation by now; 0: do not look"""
    dry_run: bool = False
    """say what would be done, and do nothing"""


EVENTS: tuple[EventSpec, ...] = ()

COMMANDS: tuple[CommandSpec, ...] = (
    CommandSpec(
        service="scaler",
        verb="scale",
        data=ScaleData,
        description="Asks for other replica counts of a graph deployment's components.",
    ),
)
