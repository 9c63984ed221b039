"""What a graph's status says after a reconcile, which news that is, and when the next reconcile is due."""

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
    """Writes the status of graphs, with Events and messages of what is new in it."""

    statuses: StatusWriter
    announcer: Announcer
    pod_events: PodEvents
    #: uids of graphs whose first status is not yet written.
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
        """Report one reconcile. Returns the seconds after which the next one is due; None where events ask for it."""
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
        # What the first of several workloads' controllers reports waits for the others.
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
        # What is due earlier, as the next step of a restart, does not wait for a status that may.
        return earliest(wait, next_reconcile(plan, outcome))

    async def _explained(self, concluded: status.GraphOutcome, observed: Observed) -> dict[str, list[Generation]]:
        """With what Events say of pods that do not start, but for those that go."""
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
    """Whether a graph's spec was acted on already, and controllers of its workloads have not observed these yet."""
    if graph.get("status", {}).get("observedGeneration") != objects.generation(graph):
        return False
    return not all(is_observed(part.workload) for parts in concluded.components.values() for part in parts)


def conclude(plan: Plan, outcome: CarryOutResult) -> status.GraphOutcome:
    """What is known of the graph now. Pure."""
    observed = outcome.observed
    before = observed.status
    # Of what is not known again yet, all is as it was.
    checkpoints = plan.starts.status if outcome.complete else before.get("checkpoints")
    # Nothing is planned where nothing could be rendered: all is as it was.
    is_planned = plan.children is not None
    restart = plan.restart.status if is_planned else before.get("restart")
    starts, parts = plan.starts, all_parts(plan, observed)
    # Where pods start without it, or all of them serve, the condition of the checkpoints alone says so.
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
    """Components of which all pods serve that the graph desires: a checkpoint that was lost stops none of them."""
    rendered = replicas_by_component(plan.desired)
    there = (name for name, replicas in plan.replicas.items() if rendered.get(name, 0) >= replicas)
    return frozenset(name for name in there if all_serve({name: parts.get(name, ())}))


def next_reconcile(plan: Plan, outcome: CarryOutResult) -> float | None:
    """Seconds after which another reconcile is due though no event asks for it. Pure."""
    observed = outcome.observed
    delays = [
        retry_after(outcome.failure),
        retry_after(outcome.uninformed),
        outcome.again,
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
    if plan.pod_clique_set is None or not is_constrained(graph):
        return []
    there = observed.children.get(place_of(plan.pod_clique_set))
    return [topology_condition(graph, there, observed.now)]


def _checkpoints(plan: Plan, outcome: CarryOutResult) -> list[Condition]:
    graph, starts = outcome.observed.graph, plan.starts.snapshots
    if outcome.complete:
        return [checkpoints_condition(graph, starts, outcome.observed.now)] if starts else []
    return _kept(graph, CHECKPOINTS_READY)


def _planner(outcome: CarryOutResult) -> list[Condition]:
    graph = outcome.observed.graph
    if outcome.uninformed is not None:
        return [own_planner.uninformed(graph, outcome.uninformed, outcome.observed.now)]
    return [] if outcome.complete else _kept(graph, INFORMED)


def _kept(graph: KubeObject, type_: str) -> list[Condition]:
    """The condition as it was, where it is not known again yet."""
    before = objects.condition(graph, type_)
    return [before] if before is not None else []


def _changed(conditions: Iterable[Condition], graph: KubeObject, type_: str) -> Iterator[Condition]:
    """The condition of a type, where it is another one than before."""
    for each in conditions:
        before = objects.condition(graph, type_) or {}
        known = (before.get("reason"), before.get("message"))
        if each["type"] == type_ and (each["reason"], each["message"]) != known:
            yield each


def _lost(conditions: Iterable[Condition], graph: KubeObject) -> Iterator[Condition]:
    """Conditions of domains that are not there, where that is news."""
    for each in conditions:
        before = objects.condition(graph, each["type"]) or {}
        if each["type"] == AVAILABLE and each["status"] == "False" and each["reason"] != before.get("reason"):
            yield each


def _verdict(reported: KubeObject) -> tuple[object, ...]:
    ready = objects.condition({"status": reported}, READY) or {}
    return (reported.get("state"), ready.get("reason"), reported.get("observedGeneration"))
