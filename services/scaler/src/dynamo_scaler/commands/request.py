"""The scaler's internal form of a scale request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.replica_limits import too_many
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.bus.commands import CommandRefusedError
from dynamo_shared.wire import cloudevents
from dynamo_shared.wire.cloudevents import Event
from dynamo_shared.wire.specifications.scaling import ScaleData, ScaleTarget

from dynamo_scaler.budgets.intents import Intent

INVALID = "InvalidCommand"
#: Length limit of names: much of a command is stored in the graph's annotations, for each component, and all
#: annotations together may have 256 KiB.
_LONGEST_NAME = 253
_LONGEST_REASON = 500
#: RFC 3339 takes 35 characters.
_LONGEST_TIME = 64
#: A graph has at most 25 components.
_MOST_TARGETS = 100
#: Digits of a 64 bit integer, with its sign.
_LONGEST_INTEGER = 20


def namespace_of(command: Event, cluster: str) -> str:
    """The namespace of a command, from its source (which matches its subject). CommandRefusedError without one."""
    prefix = cloudevents.source(cluster, "") + "/namespaces/"
    if not command.source.startswith(prefix):
        raise CommandRefusedError(
            INVALID, "the source names no namespace: a command can only scale graphs of its own namespace"
        )
    return command.source.removeprefix(prefix)


@dataclass(frozen=True, slots=True)
class ScaleRequest:
    """A request to change replicas of a graph."""

    graph: ObjectKey
    command: str
    targets: Sequence[ScaleTarget] = ()
    requester: str = ""
    reason: str = ""
    #: When the command was sent, by its sender's clock; RFC 3339.
    sent: str = ""
    expected_generation: int = 0
    #: The uid of the intended graph; empty for any graph of the name.
    uid: str = ""
    dry_run: bool = False
    #: Whether to forget earlier requests of the requester.
    withdraw: bool = False

    @classmethod
    def of(cls, command: Event, namespace: str, data: ScaleData) -> Self:
        """The request of a command. CommandRefusedError if the command exceeds a size limit."""
        if len(data.targets) > _MOST_TARGETS:
            raise CommandRefusedError(INVALID, f"targets: {len(data.targets)} are more than {_MOST_TARGETS}")
        if len(data.expected_generation) > _LONGEST_INTEGER:
            raise CommandRefusedError(INVALID, "expectedGeneration: not a 64-bit integer")
        names = [("graphDeployment", data.graph_deployment), ("requester", data.requester)]
        for index, each in enumerate(data.targets):
            names += [(f"targets[{index}]", each.component), (f"targets[{index}]", each.sub_component_type)]
            if problem := too_many(each.replicas):
                raise CommandRefusedError(INVALID, f"targets[{index}]: {problem}")
        for place, name in names:
            if len(name) > _LONGEST_NAME:
                raise CommandRefusedError(INVALID, f"{place}: longer than {_LONGEST_NAME} characters")
        return cls(
            graph=ObjectKey(namespace, data.graph_deployment),
            command=command.id,
            targets=data.targets,
            requester=data.requester,
            reason=data.reason[:_LONGEST_REASON],
            sent=command.time[:_LONGEST_TIME],
            expected_generation=int(data.expected_generation),
            uid=data.uid,
            dry_run=data.dry_run,
            withdraw=data.withdraw,
        )

    def means(self, graph: KubeObject) -> bool:
        """Whether a graph of the name is the intended one, and not a recreated one."""
        return self.uid in ("", objects.uid(graph))

    @classmethod
    def again(cls, graph: ObjectKey, intent: Intent) -> Self:
        """The request of an intent."""
        return cls(
            graph=graph,
            command=intent.command,
            requester=intent.requester,
            reason=intent.request_reason,
            sent=intent.sent,
        )
