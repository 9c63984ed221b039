"""How long a reconcile waits for further changes, so that one reconcile answers all of them."""

from collections.abc import Callable
from dataclasses import dataclass

from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.runtime.debounce import Debounce
from dynamo_shared.runtime.routes import CacheChange

from dynamo_pod_builder.reconcilers.requeue import OBSERVED_WITHIN
from dynamo_pod_builder.routing.changes import COUNTED, is_of_outlook, is_of_replicas, is_of_spec, is_of_status
from dynamo_pod_builder.routing.targets import BY_CONCERN, CachedTargets
from dynamo_pod_builder.status.workload import is_observed, reported

#: Adapters of one graph that change together are reconciled together. Seconds.
SETTLE = 0.02
#: Workloads of a graph begin to serve within moments of each other: their owner is reconciled once. Seconds.
TOGETHER = 0.05
#: Children are created in succession, and report at once unless their controller is busy. Seconds.
CREATED = 0.3


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds, by what changed.

    `progress` returns for how many seconds an object waits for further changes after a change that only its status
    reports.
    """

    targets: CachedTargets
    debounce: Debounce
    progress: Callable[[Resource, ObjectKey], float]

    def at_once(self, _: CacheChange) -> float:
        """A number of replicas that a user or the planner sets."""
        self.debounce.after_one_more()
        return 0.0

    def after_pods(self, change: CacheChange) -> float:
        """Pods first: rendering only because of a number, and the reports, may wait a little."""
        return SETTLE + self.debounce.after_these() if is_of_replicas(change) else 0.0

    def after_workloads(self, change: CacheChange) -> float:
        """A workload's number of replicas, or another change of a child."""
        return self.after_pods(change) or self.after_children(change)

    def after_components(self, change: CacheChange) -> float:
        """A status of a component deployment that its graph reads is not delayed: the graph waits for it."""
        return TOGETHER if is_of_status(change) else self.after_children(change)

    def after_children(self, change: CacheChange) -> float:
        """A child that others changed or deleted is corrected at once; pods that serve are reported soon; all else is
        progress.
        """
        if change.new is None or (is_of_spec(change) and not self.targets.cache.is_answer(change.resource, change.new)):
            return 0.0
        if is_of_outlook(change):
            return TOGETHER
        if is_of_spec(change) or (change.old is None and self.targets.cache.is_written(change.resource, change.key)):
            # The reconcile that wrote it has the answer, and another one begins when its status changes.
            return OBSERVED_WITHIN
        if change.old is None or (change.resource in COUNTED and reported(change.old) == reported(change.new)):
            # Its status is reported, not its existence, nor an annotation of its own controller, which will report more
            # if it has not observed the spec yet.
            return CREATED if change.old is None or is_observed(change.new) else OBSERVED_WITHIN
        owners = self.targets.owners(change)
        waits = [self.progress(BY_CONCERN[task.concern], task.key) for task in owners if task.concern in BY_CONCERN]
        return max(waits, default=TOGETHER)
