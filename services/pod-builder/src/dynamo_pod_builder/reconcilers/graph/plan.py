"""What one reconcile of a graph is about to do; each step adds to it, and nothing is written before it is complete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import POD_CLIQUE_SETS
from dynamo_shared.api.v1beta1 import DynamoGraphDeployment
from dynamo_shared.api.v1beta1.enums import RestartPhase

from dynamo_pod_builder.starts import NO_STARTS, Starts
from dynamo_pod_builder.status.component import Failure


@dataclass(frozen=True, slots=True)
class Rollout:
    """How generations of workers take turns this time."""

    #: Leftover DCDs, and the replicas that each should have now.
    drain: Sequence[tuple[KubeObject, int]] = ()
    #: uids of leftovers that still serve.
    kept: Sequence[str] = ()
    components: Sequence[str] = ()
    #: `status.rollingUpdate`.
    status: dict[str, Any] | None = None
    started: bool = False
    completed: bool = False
    #: Seconds after which it may go on without an event.
    again: float | None = None
    #: What it waits for, where no count of pods shows it.
    waits: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """What one reconcile of a graph does about its restart."""

    #: Ids that pod templates carry, by component.
    ids: Mapping[str, str] = field(default_factory=dict)
    #: `status.restart`; None for none.
    status: dict[str, Any] | None = None
    #: The phase that begins with this reconcile, "" where none does.
    entered: str = ""

    @property
    def is_under_way(self) -> bool:
        """Whether components are being restarted."""
        return self.status is not None and self.status.get("phase") == RestartPhase.RESTARTING


@dataclass(frozen=True, slots=True)
class Plan:
    """The desired objects of a graph, and how to get there from what is there."""

    parsed: DynamoGraphDeployment | None = None
    #: All that the graph owns or shares; None where it could not be rendered, and nothing is written.
    children: Sequence[KubeObject] | None = None
    #: The one among them, where the graph runs on Grove.
    pod_clique_set: KubeObject | None = None
    starts: Starts = NO_STARTS
    #: Replicas that the graph desires of each component; {} where none waits for a checkpoint, and they are those of `children`.
    replicas: Mapping[str, int] = field(default_factory=dict)
    rollout: Rollout = Rollout()
    restart: RestartPlan = RestartPlan()
    #: What runs the graph on another way than is desired, and goes once the desired way serves.
    outgoing: Sequence[KubeObject] = ()
    #: DynamoCheckpoints that components ask for and that do not exist.
    checkpoints: Sequence[KubeObject] = ()
    #: SnapshotJobs that take the checkpoints of components.
    captures: Sequence[KubeObject] = ()
    #: Why the plan is not complete.
    failure: Failure | None = None

    def having(self, children: Sequence[KubeObject]) -> Self:
        """The same plan with these desired objects."""
        clique_set = next((child for child in children if child["kind"] == POD_CLIQUE_SETS.kind), None)
        return replace(self, children=children, pod_clique_set=clique_set)

    @property
    def desired(self) -> Sequence[KubeObject]:
        """The desired objects; none where they could not be rendered."""
        return self.children or ()
