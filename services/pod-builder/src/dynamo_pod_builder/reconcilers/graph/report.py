"""The status of a graph after a reconcile, which Events and messages it causes, and when the next reconcile is due."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import Condition
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.runtime.status_writer import SETTLE, StatusWriter

from dynamo_pod_builder import events
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.reconcilers.graph import grove, own_planner
from dynamo_pod_builder.reconcilers.graph.carry_out import CarryOutResult
from dynamo_pod_builder.reconcilers.graph.observed import Observed, place_of
from dynamo_pod_builder.reconcilers.graph.own_planner import INFORMED
from dynamo_pod_builder.reconcilers.graph.parts import all_parts, all_serve, replicas_by_component
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.reconcilers.refusals import retry_after
from dynamo_pod_builder.reconcilers.requeue import OBSERVED_WITHIN, RESTART_INTERVAL, earliest
from dynamo_pod_builder.snapshot_starts import FAILED as NO_CHECKPOINT
from dynamo_pod_builder.status import graph as status
from dynamo_pod_builder.status.component import Failure
from dynamo_pod_builder.status.graph import FAILED, READY, Generation, graph_status
from dynamo_pod_builder.status.pods import recheck_after
from dynamo_pod_builder.status.snapshots import CHECKPOINTS_READY, checkpoints_condition
from dynamo_pod_builder.status.topology import AVAILABLE, is_constrained, topology_condition
from dynamo_pod_builder.status.workload import is_observed, stateful_set_lacking


@dataclass(frozen=True, slots=True)
class GraphReport:
    """Writes the status of graphs, with Events and messages for what changed in it."""

    statuses: StatusWriter
    announcer: Announcer
    pod_events: PodEvents
    #: Uids of graphs whose first status is not yet written.
    _new: set[str] = field(default_factory=set)

    def begin(self, graph: KubeObject) -> None:
        """Report that a graph was observed; once, while it has no status."""
        if is_new(graph) and objects.uid(graph) not in self._new:
            self._new.add(objects.uid(graph))
            self.announcer.announce(graph, events.graph_observed(graph))

    def gone(self, graph: KubeObject) -> None:
        """Report that a graph was deleted."""
        self._new.discard(objects.uid(graph))
        self.announcer.announce(graph, events.graph_gone(graph))

    async def write(self, plan: Plan, outcome: CarryOutResult) -> float | None:
        """Report one reconcile. Returns the seconds until the next one; None if events trigger it."""
        observed = outcome.observed
        graph, now = observed.graph, observed.now
        concluded = conclude(plan, outcome)
        after = graph_status(graph, replace(concluded, components=await self._explained(concluded, observed)), now)
        entered, rollout = bool(plan.restart.entered), plan.rollout

        def report() -> None:
            for each in _lost(concluded.conditions, graph):
                self.announcer.announce(graph, events.TOPOLOGY_LOST.named(each["reason"])(each["message"]))
            for each in _changed(concluded.conditions, graph, INFORMED):
                self.announcer.announce(graph, events.planner_uninformed(graph, after, each))
            for each in _changed(concluded.conditions, graph, CHECKPOINTS_READY):
                self.announcer.announce(graph, events.graph_checkpoints_changed(graph, after, each))
            if rollout.started:
                self.announcer.announce(graph, events.rollout_started(rollout.components))
            if rollout.completed:
                self.announcer.announce(graph, events.rollout_completed(rollout.components))
            if entered:
                self.announcer.announce(graph, events.restart_entered(after["restart"]))
            if _verdict(after) != _verdict(observed.status):
                self._new.discard(objects.uid(graph))
                self.announcer.announce(graph, events.graph_changed(graph, after))

        urgent = is_new(graph) or after["state"] == FAILED or entered
        # After one of several workload controllers has reported, the status waits for the others.
        waits = _waits_for_controllers(graph, concluded)
        settle = OBSERVED_WITHIN if waits else SETTLE
        wait = await self.statuses.write(
            DYNAMO_GRAPH_DEPLOYMENTS,
            graph,
            after,
            urgent=urgent,
            settle=settle,
            heeds_progress=not waits,
            report=report,
        )
        # An earlier due time, such as the next step of a restart, does not wait for a delayed status write.
        return earliest(wait, next_reconcile(plan, outcome))

    async def _explained(self, concluded: status.GraphOutcome, observed: Observed) -> dict[str, list[Generation]]:
        """Components with the Events of pods that do not start, except for generations that are to be deleted."""
        namespace = objects.namespace(observed.graph)

        async def explained(part: Generation) -> Generation:
            if not part.current:
                return part
            lacking = stateful_set_lacking(part.workload, observed.pods_of(part.workload))
            causes = await self.pod_events.explain(namespace, part.troubles, part.workload, lacking)
            return replace(part, troubles=causes)

        return {name: [await explained(part) for part in parts] for name, parts in concluded.components.items()}


def is_new(graph: KubeObject) -> bool:
    """Whether a graph has no status yet."""
    return "observedGeneration" not in graph.get("status", {})


def _waits_for_controllers(graph: KubeObject, concluded: status.GraphOutcome) -> bool:
    """Whether the graph's present spec is already acknowledged, but controllers have not observed its workloads."""
    if graph.get("status", {}).get("observedGeneration") != objects.generation(graph):
        return False
    return not all(is_observed(part.workload) for parts in concluded.components.values() for part in parts)


