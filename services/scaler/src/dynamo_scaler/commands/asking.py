"""What is asked for, as the scaler works with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.bus.cloudevents import Event
from dynamo_shared.bus.specifications import ScaleData, ScaleTarget

from dynamo_scaler.budgets.intents import Intent


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for other replicas of a graph."""

    graph: ObjectKey
    command: str
    targets: Sequence[ScaleTarget] = ()
    requester: str = ""
    reason: str = ""
    #: When the command was sent, by its sender's clock; RFC 3339.
    sent: str = ""
    expected_generation: int = 0
    dry_run: bool = False

    @classmethod
    def of(cls, command: Event, namespace: str, data: ScaleData) -> Ask:
        """What a command of a namespace asks for."""
        return cls(
            graph=ObjectKey(namespace, data.graph_deployment),
            command=command.id,
            targets=data.targets,
            requester=data.requester,
            reason=data.reason,
            sent=command.time,
            expected_generation=int(data.expected_generation),
            dry_run=data.dry_run,
        )

    @classmethod
    def again(cls, graph: ObjectKey, intent: Intent) -> Ask:
        """What an intent of a graph remembers."""
        return cls(
            graph=graph,
            command=intent.command,
            requester=intent.requester,
            reason=intent.request_reason,
            sent=intent.sent,
        )
