"""What one reconcile of a graph will do; each step adds its part, and nothing is written before the plan is complete."""

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
    """How generations of workers take turns in this reconcile."""

    #: Leftover DCDs, and the replicas that each should have now.
    drain: Sequence[tuple[KubeObject, int]] = ()
    #: Uids of leftovers that still serve.
    kept: Sequence[str] = ()
    #: Whether all leftovers are drained, because they have served nothing for a while and new pods need their room.
    makes_way: bool = False
    components: Sequence[str] = ()
    #: `status.rollingUpdate`.
    status: dict[str, Any] | None = None
    started: bool = False
    completed: bool = False
    #: Seconds after which it may continue without an event.
    again: float | None = None
    #: What it waits for, if no count of pods shows it.
    waits: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """What one reconcile of a graph does about its restart."""

    #: The restart ids of pod templates, by component.
    ids: Mapping[str, str] = field(default_factory=dict)
    #: `status.restart`, or None.
    status: dict[str, Any] | None = None
    #: The phase that begins with this reconcile, or "".
    entered: str = ""

    @property
    def is_under_way(self) -> bool:
        """Whether components are being restarted."""
        return self.status is not None and self.status.get("phase") == RestartPhase.RESTARTING


@dataclass(frozen=True, slots=True)
class Plan:
    """The desired objects of a graph, and the steps from the observed state to them."""

    parsed: DynamoGraphDeployment | None = None
    #: All objects that the graph owns or shares; None if they could not be rendered, and nothing is written.
    children: Sequence[KubeObject] | None = None
    #: The PodCliqueSet among them, if the graph runs on Grove.
    pod_clique_set: KubeObject | None = None
    starts: Starts = NO_STARTS
    #: Replicas that the graph desires of each component; {} if none waits for a checkpoint: `children` have them then.
    replicas: Mapping[str, int] = field(default_factory=dict)
    rollout: Rollout = Rollout()
    restart: RestartPlan = RestartPlan()
    #: Workloads on the orchestrator that is not desired; deleted when the desired one serves.
    outgoing: Sequence[KubeObject] = ()
    #: DynamoCheckpoints that components request and that do not exist.
    checkpoints: Sequence[KubeObject] = ()
    #: SnapshotJobs that take the checkpoints of components.
    captures: Sequence[KubeObject] = ()
    #: Why the plan is not complete.
    failure: Failure | None = None

    def with_children(self, children: Sequence[KubeObject]) -> Self:
        """The same plan with these desired objects."""
        clique_set = next((child for child in children if child["kind"] == POD_CLIQUE_SETS.kind), None)
        return replace(self, children=children, pod_clique_set=clique_set)

    @property
    def desired(self) -> Sequence[KubeObject]:
        """The desired objects; empty if they could not be rendered."""
        return self.children or ()