def conclude(plan: Plan, outcome: CarryOutResult) -> status.GraphOutcome:
    """The result of a reconcile as the status reports it. Pure."""
    observed = outcome.observed
    before = observed.status
    # What is not known again yet keeps its previous value.
    checkpoints = plan.starts.status if outcome.complete else before.get("checkpoints")
    # If nothing could be rendered, there is no plan, and everything keeps its previous value.
    is_planned = plan.children is not None
    restart = plan.restart.status if is_planned else before.get("restart")
    starts, parts = plan.starts, all_parts(plan, observed)
    # If pods start without the checkpoint, or all of them serve, only the condition about checkpoints says so.
    awaited = sorted(starts.waiting - _serving(plan, parts))
    stopped = [
        f"component {name}: {each.message}"
        for name, each in starts.by_component.items()
        if each.fails and name in awaited
    ]
    return status.GraphOutcome(
        components=parts,
        failure=outcome.failure or (Failure(NO_CHECKPOINT, "; ".join(stopped)) if stopped else None),
        awaited={name: starts.by_component[name].name for name in awaited},
        rolling_update=plan.rollout.status if is_planned else before.get("rollingUpdate"),
        rollout_waits=plan.rollout.waits,
        carried={name: each for name, each in (("checkpoints", checkpoints), ("restart", restart)) if each},
        conditions=[*_topology(plan, observed), *_checkpoints(plan, outcome), *_planner(outcome)],
        gpus=observed.gpus if is_planned else {},
    )


def _serving(plan: Plan, parts: Mapping[str, Sequence[Generation]]) -> frozenset[str]:
    """Components whose desired pods all serve: the loss of a checkpoint stops none of them."""
    rendered = replicas_by_component(plan.desired)
    complete = (name for name, replicas in plan.replicas.items() if rendered.get(name, 0) >= replicas)
    return frozenset(name for name in complete if all_serve({name: parts.get(name, ())}))


def next_reconcile(plan: Plan, outcome: CarryOutResult) -> float | None:
    """Seconds until another reconcile is due even without an event. Pure."""
    observed = outcome.observed
    delays = [
        retry_after(outcome.failure),
        retry_after(outcome.planner_refusal),
        plan.rollout.again,
        RESTART_INTERVAL if plan.restart.is_under_way else None,
    ]
    if plan.pod_clique_set is not None:
        workloads = [observed.cliques.get(each.place) for each in grove.workloads(plan.pod_clique_set)]
        pods = [pod for workload in workloads for pod in observed.pods_of(workload)]
        delays.append(recheck_after(pods, observed.now))
    return earliest(*delays)


def _topology(plan: Plan, observed: Observed) -> list[Condition]:
    graph = observed.graph
    if plan.children is None:
        return _kept(graph, AVAILABLE)
    if plan.pod_clique_set is None or not is_constrained(graph):
        return []
    pod_clique_set = observed.children.get(place_of(plan.pod_clique_set))
    return [topology_condition(graph, pod_clique_set, observed.now)]


def _checkpoints(plan: Plan, outcome: CarryOutResult) -> list[Condition]:
    graph, starts = outcome.observed.graph, plan.starts.snapshots
    if outcome.complete:
        return [checkpoints_condition(graph, starts, outcome.observed.now)] if starts else []
    return _kept(graph, CHECKPOINTS_READY)


def _planner(outcome: CarryOutResult) -> list[Condition]:
    graph = outcome.observed.graph
    if outcome.planner_refusal is not None:
        return [own_planner.planner_condition(graph, outcome.planner_refusal, outcome.observed.now)]
    return [] if outcome.complete else _kept(graph, INFORMED)


def _kept(graph: KubeObject, type_: str) -> list[Condition]:
    """The previous condition, if it is not known again yet."""
    before = objects.condition(graph, type_)
    return [before] if before is not None else []


def _changed(conditions: Iterable[Condition], graph: KubeObject, type_: str) -> Iterator[Condition]:
    """The condition of a type, if it differs from the previous one."""
    for each in conditions:
        before = objects.condition(graph, type_) or {}
        known = (before.get("reason"), before.get("message"))
        if each["type"] == type_ and (each["reason"], each["message"]) != known:
            yield each


def _lost(conditions: Iterable[Condition], graph: KubeObject) -> Iterator[Condition]:
    """Conditions of missing topology domains, if they are new."""
    for each in conditions:
        before = objects.condition(graph, each["type"]) or {}
        if each["type"] == AVAILABLE and each["status"] == "False" and each["reason"] != before.get("reason"):
            yield each


def _verdict(reported: KubeObject) -> tuple[object, ...]:
    ready = objects.condition({"status": reported}, READY) or {}
    return (reported.get("state"), ready.get("reason"), reported.get("observedGeneration"))
