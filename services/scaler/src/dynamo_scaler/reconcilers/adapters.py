"""Reconciles the adapters of one graph: the graph's replicas, the adapters' status, their autoscalers."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from dynamo_shared.aio import all_of
from dynamo_shared.api import adapted, objects
from dynamo_shared.api.adapted import Difference
from dynamo_shared.api.conditions import find
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
    key_of,
)
from dynamo_shared.api.wording import many
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound, Unavailable
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.state import ObjectCache
from dynamo_shared.state.memory import ObjectMemory

from dynamo_scaler import events
from dynamo_scaler.adapters import mirror, pods
from dynamo_scaler.adapters.status import (
    AUTOSCALING,
    SYNCED,
    AdapterObservation,
    ConditionState,
    adapter_status,
    conflict_ends_in,
    reported_autoscaling,
)
from dynamo_scaler.adapters.writers import UNKNOWN_WRITER, WriterConflicts, of_adapter, of_component
from dynamo_scaler.autoscaling.autoscalers import REFUSED, Autoscalers
from dynamo_scaler.metrics import AdapterMetrics

BY_GRAPH = "graph"
#: Interval of retries: a refusing policy or quota can change without an event. Seconds.
RETRY_REFUSED = 30.0


def index(cache: ObjectCache) -> None:
    """Index adapters by their graph."""
    cache.add_index(
        DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
        BY_GRAPH,
        lambda adapter: [f"{adapter['metadata']['namespace']}/{adapter['spec']['dgdRef']['name']}"],
    )


@dataclass(frozen=True, slots=True)
class AdapterReconciler:
    """Writes the replicas of adapters into their graph, and reports in their status."""

    kube: KubeClient
    cache: ObjectCache
    statuses: StatusWriter
    announcer: Announcer
    metrics: AdapterMetrics
    autoscalers: Autoscalers
    turns: WriterConflicts
    now: Callable[[], datetime]
    #: By uid of an adapter, facts that its status does not report yet: that it scaled, and a conflict.
    _unreported: ObjectMemory[tuple[bool, ConditionState | None]] = field(init=False)
    #: By uid of an adapter, the last number of its graph: a manifest without a number scales nothing.
    _last: ObjectMemory[int] = field(init=False)
    #: By uid of an adapter, the arguments of `_settle` for a write whose answer was lost: it may have been carried out.
    _unanswered: ObjectMemory[tuple[Difference, KubeObject | None, str]] = field(init=False)

    def __post_init__(self) -> None:
        for name in ("_unreported", "_last", "_unanswered"):
            object.__setattr__(self, name, self.cache.memory())

    async def reconcile(self, key: ObjectKey) -> Result:
        """`key` is the graph's. Raises KubeError if the API server does not answer or failed at a part: the queue
        retries.
        """
        graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        adapters = [
            adapter
            for adapter in self.cache.by_index(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, BY_GRAPH, str(key))
            if not (
                objects.is_deleting(adapter) or _is_deleted_with_graph(adapter, graph) or _is_orphaned(adapter, graph)
            )
        ]
        if not adapters:
            return Result()
        owners = adapted.owning(graph, adapters) if graph is not None else {}
        waits: list[float | None] = []
        refusal: str | None = None
        #: A possibly temporary error of the API server. It is raised after all reports, and the queue retries.
        failure: KubeError | None = None
        if graph is not None and not objects.is_deleting(graph):
            try:
                refusal = await self._mirror(graph, owners)
            except NotFound:
                # The graph is deleted: the event of that reconciles its adapters.
                return Result()
            except Unavailable as error:
                failure = _answered(error)
                refusal = str(error)
            graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, key) or graph
        refusals = adapted.refusals(graph, owners) if graph is not None else {}
        if refusal is not None or refusals:
            waits.append(RETRY_REFUSED)
        # Once for all adapters of a component: users may create thousands.
        counted: dict[str, tuple[int, str]] = {}
        for adapter in adapters:
            component = adapter["spec"]["dgdRef"]["componentName"]
            if graph is not None and component not in counted and (of_graph := _component(graph, component)):
                counted[component] = await pods.counted(self.cache, graph, of_graph)
            owns = owners.get(component) is adapter
            reason = refusals.get(component, refusal)
            observation = self._observe(graph, adapter, counted, owns=owns, refusal=reason)
            try:
                if owns and graph is not None:
                    autoscaler = await self.autoscalers.ensure(graph, adapter)
                    observation = replace(observation, autoscaling=autoscaler.condition)
                    waits.append(autoscaler.again)
            except KubeError as error:
                failure = _answered(error)
                observation = replace(observation, autoscaling=_failing(adapter, error))
            try:
                waits.append(await self._report(adapter, observation))
            except KubeError as error:
                failure = _answered(error)
        if failure is not None:
            raise failure
        return Result(requeue_after=min((wait for wait in waits if wait is not None), default=None))

    async def _mirror(self, graph: KubeObject, owners: dict[str, KubeObject]) -> str | None:
        """Write the valid numbers of its adapters into the graph, in one write. Returns the refusal, if any.

        Raises NotFound if the graph is deleted.
        """
        self._remember(graph, owners)
        differences = adapted.differences(graph, adapted.replicas_of(graph, owners))
        if not differences:
            return None
        key = key_of(graph)
        fresh: KubeObject | None = None
        if any(mirror.is_suspicious(owners[each.component], each) for each in differences):
            fresh = await self.kube.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        # In parallel: a graph has up to 25 components, and each of these requests takes some milliseconds.
        fresh_writers = await all_of(self._writer(owners[each.component]) for each in differences)
        writers = {each.component: writer for each, writer in zip(differences, fresh_writers, strict=True)}
        try:
            written = await self.kube.json_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, mirror.patch(graph, differences))
        except Unavailable:
            for each in differences:
                adapter = owners[each.component]
                self._unanswered.keep(adapter, (each, fresh, writers[each.component]))
            raise
        except (Invalid, Forbidden) as error:
            now = await self.kube.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
            if _version(now) != _version(graph):
                # The graph has changed: it is reconciled again with its new content.
                self.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, now)
                return await self._mirror(now, adapted.owning(now, owners.values()))
            return str(error)
        self.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, written)
        for each in differences:
            self._settle(owners[each.component], each, fresh, writers[each.component])
        return None

    def _remember(self, graph: KubeObject, owners: dict[str, KubeObject]) -> None:
        for each in graph["spec"].get("components") or ():
            adapter, replicas = owners.get(each["name"]), each.get("replicas")
            if adapter is None or replicas is None:
                continue
            lost = self._unanswered.get(objects.uid(adapter))
            if lost is not None and lost[0].replicas == replicas:
                self._settle(adapter, *lost)
            self._last.keep(adapter, replicas)

    async def _writer(self, adapter: KubeObject) -> str:
        """The writer of the number. Kubernetes does not track the writer of a 0, nor later writers: then this makes it
        track them again.
        """
        with contextlib.suppress(NotFound):
            adapter = await self.kube.get(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, key_of(adapter))
            if (writer := of_adapter(adapter)) != UNKNOWN_WRITER:
                return writer
            # Without this write, the writer's name stays unknown; that must not prevent the update of the graph.
            with contextlib.suppress(Conflict, Invalid, Forbidden):
                await self.kube.apply(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, _with_current_replicas(adapter))
        return UNKNOWN_WRITER

    def _settle(self, adapter: KubeObject, done: Difference, fresh: KubeObject | None, writer: str) -> None:
        """Remember and report the effect of one write on one adapter."""
        namespace, uid = adapter["metadata"]["namespace"], adapter["metadata"]["uid"]
        self._unanswered.pop(uid, None)
        # A graph that leaves the number to its adapter gets the number back; this is not a scaling.
        before = self._last.get(uid, done.replicas) if done.before is None else done.before
        self._last.keep(adapter, done.replicas)
        others = of_component(fresh, done.component) if fresh is not None else []
        conflict = mirror.overwritten(done, before, others, writer) if mirror.is_suspicious(adapter, done) else None
        if conflict is not None:
            writers = [writer, others[0]]
        else:
            if before != done.replicas:
                known = "" if writer == UNKNOWN_WRITER else writer
                self.announcer.announce(adapter, events.scaled(adapter, done.component, before, known))
                self.metrics.scaled(namespace, before, done.replicas)
            pair = self.turns.record(uid, writer, done.replicas) if writer != UNKNOWN_WRITER else None
            conflict = mirror.alternating_writers(done.component, pair) if pair else None
            writers = list(pair or ())
        if conflict is not None:
            self.announcer.announce(adapter, events.conflict(adapter, conflict, before, writers))
            self.metrics.conflicts.labels(namespace, conflict.reason).inc()
        scaled, earlier = self._unreported.get(uid, (False, None))
        self._unreported.keep(adapter, (scaled or before != done.replicas, conflict or earlier))

    def _observe(
        self,
        graph: KubeObject | None,
        adapter: KubeObject,
        counted: dict[str, tuple[int, str]],
        *,
        owns: bool,
        refusal: str | None,
    ) -> AdapterObservation:
        """`counted`: replicas and selector of components."""
        reference = adapter["spec"]["dgdRef"]
        if graph is None:
            message = f"there is no DynamoGraphDeployment {reference['name']} in this namespace"
            return AdapterObservation(ConditionState(False, "GraphNotFound", message))
        component = _component(graph, reference["componentName"])
        if component is None:
            message = f"{reference['name']} has no component {reference['componentName']}"
            return AdapterObservation(ConditionState(False, "ComponentNotFound", message))
        count, selector = counted[component["name"]]
        if not owns:
            message = (
                f"this adapter, which the platform did not create, does not scale {component['name']} of "
                f"{reference['name']}: delete this adapter, set `scalingAdapter: {{}}` for the component, and scale "
                "the adapter that the platform creates"
            )
            return AdapterObservation(ConditionState(False, "NotOwner", message), count, selector)
        desired = adapter["spec"]["replicas"]
        if component.get("replicas") != desired:
            problem = f"cannot set {many(desired, 'replica')} of {component['name']}"
            if refusal is not None:
                failed = ConditionState(False, "UpdateFailed", f"{problem} in the graph: {refusal}")
                return AdapterObservation(failed, count, selector)
            if objects.is_deleting(graph):
                deleting = ConditionState(False, "GraphNotFound", f"{problem}: {reference['name']} is being deleted")
                return AdapterObservation(deleting, count, selector)
        scaled, conflict = self._unreported.get(adapter["metadata"]["uid"], (False, None))
        synced = ConditionState(
            True, "Synced", f"the graph has the adapter's {many(desired, 'replica')} of {component['name']}"
        )
        return AdapterObservation(synced, count, selector, scaled, conflict)

    async def _report(self, adapter: KubeObject, observation: AdapterObservation) -> float | None:
        """Write the status. Returns the seconds until the next reconcile."""
        adapter = self.cache.get(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, key_of(adapter)) or adapter
        now = self.now()
        status = adapter_status(adapter, observation, now)
        before = adapter.get("status", {})

        def report() -> None:
            for trouble in _new_problems(before, status, observation):
                self.announcer.announce(adapter, events.failed(adapter, trouble))

        urgent = observation.scaled or observation.conflict is not None or not before
        wait = await self.statuses.write(
            DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, adapter, status, urgent=urgent, report=report
        )
        if wait is None:
            self._unreported.pop(adapter["metadata"]["uid"], None)
            wait = conflict_ends_in(status, now)
        return wait


def _is_deleted_with_graph(adapter: KubeObject, graph: KubeObject | None) -> bool:
    """Whether the graph that created an adapter is gone: the garbage collector deletes the adapter, which is not an
    error.
    """
    owner = objects.controller_of(adapter)
    if (
        owner is None
        or owner["kind"] != DYNAMO_GRAPH_DEPLOYMENTS.kind
        or owner["name"] != adapter["spec"]["dgdRef"]["name"]
    ):
        return False
    return graph is None or not objects.controls(graph, adapter)


def _is_orphaned(adapter: KubeObject, graph: KubeObject | None) -> bool:
    """Whether the graph that created an adapter no longer requests it: the pod-builder deletes it, which is not an
    error.
    """
    if graph is None or not adapted.is_of(adapter, graph):
        return False
    component = _component(graph, adapter["spec"]["dgdRef"]["componentName"])
    return component is not None and component.get("scalingAdapter") is None


def _with_current_replicas(adapter: KubeObject) -> KubeObject:
    """The adapter's current number, for an apply that changes only the field's owner, and fails if the number has
    changed.
    """
    metadata = adapter["metadata"]
    return {
        "apiVersion": adapter["apiVersion"],
        "kind": adapter["kind"],
        "metadata": {name: metadata[name] for name in ("name", "namespace", "resourceVersion")},
        "spec": {"replicas": adapter["spec"]["replicas"]},
    }


def _answered(error: KubeError) -> KubeError:
    """Returns the error if the API server answered, because other adapters may succeed. Otherwise raises it."""
    if not error.status:
        raise error
    return error


def _failing(adapter: KubeObject, error: KubeError) -> ConditionState | None:
    """The condition of a failed autoscaler if the server that checks it is down; other errors change nothing."""
    if isinstance(error, Unavailable):
        return ConditionState(False, REFUSED, str(error))
    return reported_autoscaling(adapter)


def _version(graph: KubeObject) -> tuple[str, int]:
    """Identifies the graph and the generation of its spec."""
    return graph["metadata"]["uid"], graph["metadata"]["generation"]


def _component(graph: KubeObject, name: str) -> KubeObject | None:
    """The graph's component of this name."""
    return next((each for each in graph["spec"].get("components") or () if each["name"] == name), None)


def _new_problems(before: KubeObject, status: KubeObject, observation: AdapterObservation) -> Iterator[ConditionState]:
    """Troubles that the previous status does not have; a message with different numbers also counts.

    Read from the statuses, whose messages may differ from the observation: they contain no secrets, and are shortened.
    """
    for type_, state in ((SYNCED, observation.synced), (AUTOSCALING, observation.autoscaling)):
        entry, known = find(status["conditions"], type_), find(before.get("conditions", ()), type_)
        if state is None or state.status or entry is None:
            continue
        parts = ("status", "reason") if state.by_other else ("status", "reason", "message")
        if known is None or any(known[part] != entry[part] for part in parts):
            yield ConditionState(False, entry["reason"], entry["message"])
