"""Composition root: all parts of the scaler service, on one page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dynamo_shared.api.conditions import find
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    SCALED_OBJECTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime import Controller, Result, ServiceContext
from dynamo_shared.runtime.controller import Counts, Part, now
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.runtime.tasks import Paced, Task

from dynamo_scaler.adapters import pods
from dynamo_scaler.adapters.status import CONFLICT, SYNCED
from dynamo_scaler.adapters.writers import WriterConflicts
from dynamo_scaler.autoscaling.autoscalers import Autoscalers
from dynamo_scaler.commands.service import ScaleCommands
from dynamo_scaler.metrics import AdapterMetrics, DecisionMetrics
from dynamo_scaler.reconcilers import adapters
from dynamo_scaler.reconcilers.adapters import AdapterReconciler
from dynamo_scaler.routing import Pace

NAME = "scaler"
READS: tuple[Resource, ...] = (
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    PODS,
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
    RESOURCE_CLAIM_TEMPLATES,
)


class ScalerService:
    """Keeps replicas what adapters, commands and budgets say."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        metrics, decisions = AdapterMetrics(context.metrics.registry), DecisionMetrics(context.metrics.registry)
        try:
            await _Scaler(context, metrics, decisions).serve()
        finally:
            metrics.close()
            decisions.close()


class _Scaler(Controller):
    def __init__(self, context: ServiceContext, metrics: AdapterMetrics, decisions: DecisionMetrics) -> None:
        super().__init__(context, NAME, READS)
        self.cache.pack(DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, PODS)
        pods.index(self.cache)
        adapters.index(self.cache)
        self._pace = Pace(context.clock)
        self._adapters = AdapterReconciler(
            kube=self.kube,
            cache=self.cache,
            statuses=StatusWriter(self.kube, self.cache, context.clock),
            announcer=self.announcer,
            metrics=metrics,
            autoscalers=Autoscalers(self.kube, self.cache, self.announcer, self.reader.is_served),
            turns=WriterConflicts(context.clock),
            now=now,
        )
        self._commands = ScaleCommands(
            context,
            self.kube,
            self.cache,
            self.announcer,
            self.publisher,
            metrics=decisions,
            is_elsewhere=self.is_held,
            ownership=self.ownership,
        )

    def background(self) -> Mapping[str, Part]:
        return {"scale-commands": self._commands.run}

    def changed(self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        del key
        self._commands.changed()
        if resource == DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS and new is None and old is not None:
            self._adapters.forget(old)

    def tasks_for(
        self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None
    ) -> Iterable[Paced]:
        """The graph of a change, with a delay: changes that come together become one write."""
        if (due := self._pace.wait(resource, key, old, new)) is not None:
            graph, after = due
            yield Paced(_task(graph), after)

    def all_tasks(self) -> Iterator[Task]:
        yield from dict.fromkeys(self.of_each(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, _tasks_of))

    async def reconcile(self, task: Task) -> Result:
        return await self._adapters.reconcile(task.key)

    def counts(self) -> Counts:
        """Adapters by what their conditions say."""
        return {
            DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.plural: self.count_by(
                DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, _state
            )
        }


def _task(graph: ObjectKey) -> Task:
    """Reconciles all adapters of a graph."""
    return Task.of(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, graph)


def _tasks_of(adapter: KubeObject) -> Iterable[Task]:
    yield _task(ObjectKey(adapter["metadata"]["namespace"], adapter["spec"]["dgdRef"]["name"]))


def _state(adapter: KubeObject) -> str:
    conditions = adapter.get("status", {}).get("conditions", ())
    synced, conflict = find(conditions, SYNCED), find(conditions, CONFLICT)
    if conflict is not None and conflict["status"] == "True":
        return "conflict"
    return "synced" if synced is not None and synced["status"] == "True" else "not_synced"
