"""Composition root: all parts of the scaler service on one page."""

from collections.abc import Iterable

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEASES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    SCALED_OBJECTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube.overruled import OverruledWrites
from dynamo_shared.runtime import Controller, ServiceContext
from dynamo_shared.runtime.controller import now
from dynamo_shared.runtime.debounce import Debounce
from dynamo_shared.runtime.routes import Reconciler
from dynamo_shared.runtime.status_writer import StatusWriter

from dynamo_scaler.adapters import pods
from dynamo_scaler.adapters.status import CONFLICT, SYNCED
from dynamo_scaler.adapters.writers import WriterConflicts
from dynamo_scaler.autoscaling import rivals
from dynamo_scaler.autoscaling.autoscalers import Autoscalers
from dynamo_scaler.commands.service import ScaleCommands
from dynamo_scaler.metrics import AdapterMetrics, DecisionMetrics
from dynamo_scaler.reconcilers import adapters
from dynamo_scaler.reconcilers.adapters import AdapterReconciler
from dynamo_scaler.routing import graph_of, routes

NAME = "scaler"
READS: tuple[Resource, ...] = (
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    PODS,
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
)


class ScalerService:
    """Sets replicas according to adapters, commands and budgets."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        registry = context.metrics.registry
        with AdapterMetrics(registry) as metrics, DecisionMetrics(registry) as decisions:
            await _controller(context, metrics, decisions).serve()


def _controller(context: ServiceContext, metrics: AdapterMetrics, decisions: DecisionMetrics) -> Controller:
    controller = Controller(context, NAME, READS)
    kube, cache, announcer = controller.kube, controller.cache, controller.announcer
    # A megabyte of small values takes twenty in memory, and anyone may write hundreds of such objects.
    cache.pack(*READS)
    pods.index(cache)
    adapters.index(cache)
    rivals.index(cache)
    reconciler = AdapterReconciler(
        kube=kube,
        cache=cache,
        statuses=StatusWriter(kube, cache, context.clock),
        announcer=announcer,
        metrics=metrics,
        autoscalers=Autoscalers(
            kube,
            cache,
            announcer,
            controller.reader.is_served,
            now,
            OverruledWrites(cache.memory(), context.clock),
            frozenset(context.settings.platform.scaler.cluster_trigger_authentications),
        ),
        turns=WriterConflicts(context.clock),
        now=now,
    )
    commands = ScaleCommands(
        context,
        kube,
        cache,
        announcer,
        controller.publisher,
        metrics=decisions,
        is_elsewhere=controller.is_held,
        ownership=controller.ownership,
    )

    def graphs() -> Iterable[ObjectKey]:
        return dict.fromkeys(
            controller.of_each(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, lambda each: (graph_of(each),))
        )

    adapter_type = DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.plural
    context.metrics.of_namespaces(adapter_type, metrics.scalings, metrics.conflicts)
    controller.wire(
        {adapter_type: Reconciler(reconciler.reconcile, graphs)},
        routes(cache, Debounce(context.clock)),
        effects=dict.fromkeys((*READS, LEASES), lambda _: commands.changed()),
        counted={DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS: _state},
        background={"scale-commands": commands.run},
    )
    return controller


def _state(adapter: KubeObject) -> str:
    if objects.is_true(adapter, CONFLICT):
        return "conflict"
    return "synced" if objects.is_true(adapter, SYNCED) else "not_synced"
