"""DynamoGraphDeployment -> access objects, DynamoComponentDeployments or a PodCliqueSet, and the graph's status."""

from dataclasses import dataclass, replace
from functools import partial

from dynamo_shared.aio import Offload, both
from dynamo_shared.api import objects
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.large_objects import in_turn

from dynamo_pod_builder.applier import Applier
from dynamo_pod_builder.reconcilers.graph import own_planner
from dynamo_pod_builder.reconcilers.graph.captures import Captures
from dynamo_pod_builder.reconcilers.graph.carry_out import CarryOutResult, Executor
from dynamo_pod_builder.reconcilers.graph.observe import GraphObserver
from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.reconcilers.graph.report import GraphReport
from dynamo_pod_builder.reconcilers.graph.steps import planned
from dynamo_pod_builder.reconcilers.refusals import REFUSALS, failure_of


@dataclass(frozen=True, slots=True)
class GraphReconciler:
    """Makes one graph run, and reports the progress in its status: observe, plan, carry out, report."""

    observer: GraphObserver
    executor: Executor
    report: GraphReport
    applier: Applier
    large: Offload
    captures: Captures

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile one graph. Raises KubeError if the API server is unavailable: the queue retries the key."""
        graph = self.observer.graph(key)
        if graph is None:
            return Result()
        if objects.is_deleting(graph):
            await self.applier.remove_reference_finalizer(DYNAMO_GRAPH_DEPLOYMENTS, graph)
            return Result()
        observed = await self.observer.observe(graph)
        # Both at once, so that a new graph does not wait for the API server's answer in addition to its plan.
        exists, plan = await both(self._exists(observed), self._planned(observed))
        if not exists or self.observer.cache.get_by_uid(DYNAMO_GRAPH_DEPLOYMENTS, key, objects.uid(graph)) is None:
            return Result()
        self.report.begin(graph)
        observed, plan = await self._captured(observed, plan)
        if plan.rollout.makes_way:
            observed, plan = await self._confirmed(observed, plan)
        outcome = await self._informed(plan, await self.executor.carry_out(plan, observed))
        return Result(requeue_after=await self.report.write(plan, outcome))

    async def _planned(self, observed: Observed) -> Plan:
        return await in_turn(self.large, observed.graph, partial(planned, observed))

    async def _informed(self, plan: Plan, outcome: CarryOutResult) -> CarryOutResult:
        """The outcome after the graph's annotations name the serving workers for its planner, or why they do not."""
        annotations = own_planner.lacking(plan, outcome.observed) if outcome.complete else {}
        if not annotations:
            return outcome
        try:
            graph = await self.applier.annotate(DYNAMO_GRAPH_DEPLOYMENTS, outcome.observed.graph, annotations)
        except REFUSALS as error:
            return replace(outcome, planner_refusal=failure_of(error))
        return replace(outcome, observed=replace(outcome.observed, graph=graph))

    async def _captured(self, observed: Observed, plan: Plan) -> tuple[Observed, Plan]:
        """The observed state and plan with the SnapshotJobs written; if they are refused, the graph is still written."""
        created, failure = await self.captures.write(plan, observed)
        if created:
            observed = await self.observer.observe(observed.graph)
            plan = await self._planned(observed)
        return observed, replace(plan, failure=plan.failure or failure)

    async def _confirmed(self, observed: Observed, plan: Plan) -> tuple[Observed, Plan]:
        """The observed state and plan with the present state of the workloads that are not desired.

        They count as unresponsive because time has passed. If STATE stands still, they may serve again.
        """
        desired = set(map(objects.name, plan.desired))
        leftovers = (workload for name, workload in observed.workloads.items() if name not in desired)
        if any([await self.applier.is_outdated(each) for each in leftovers]):
            observed = await self.observer.observe(observed.graph)
            plan = await self._planned(observed)
        return observed, plan

    async def _exists(self, observed: Observed) -> bool:
        """Whether the API server has the graph; not asked if the graph has children."""
        return bool(observed.children) or await self.applier.exists(observed.graph)
