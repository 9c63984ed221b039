"""DynamoGraphDeployment -> access objects and DynamoComponentDeployments or a PodCliqueSet, and the status of the whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.conditions import Condition, find
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    POD_CLIQUE_SETS,
    RESOURCE_CLAIM_TEMPLATES,
    SERVICE_ACCOUNTS,
    ObjectKey,
)
from dynamo_shared.api.v1beta1 import parse_graph
from dynamo_shared.bus.cache import ObjectCache
from dynamo_shared.kube.errors import Forbidden, Invalid
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.status_writer import StatusWriter

from dynamo_pod_builder import render
from dynamo_pod_builder.applying import Applier, Change, NameTaken
from dynamo_pod_builder.children import children, surplus, workload_of
from dynamo_pod_builder.events import Reporter
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.pods import pods_of
from dynamo_pod_builder.reconcilers import grove, restarting, scaling, switching
from dynamo_pod_builder.reconcilers.adopting import adopted, legacy_types
from dynamo_pod_builder.reconcilers.component import LOOK_AT_SHARED, RETRY_REFUSED, SHARERS, earliest
from dynamo_pod_builder.reconcilers.restarting import Restart
from dynamo_pod_builder.reconcilers.restoring import Checkpoints, Starts, starts_from_one
from dynamo_pod_builder.reconcilers.rolling import IN_PROGRESS, Rollout, roll
from dynamo_pod_builder.ssh_keys import SshKeys
from dynamo_pod_builder.status.component import Failure, failure_of, is_observed
from dynamo_pod_builder.status.graph import FAILED, READY, Generation, Outcome, graph_status
from dynamo_pod_builder.status.pods import troubles
from dynamo_pod_builder.status.topology import AVAILABLE as TOPOLOGY
from dynamo_pod_builder.status.topology import is_constrained, topology_condition
from dynamo_pod_builder.surroundings import PullSecretLists, component_account

#: What pods are made by: those of a Deployment whose account is missing are refused, and retried only slowly, and claims that
#: are made by the template of before ask for GPUs as before.
FIRST = frozenset({SERVICE_ACCOUNTS, RESOURCE_CLAIM_TEMPLATES})
#: Status fields that other concerns write and this one carries through.
CARRIED = ("checkpoints",)
#: Pods tell of the progress of a restart where a workload does not, and nobody tells of every pod. Seconds.
LOOK_AT_RESTART = 10.0


@dataclass(frozen=True, slots=True)
class GraphReconciler:
    """Makes one graph run, and says in its status how far it is."""

    cache: ObjectCache
    applier: Applier
    statuses: StatusWriter
    reporter: Reporter
    config: Callable[[], render.RenderConfig]
    now: Callable[[], datetime]
    pull_secrets: PullSecretLists
    pod_events: PodEvents
    checkpoints: Checkpoints
    keys: SshKeys

    async def reconcile(self, key: ObjectKey) -> Result:
        """One look at one graph. Raises KubeError where the API server is away: the queue comes back to it."""
        graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        if graph is None:
            return Result()
        if "deletionTimestamp" in graph["metadata"]:
            await self.applier.let_go(DYNAMO_GRAPH_DEPLOYMENTS, graph)
            return Result()
        new = "observedGeneration" not in graph.get("status", {})
        if new:
            self.reporter.seen(graph)
        made = await self._have_taken(graph, await self._make(graph))
        status = graph_status(graph, await self._explained(graph, self._outcome(graph, made)), self.now())
        news = _verdict(status) != _verdict(graph.get("status", {}))

        def tell() -> None:
            if made.restart is not None and made.restart.entered:
                self.reporter.restart(graph, status["restart"])
            if news:
                self.reporter.changed(graph, status)

        urgent = new or status["state"] == FAILED or (made.restart is not None and bool(made.restart.entered))
        wait = await self.statuses.write(DYNAMO_GRAPH_DEPLOYMENTS, graph, status, urgent=urgent, tell=tell)
        if wait is None:
            wait = RETRY_REFUSED if made.failure is not None else self._look_again(made)
        return Result(requeue_after=wait)

    async def _explained(self, graph: KubeObject, outcome: Outcome) -> Outcome:
        """With what Events tell of pods that do not start."""
        explain, namespace = self.pod_events.explain, graph["metadata"]["namespace"]
        return replace(
            outcome,
            components={
                name: [replace(part, troubles=await explain(namespace, part.troubles)) for part in parts]
                for name, parts in outcome.components.items()
            },
        )

    def _look_again(self, made: _Made) -> float | None:
        on_grove = grove.wanted_set(made.rollout.wanted) if made.rollout is not None else None
        restart = LOOK_AT_RESTART if made.restart is not None and made.restart.is_under_way else None
        of_pods = grove.look_again_at(self.cache, on_grove, self.now()) if on_grove is not None else None
        return earliest(made.again, restart, of_pods)

    async def _make(self, graph: KubeObject) -> _Made:
        present = children(self.cache, DYNAMO_COMPONENT_DEPLOYMENTS, graph)
        sets = children(self.cache, POD_CLIQUE_SETS, graph)
        try:
            parsed, config = parse_graph(scaling.of_graph(self.cache, graph)), self.config()
            starts = self.checkpoints.of_graph(parsed, config)
            observed = replace(await self._observed(graph, present, sets), restores=starts.restores)
            wanted = render.graph_children(parsed, config, observed)
        except InvalidManifest as error:
            return _Made(failure=Failure("InvalidSpec", str(error)))
        except render.RenderError as error:
            return _Made(failure=Failure("NotDeployable", str(error)))
        account = component_account(self.cache, graph["metadata"]["namespace"])
        wanted = adopted(wanted, present, partial(workload_of, self.cache), config, account)
        rollout = roll(graph, wanted, present, partial(workload_of, self.cache), self.now())
        restart = self._restart(graph, rollout, present)
        rollout = replace(rollout, wanted=restarting.marked(rollout.wanted, restart.marks))
        try:
            again = await self._apply(graph, rollout)
        except NameTaken as error:
            return _Made(rollout, restart, Failure("NameTaken", str(error)))
        except (Invalid, Forbidden) as error:
            return _Made(rollout, restart, Failure("RefusedByApiServer", str(error)))
        return _Made(rollout, restart, again=again)

    async def _have_taken(self, graph: KubeObject, made: _Made) -> _Made:
        """Have the checkpoints taken that components ask for and that nobody has taken yet."""
        if made.rollout is None or made.failure is not None:
            return made
        if not any(map(starts_from_one, graph["spec"]["components"])):
            return replace(made, starts=Starts())
        parsed, config = parse_graph(graph), self.config()
        starts = self.checkpoints.of_graph(parsed, config)
        if not starts.missing:
            return replace(made, starts=starts)
        namespace = graph["metadata"]["namespace"]
        around = render.ObservedComponent(
            service_account=component_account(self.cache, namespace),
            pull_secrets=await self.pull_secrets.of(namespace),
        )
        try:
            created = await self.checkpoints.make_for_graph(parsed, starts, config, around)
        except render.RenderError as error:
            return replace(made, starts=starts, failure=Failure("NotDeployable", str(error)))
        except (Invalid, Forbidden) as error:
            return replace(made, starts=starts, failure=Failure("RefusedByApiServer", str(error)))
        if created:
            self.reporter.made(graph, [f"{each['kind']} {each['metadata']['name']}" for each in created])
        return replace(made, starts=starts)

    async def _observed(
        self, graph: KubeObject, present: Sequence[KubeObject], sets: Sequence[KubeObject]
    ) -> render.ObservedGraph:
        backends = {dcd["metadata"]["name"]: dcd["spec"].get("backendFramework", "") for dcd in present}
        observed = render.ObservedGraph({name: backend for name, backend in backends.items() if backend})
        if not self.config().grove:
            return observed
        # Pods of other graphs are made by their component deployments.
        namespace = graph["metadata"]["namespace"]
        return replace(
            observed,
            cliques=grove.order(sets),
            legacy_types=legacy_types(graph["spec"].get("components", ()), sets),
            service_account=component_account(self.cache, namespace),
            pull_secrets=await self.pull_secrets.of(namespace),
        )

    def _restart(self, graph: KubeObject, rollout: Rollout, present: Sequence[KubeObject]) -> Restart:
        on_grove = grove.wanted_set(rollout.wanted)
        if on_grove is None:
            by_name = {dcd["metadata"]["name"]: dcd for dcd in present}
            parts = restarting.parts_of(
                rollout.wanted, by_name, partial(workload_of, self.cache), partial(pods_of, self.cache)
            )
        else:
            there = self.cache.get(POD_CLIQUE_SETS, resources.key_of(on_grove))
            workloads = {
                name: part.workload for name, (part,) in grove.generations(self.cache, on_grove, self.now()).items()
            }
            parts = restarting.parts_of_set(there, workloads)
        rolling = rollout.status is not None and rollout.status["phase"] == IN_PROGRESS
        previous = graph.get("status", {}).get("restart")
        return restarting.decide(graph["spec"].get("restart"), previous, parts, rolling=rolling)

    async def _apply(self, graph: KubeObject, rollout: Rollout) -> float | None:
        """Write what is wanted, take out what is not. Returns seconds after which to look again though nothing was heard."""
        created: list[str] = []
        updated: list[str] = []

        again: float | None = None
        on_grove = grove.wanted_set(rollout.wanted)
        others = switching.outgoing(self.cache, graph, on_grove)
        family = switching.uids(others)

        async def ensure(child: KubeObject) -> None:
            nonlocal again
            try:
                ensured = await self.applier.ensure(child, family)
            except NameTaken as error:
                if not (render.is_shared(child) and error.holder_kind in SHARERS):
                    raise
                # Another graph has it, and nobody tells us when that goes and takes it along.
                again = LOOK_AT_SHARED
                return
            name = f"{child['kind']} {child['metadata']['name']}"
            if ensured.change is Change.CREATED:
                created.append(name)
            elif ensured.change is Change.UPDATED:
                updated.append(name)

        first = [child for child in rollout.wanted if resources.of(child) in FIRST]
        rest = [child for child in rollout.wanted if resources.of(child) not in FIRST]
        if any(map(render.needs_ssh_keys, rollout.wanted)):
            await self.keys.ensure(graph)
        try:
            await _all(ensure(child) for child in first)
            await _all(ensure(child) for child in rest)
            if on_grove is not None:
                await grove.scale(self.cache, self.applier, on_grove)
            else:
                for child in switching.inherited(self.cache, graph, rollout.wanted, self.config()):
                    await self.applier.ensure(child, {graph["metadata"]["uid"]})
            for leftover, replicas in rollout.drain:
                await self.applier.patch_replicas(DYNAMO_COMPONENT_DEPLOYMENTS, leftover, replicas)
            gone = self._leftovers(graph, rollout, others)
            for leftover in gone:
                await self.applier.delete(resources.of(leftover), leftover)
        finally:
            if created:
                self.reporter.made(graph, created)
            if updated:
                self.reporter.corrected(graph, updated)
        if gone:
            self.reporter.removed(graph, gone)
        if rollout.started:
            self.reporter.rollout_started(graph, rollout.components)
        if rollout.completed:
            self.reporter.rollout_completed(graph, rollout.components)
        return again

    def _leftovers(self, graph: KubeObject, rollout: Rollout, others: Sequence[KubeObject]) -> list[KubeObject]:
        """What goes: nothing while another way still has to serve."""
        if others and not switching.is_over(self._wanted_parts(graph, rollout)):
            return []
        return surplus(self.cache, graph, rollout.wanted, keep=rollout.kept)

    def _wanted_parts(self, graph: KubeObject, rollout: Rollout) -> dict[str, list[Generation]]:
        on_grove = grove.wanted_set(rollout.wanted)
        if on_grove is not None:
            return grove.generations(self.cache, on_grove, self.now())
        return self._generations(graph, rollout)

    def _parts(self, graph: KubeObject, rollout: Rollout | None) -> dict[str, list[Generation]]:
        """All that runs a graph's components, on whatever way."""
        if rollout is None:
            return self._generations(graph, None)
        parts = self._wanted_parts(graph, rollout)
        on_grove = grove.wanted_set(rollout.wanted)
        for other in switching.outgoing(self.cache, graph, on_grove):
            if other["kind"] == POD_CLIQUE_SETS.kind:
                for name, found in grove.generations(self.cache, other, self.now()).items():
                    parts.setdefault(name, []).extend(replace(part, current=False) for part in found)
        if on_grove is not None:
            for name, found in self._generations(graph, rollout).items():
                parts.setdefault(name, []).extend(found)
        return parts

    def _outcome(self, graph: KubeObject, made: _Made) -> Outcome:
        status = graph.get("status", {})
        carried = {name: status[name] for name in CARRIED if name in status}
        if made.starts is not None:
            carried = {"checkpoints": made.starts.status} if made.starts.found else {}
        restart = made.restart.status if made.restart is not None else status.get("restart")
        return Outcome(
            components=self._parts(graph, made.rollout),
            failure=made.failure,
            rolling_update=made.rollout.status if made.rollout is not None else status.get("rollingUpdate"),
            carried=carried if restart is None else {**carried, "restart": restart},
            conditions=self._topology(graph, made.rollout),
        )

    def _topology(self, graph: KubeObject, rollout: Rollout | None) -> list[Condition]:
        wanted = grove.wanted_set(rollout.wanted) if rollout is not None else None
        if wanted is None or not is_constrained(graph):
            return []
        previous = graph.get("status", {}).get("conditions", [])
        before = find(previous, TOPOLOGY)
        found = self.cache.get(POD_CLIQUE_SETS, resources.key_of(wanted))
        told = topology_condition(previous, found, graph["metadata"].get("generation", 1), self.now())
        if told["status"] == "False" and told["reason"] != (before or {}).get("reason"):
            self.reporter.topology_lost(graph, told["reason"], told["message"])
        return [told]

    def _generations(self, graph: KubeObject, rollout: Rollout | None) -> dict[str, list[Generation]]:
        current = {}
        if rollout is not None:
            current = {
                child["metadata"]["name"]: child["metadata"]["labels"][labels.COMPONENT]
                for child in rollout.wanted
                if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind
            }
        parts: dict[str, list[Generation]] = {name: [] for name in current.values()}
        found = {dcd["metadata"]["name"]: dcd for dcd in children(self.cache, DYNAMO_COMPONENT_DEPLOYMENTS, graph)}
        for name in sorted(current.keys() | found.keys()):
            dcd = found.get(name)
            component = current.get(name) or (dcd or {}).get("metadata", {}).get("labels", {}).get(labels.COMPONENT)
            if component is None:
                continue
            workload = workload_of(self.cache, dcd) if dcd is not None else None
            # Where nothing could be rendered, what is there already is all that there is to tell of.
            is_current = name in current or rollout is None
            failure = failure_of(dcd) if dcd is not None else None
            of_pods = troubles(pods_of(self.cache, workload), self.now())
            seen = dcd is not None and is_observed(dcd)
            parts.setdefault(component, []).append(Generation(name, workload, is_current, failure, of_pods, seen))
        return parts


@dataclass(frozen=True, slots=True)
class _Made:
    #: What components start from; None where that could not be told.
    starts: Starts | None = field(default=None, kw_only=True)
    rollout: Rollout | None = None
    restart: Restart | None = None
    failure: Failure | None = None
    #: Seconds after which to look again though nothing was heard.
    again: float | None = None


def _verdict(status: KubeObject) -> tuple[object, ...]:
    ready = find(status.get("conditions", ()), READY) or {}
    return (status.get("state"), ready.get("reason"), status.get("observedGeneration"))


async def _all(writes: Any) -> None:
    """Run writes side by side, all of them to their end, then raise the first error."""
    results: Sequence[BaseException | None] = await asyncio.gather(*writes, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
