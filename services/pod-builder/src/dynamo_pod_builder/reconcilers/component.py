"""DynamoComponentDeployment -> Deployment or LeaderWorkerSet, Services, and its status."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from dynamo_shared.aio import Offload
from dynamo_shared.api import objects
from dynamo_shared.api.defaults import DEFAULT_REPLICAS
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    LEADER_WORKER_SETS,
    ObjectKey,
)
from dynamo_shared.api.v1beta1 import parse_component
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.runtime.large_objects import in_turn
from dynamo_shared.runtime.status_writer import SETTLE, StatusWriter
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import events, render
from dynamo_pod_builder.applier import Applier, Ensured
from dynamo_pod_builder.checkpoints import catalogue
from dynamo_pod_builder.children import children_of, graph_uid, in_order, surplus, workload_of
from dynamo_pod_builder.claims import claimed, gpu_shape
from dynamo_pod_builder.errors import NameTaken
from dynamo_pod_builder.legacy_types import legacy_type, missing_from
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.pods import pods_of
from dynamo_pod_builder.reconcilers import scaling
from dynamo_pod_builder.reconcilers.refusals import REFUSALS, failure_of, retry_after
from dynamo_pod_builder.reconcilers.requeue import LACKING_INTERVAL, OBSERVED_WITHIN, earliest
from dynamo_pod_builder.reconcilers.writes import all_written, one_of, refusals_of
from dynamo_pod_builder.remembered import COMPONENTS, remembered
from dynamo_pod_builder.render.checkpoint.auto import checkpoint_of
from dynamo_pod_builder.render.config import NEW_COMPONENT
from dynamo_pod_builder.ssh_keys import SshKeys
from dynamo_pod_builder.starts import NO_CHECKPOINTS, Catalogue, starts_of
from dynamo_pod_builder.status import component as status
from dynamo_pod_builder.status.component import Failure, component_status
from dynamo_pod_builder.status.pods import recheck_after, troubles
from dynamo_pod_builder.status.workload import is_observed, stateful_set_lacking
from dynamo_pod_builder.surroundings import PullSecretLists, component_account


@dataclass(frozen=True, slots=True)
class ComponentInputs:
    """One component deployment and everything else that decides how it is rendered; its status does not."""

    component: KubeObject
    config: render.RenderConfig
    around: render.ObservedComponent = NEW_COMPONENT
    checkpoints: Catalogue = NO_CHECKPOINTS
    #: The replicas that its scaling adapter sets; None if no adapter owns them.
    replicas: int | None = None
    #: How many pods its workload has, if no new pod may start before a checkpoint is ready.
    running: int = 0


@dataclass(frozen=True, slots=True)
class ComponentPlan:
    """The desired objects of a component; with a failure, nothing is written."""

    children: Sequence[KubeObject] = ()
    checkpoints: Sequence[KubeObject] = ()
    failure: Failure | None = None
    #: What its pods wait for, if no pod may start yet.
    held: Failure | None = None


@dataclass(frozen=True, slots=True)
class ComponentOutcome:
    """The result of a plan; `again`: seconds until another reconcile is due even without an event."""

    failure: Failure | None = None
    again: float | None = None


@remembered(lambda observed: observed.component, COMPONENTS)
def planned(observed: ComponentInputs) -> ComponentPlan:
    """The desired objects of a component, with the checkpoint to take of it. Pure."""
    try:
        parsed = parse_component(scaling.with_replicas(observed.component, observed.replicas))
        starts = starts_of([(parsed.metadata.name, parsed.spec)], observed.checkpoints, observed.config)
        held = None
        if starts.waiting and not graph_uid(observed.component):
            desired = DEFAULT_REPLICAS if parsed.spec.replicas is None else parsed.spec.replicas
            # Running pods stay, like those of a graph.
            kept = min(desired, observed.running)
            parsed = parsed.model_copy(update={"spec": parsed.spec.model_copy(update={"replicas": kept})})
            start = starts.by_component[parsed.metadata.name]
            why = f"; {start.message}" if start.fails else ""
            message = f"no further pod starts before DynamoCheckpoint {start.name} is ready{why}"
            held = Failure(status.WAITING, message) if kept < desired else None
        around = replace(observed.around, restore=starts.restores.get(parsed.metadata.name))
        # A graph creates the checkpoints of its components.
        missing = () if graph_uid(observed.component) else starts.missing.values()
        return ComponentPlan(
            render.component_children(parsed, observed.config, around),
            [checkpoint_of(parsed, identity, observed.config, around) for identity in missing],
            held=held,
        )
    except REFUSALS as error:
        return ComponentPlan(failure=failure_of(error))


@dataclass(frozen=True, slots=True)
class ComponentReconciler:
    """Makes one component run, and reports the progress in its status."""

    cache: ObjectCache
    applier: Applier
    statuses: StatusWriter
    announcer: Announcer
    config: Callable[[], render.RenderConfig]
    now: Callable[[], datetime]
    pull_secrets: PullSecretLists
    pod_events: PodEvents
    large: Offload
    keys: SshKeys

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile one component. Raises KubeError if the API server is unavailable: the queue retries the key."""
        component = self.cache.get(DYNAMO_COMPONENT_DEPLOYMENTS, key)
        if component is None:
            return Result()
        if objects.is_deleting(component):
            await self.applier.remove_reference_finalizer(DYNAMO_COMPONENT_DEPLOYMENTS, component)
            return Result()
        if not await self._exists(component):
            return Result()
        observed = await self._observe(component)
        plan = await in_turn(self.large, component, partial(planned, observed))
        return await self._report(component, await self._carry_out(component, plan))

    async def _exists(self, component: KubeObject) -> bool:
        """Whether the component exists in the API server; not asked if it has children or a graph that would remove it."""
        known = self._graph_of(component) or children_of(self.cache, component)
        return bool(known) or await self.applier.exists(component)

    def _graph_of(self, component: KubeObject) -> KubeObject | None:
        """The graph that controls the component, if it exists."""
        owner = objects.controller_of(component) or {"name": ""}
        graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(objects.namespace(component), owner["name"]))
        return graph if graph is not None and objects.controls(graph, component) else None

    async def _observe(self, component: KubeObject) -> ComponentInputs:
        namespace, workload = objects.namespace(component), workload_of(self.cache, component)
        secrets = await self.pull_secrets.of(namespace)
        running = workload["spec"].get("replicas", 0) if workload is not None and scaling.waits(component) else 0
        return ComponentInputs(
            objects.without_status(component),
            self.config(),
            render.ObservedComponent(
                service_account=component_account(self.cache, namespace),
                legacy_type=legacy_type(component, workload),
                lacking=missing_from(component, workload),
                pull_secrets=secrets,
                claimed=claimed(self.cache.get, namespace, component.get("spec", {})),
                leader_worker_set=_groups_of(workload),
            ),
            catalogue(self.cache, namespace, [component.get("spec", {})]),
            scaling.replicas_of(self.cache, component),
            running,
        )

    async def _carry_out(self, component: KubeObject, plan: ComponentPlan) -> ComponentOutcome:
        if plan.failure is not None:
            return ComponentOutcome(plan.failure, retry_after(plan.failure))
        try:
            # A graph creates the keys for its components.
            if not graph_uid(component) and any(
                render.needs_ssh_keys(child, self.keys.name) for child in plan.children
            ):
                await self.keys.ensure(component)
            first, rest = in_order(plan.children)
            await all_written(self._ensure(component, child) for child in first)
            refused = await refusals_of(self._ensure(component, child) for child in rest)
            refused += await refusals_of(
                self.applier.create_once(DYNAMO_CHECKPOINTS, each) for each in plan.checkpoints
            )
            # A leftover may be the predecessor of a refused object.
            if any(refused):
                raise one_of(refused)
            for leftover in surplus(children_of(self.cache, component), plan.children):
                await self.applier.remove(component, leftover)
        except REFUSALS as error:
            failure = failure_of(error)
            return ComponentOutcome(failure, retry_after(failure, self._unavailable_for(component)))
        return ComponentOutcome(plan.held)

    async def _ensure(self, component: KubeObject, child: KubeObject) -> None:
        try:
            ensured = await self.applier.ensure(await self._completed(child))
        except NameTaken as error:
            # Its graph runs on Grove, or is moving away from it: the graph decides who owns the object.
            if not error.holder_uid or error.holder_uid != graph_uid(component):
                raise
        else:
            self._report_number(component, ensured)

    def _unavailable_for(self, component: KubeObject) -> float:
        """Seconds since it became unavailable; 0 if its status does not say that it is."""
        since = status.unavailable_since(component)
        return (self.now() - since).total_seconds() if since is not None else 0.0

    async def _completed(self, child: KubeObject) -> KubeObject:
        """The child with the parts that depend on which controllers manage it."""
        if child["kind"] != LEADER_WORKER_SETS.kind:
            return child
        return render.addressed(child, await self.applier.as_stored(child))

    def gone(self, component: KubeObject) -> None:
        """Report that a component deployment was deleted; if it has a graph, the graph reports what is left."""
        if not graph_uid(component):
            self.announcer.announce(component, events.component_gone(component))

    def _report_number(self, component: KubeObject, ensured: Ensured) -> None:
        """Announced on the graph, if there is one: the graph's number counts, and users search for the reason there."""
        if ensured.set_back is None:
            return
        about, name = self._graph_of(component) or component, objects.labels(component).get(labels.COMPONENT, "")
        self.announcer.announce(about, events.replicas_set_back(about, name, ensured.obj, ensured.set_back))

    async def _report(self, component: KubeObject, outcome: ComponentOutcome) -> Result:
        failure, before, now = outcome.failure, status.failure_of(component), self.now()
        workload = workload_of(self.cache, component)
        pods = await pods_of(self.cache, workload)
        lacking = stateful_set_lacking(workload, pods)
        causes = await self.pod_events.explain(objects.namespace(component), troubles(pods, now), workload, lacking)
        shape = gpu_shape(self.cache.get, objects.namespace(component), component.get("spec", {}))
        after = component_status(component, workload, failure, now, causes, gpus=shape)

        def report() -> None:
            if not graph_uid(component):
                if status.verdict(after) != status.verdict(component.get("status", {})):
                    self.announcer.announce(component, events.component_changed(component, after))
            elif failure is not None and not failure.passes and failure != before:
                # If the component has a graph, programs learn of the failure from the graph.
                self.announcer.announce(component, events.COMPONENT_FAILED.named(failure.reason)(failure.message))

        urgent = failure is not None or before is not None
        # A status that acknowledges a change of the spec is not delayed.
        changed = bool(component.get("status")) and not status.is_observed(component)
        settle = SETTLE if changed or is_observed(workload) else OBSERVED_WITHIN
        wait = await self.statuses.write(
            DYNAMO_COMPONENT_DEPLOYMENTS, component, after, urgent=urgent, settle=settle, report=report
        )
        # An earlier due time does not wait for a delayed status write.
        return Result(
            requeue_after=earliest(wait, outcome.again, recheck_after(pods, now), LACKING_INTERVAL if lacking else None)
        )


def _groups_of(workload: KubeObject | None) -> str:
    """Name of the LeaderWorkerSet that runs a component; "" if another kind runs it, or no workload exists."""
    return objects.name(workload) if workload is not None and workload.get("kind") == LEADER_WORKER_SETS.kind else ""
