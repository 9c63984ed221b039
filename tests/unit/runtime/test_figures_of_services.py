"""Metrics of a namespace are removed with it: a cluster may have new namespaces each day."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_image_builder import app as image_builder
from dynamo_image_builder.metrics import BuildMetrics
from dynamo_scaler import app as scaler
from dynamo_scaler.metrics import AdapterMetrics, DecisionMetrics
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, DYNAMO_NIM_REQUESTS
from dynamo_shared.leases import AllKeys, AlwaysLeader
from dynamo_shared.runtime import Health, ServiceContext, load_settings
from dynamo_shared.runtime.metrics import Metrics

from tests.building.memory_bus import MemoryBus


@pytest.fixture
def context() -> ServiceContext:
    client = SimpleNamespace(guarded=lambda _: None)
    kube = cast("Any", SimpleNamespace(acting_as=lambda _: client))
    ownership = AllKeys()
    return ServiceContext(
        load_settings(None, {}), kube, MemoryBus(), Health(), Metrics(), lambda _: ownership, lambda _: AlwaysLeader()
    )


def namespaces(context: ServiceContext, name: str) -> set[str]:
    return {
        sample.labels["namespace"]
        for family in context.metrics.registry.collect()
        if family.name == name
        for sample in family.samples
    }


def reconciled_and_gone(context: ServiceContext, resource_type: str) -> None:
    context.metrics.reconciled(resource_type, "gone", "success", 0.1)
    for _ in range(2):
        context.metrics.keep_namespaces([resource_type], {"kept"})


def test_metrics_of_scalings_are_removed(context: ServiceContext) -> None:
    registry = context.metrics.registry
    metrics = AdapterMetrics(registry)
    scaler._controller(context, metrics, DecisionMetrics(registry))
    for namespace in ("kept", "gone"):
        metrics.scaled(namespace, 1, 2)
        metrics.conflicts.labels(namespace, "OtherWriter").inc()
    reconciled_and_gone(context, DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.plural)
    assert namespaces(context, "dynamo_scaler_scalings") == {"kept"}
    assert namespaces(context, "dynamo_scaler_conflicts") == {"kept"}


def test_metrics_of_images_are_removed(context: ServiceContext) -> None:
    metrics = BuildMetrics(context.metrics.registry)
    image_builder._controller(context, metrics)
    for namespace in ("kept", "gone"):
        metrics.answers.labels(namespace, "built").inc()
    reconciled_and_gone(context, DYNAMO_NIM_REQUESTS.plural)
    assert namespaces(context, "dynamo_image_builder_answers") == {"kept"}
