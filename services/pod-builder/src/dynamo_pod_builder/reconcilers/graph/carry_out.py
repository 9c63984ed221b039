"""Writes the objects of a plan, each after those that it needs, and updates the observed state with the answers."""

from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field

from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.runtime.facts import Announcer

from dynamo_pod_builder import events, render
from dynamo_pod_builder.applier import Applier, ChildChange, Ensured, SetBack
from dynamo_pod_builder.children import in_order, surplus
from dynamo_pod_builder.reconcilers.graph import grove
from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.graph.parts import all_serve, desired_parts
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.reconcilers.graph.steps.switch import moved_to_components
from dynamo_pod_builder.reconcilers.refusals import REFUSALS, failure_of
from dynamo_pod_builder.reconcilers.writes import Refusals, all_written, one_of, refusals_of
from dynamo_pod_builder.ssh_keys import SshKeys
from dynamo_pod_builder.status.component import Failure

#: What serves until its successor exists: the refusal of one of these ends a plan.
_WORKLOADS = frozenset({resources.DYNAMO_COMPONENT_DEPLOYMENTS, resources.POD_CLIQUE_SETS})


@dataclass(frozen=True, slots=True)
class CarryOutResult:
    """The result of a plan."""

    #: The observed state after the writes.
    observed: Observed
    failure: Failure | None = None
    #: Whether all workloads were written. Only then are the plan's statements about checkpoints current.
    complete: bool = False
    #: Why a planner among the components does not learn which workers serve.
    planner_refusal: Failure | None = None


@dataclass(slots=True)
class _Answers:
    """The answers of the API server so far."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    #: Replicas that another client set, and that were reset: component, object, and how.
    set_back: list[tuple[str, KubeObject, SetBack]] = field(default_factory=list)
    objects: list[KubeObject] = field(default_factory=list)
    removed: list[KubeObject] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Executor:
    """Carries out plans, and reports what was written."""

    applier: Applier
    keys: SshKeys
    announcer: Announcer

    async def carry_out(self, plan: Plan, observed: Observed) -> CarryOutResult:
        """Write the plan's objects; a refused workload ends it. Raises KubeError if the API server is unavailable."""
        if plan.children is None:
            return CarryOutResult(observed, plan.failure)
        answers = _Answers()
        try:
            refused = await self._write(plan, observed, answers)
            refused += await self._create_checkpoints(plan, observed)
        except REFUSALS as error:
            return CarryOutResult(_after(observed, answers), failure_of(error))
        failure = failure_of(one_of(refused)) if any(refused) else plan.failure
        return CarryOutResult(_after(observed, answers), failure, complete=True)

    async def _write(self, plan: Plan, observed: Observed, answers: _Answers) -> Refusals:
        """Write desired objects, and remove the others. Raises refusals that end the plan, and returns the others."""
        family = frozenset(map(objects.uid, plan.outgoing))
        first, rest = in_order(plan.desired)
        if any(render.needs_ssh_keys(child, self.keys.name) for child in plan.desired):
            await self.keys.ensure(observed.graph)
        try:
            await all_written(self._ensure(child, family, answers) for child in first)
            refused = await refusals_of(self._ensure(child, family, answers) for child in rest)
            if any(error and _is_workload(child) for child, error in zip(rest, refused, strict=True)):
                raise one_of(refused)
            refused += await refusals_of(self._hand_over(plan, observed, answers))
            scale, dcds = self.applier.patch_replicas, resources.DYNAMO_COMPONENT_DEPLOYMENTS
            drained = (scale(dcds, leftover, replicas) for leftover, replicas in plan.rollout.drain)
            refused += await refusals_of(_take(each, "", answers) for each in drained)
            leftovers = _leftovers(plan, _after(observed, answers), only_workloads=any(refused))
            refused += await refusals_of(self._remove(observed.graph, leftover, answers) for leftover in leftovers)
            return refused
        finally:
            if answers.created:
                self.announcer.announce(observed.graph, events.created(answers.created))
            if answers.updated:
                self.announcer.announce(observed.graph, events.updated(answers.updated))
            for autoscaler_conflict in answers.set_back:
                self.announcer.announce(observed.graph, events.replicas_set_back(observed.graph, *autoscaler_conflict))
            for fact in events.deleted(answers.removed):
                self.announcer.announce(observed.graph, fact)

    async def _ensure(self, child: KubeObject, family: frozenset[str], answers: _Answers) -> None:
        written = grove.accepted(child) if child["kind"] == resources.POD_CLIQUE_SETS.kind else child
        ensured = await _take(
            self.applier.ensure(written, family), objects.labels(child).get(labels.COMPONENT, ""), answers
        )
        name = f"{child['kind']} {objects.name(child)}"
        if ensured.change is ChildChange.CREATED:
            answers.created.append(name)
        elif ensured.change is ChildChange.UPDATED:
            answers.updated.append(name)

    async def _remove(self, graph: KubeObject, leftover: KubeObject, answers: _Answers) -> None:
        if await self.applier.remove(graph, leftover):
            answers.removed.append(leftover)

    def _hand_over(self, plan: Plan, observed: Observed, answers: _Answers) -> Iterator[Awaitable[Ensured]]:
        """Write what belongs to the set or to components: replicas that Grove leaves to others, and objects that the
        graph still owns from its time on Grove.
        """
        after = _after(observed, answers)
        if plan.pod_clique_set is not None:
            for each in grove.workloads(plan.pod_clique_set):
                # Grove copies the replicas of the set once, and then leaves them to other clients.
                if (clique := after.cliques.get(each.place)) is not None:
                    yield _take(self.applier.scale(each.resource, clique, each.replicas), each.component, answers)
            return
        for child in moved_to_components(plan, after):
            yield _take(self.applier.ensure(child, {objects.uid(observed.graph)}), "", answers)

    async def _create_checkpoints(self, plan: Plan, observed: Observed) -> Refusals:
        created: list[str] = []

        async def create(checkpoint: KubeObject) -> None:
            if await self.applier.create_once(resources.DYNAMO_CHECKPOINTS, checkpoint):
                created.append(f"{checkpoint['kind']} {objects.name(checkpoint)}")

        refused = await refusals_of(map(create, plan.checkpoints))
        if created:
            self.announcer.announce(observed.graph, events.created(created))
        return refused


async def _take(write: Awaitable[Ensured], component: str, answers: _Answers) -> Ensured:
    ensured = await write
    answers.objects.append(ensured.obj)
    if ensured.set_back is not None:
        answers.set_back.append((component, ensured.obj, ensured.set_back))
    return ensured


def _after(observed: Observed, answers: _Answers) -> Observed:
    return observed.after(answers.objects, answers.removed)


def _leftovers(plan: Plan, observed: Observed, *, only_workloads: bool) -> list[KubeObject]:
    """Objects to delete: none while the old workloads must still serve. If an object was refused, only workloads,
    because another leftover may be the predecessor of that object.
    """
    if plan.outgoing and not all_serve(desired_parts(plan, observed)):
        return []
    leftovers = surplus(observed.children, plan.desired, keep=plan.rollout.kept)
    return [each for each in leftovers if _is_workload(each) or not only_workloads]


def _is_workload(child: KubeObject) -> bool:
    return resources.of(child) in _WORKLOADS
