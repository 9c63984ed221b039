"""Metrics that several services have."""

import asyncio
import math
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
from dynamo_image_builder import app as image_builder
from dynamo_image_builder.metrics import BuildMetrics
from dynamo_scaler import app as scaler
from dynamo_scaler.commands.service import ScaleCommands
from dynamo_scaler.metrics import AdapterMetrics, DecisionMetrics
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, DYNAMO_NIM_REQUESTS
from dynamo_shared.kube.event_series import EventOutcome
from dynamo_shared.leases import AllKeys, AlwaysLeader
from dynamo_shared.runtime import Health, ServiceContext, load_settings
from dynamo_shared.runtime.metrics import Metrics, ServiceMetrics
from dynamo_shared.state import ObjectCache
from prometheus_client import CollectorRegistry, Counter

from tests.building.memory_bus import MemoryBus
from tests.building.tasks import in_background


def test_metrics_of_a_namespace_are_removed_after_its_last_object() -> None:
    """A cluster may have new namespaces each day, and each has a hundred metrics of reconciles."""
    metrics = Metrics()

    def namespaces() -> set[str]:
        return {
            sample.labels["namespace"]
            for family in metrics.registry.collect()
            for sample in family.samples
            if "namespace" in sample.labels
        }

    for namespace in ("kept", "gone"):
        metrics.reconciled("jobs", namespace, "success", 0.1)
        metrics.failed("jobs", namespace, TimeoutError())
    metrics.reconciled("others", "gone", "success", 0.1)
    metrics.keep_namespaces(["jobs"], {"kept"})
    assert namespaces() == {"kept", "gone"}, "what was counted last is scraped once more"
    metrics.keep_namespaces(["jobs"], {"kept"})
    metrics.keep_namespaces(["jobs"], {"kept"})
    assert namespaces() == {"kept", "gone"}, "of the type that others count"
    metrics.keep_namespaces(["others"], set())
    metrics.reconciled("others", "gone", "success", 0.1)
    metrics.keep_namespaces(["others"], {"gone"})
    metrics.keep_namespaces(["others"], set())
    assert namespaces() == {"kept", "gone"}, "it came back meanwhile"
    metrics.keep_namespaces(["others"], set())
    assert namespaces() == {"kept"}


def test_metrics_of_a_service_are_removed_with_the_metrics_of_its_reconciles() -> None:
    metrics = Metrics()
    own = Counter("own", "Of a service.", ["namespace", "result"], registry=metrics.registry)
    metrics.of_namespaces("jobs", own)
    for namespace in ("kept", "gone"):
        metrics.reconciled("jobs", namespace, "success", 0.1)
        for result in ("built", "failed"):
            own.labels(namespace, result).inc()
    for _ in range(2):
        metrics.keep_namespaces(["jobs"], {"kept"})
    assert {each.labels["namespace"] for family in own.collect() for each in family.samples} == {"kept"}


def test_event_results_are_exposed_from_the_start() -> None:
    metrics = Metrics()
    count = metrics.events("dynamo-scaler")
    count("suppressed")
    count("suppressed")
    counted = {
        outcome: metrics.registry.get_sample_value(
            "dynamo_platform_kube_events_total", {"reporter": "dynamo-scaler", "outcome": outcome}
        )
        for outcome in get_args(EventOutcome)
    }
    assert counted == {"written": 0, "counted": 0, "dropped": 0, "suppressed": 2}


def test_a_process_without_an_etcd_lease_does_not_report_a_lost_one() -> None:
    """Admission never has a lease: the alert for lost leases fired as long as the platform ran."""
    alive = Metrics().registry.get_sample_value("dynamo_platform_lease_alive")
    assert alive is not None
    assert math.isnan(alive)


def test_a_process_exposes_nats_metrics_only_if_it_uses_nats() -> None:
    """Admission has no connection that it could lose, and the first dropped event counts as an increase."""
    names = "'dynamo_bus_connected'), value('dynamo_events_dropped_total', {'cause': 'refused'}"
    lines = (
        "from dynamo_shared.bus import metrics",
        "from prometheus_client import REGISTRY",
        f"value = REGISTRY.get_sample_value; print(value({names}))",
    )
    outcome = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == ["nan", "0.0"]


class _Metrics(ServiceMetrics):
    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.requests = self._counter("a", "A.", ["label"])
        self.objects = self._gauge("b", "B.")
        self.seconds = self._histogram("c", "C.")
        self._reported: dict[str, int] = {"a": 1}
        self._gauges = {name: self._gauge(name, "D.") for name in ("d", "e")}


def test_a_restarted_service_registers_its_metrics_again() -> None:
    registry = CollectorRegistry()
    other = Counter("other", "Of the process.", registry=registry)
    with _Metrics(registry):
        assert len(list(registry.collect())) == 6
    assert list(registry.collect()) == list(other.collect())
    _Metrics(registry)
    assert {metric.name for metric in registry.collect()} == {"a", "b", "c", "d", "e", "other"}


@pytest.fixture
def context() -> ServiceContext:
    client = SimpleNamespace(guarded=lambda _: None)
    kube = cast("Any", SimpleNamespace(acting_as=lambda _: client))
    ownership = AllKeys()
    return ServiceContext(
        load_settings(None, {}), kube, MemoryBus(), Health(), Metrics(), lambda _: ownership, lambda _: AlwaysLeader()
    )


class Given(AllKeys):
    """Ownership of everything, which the test takes back."""

    async def lose(self) -> None:
        for each in self._drainers:
            await each(lambda _: True)


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


async def test_a_replica_that_no_longer_decides_reports_no_budgets(context: ServiceContext) -> None:
    """Its last figures stayed until it ended, next to those of the replica that decides now."""
    metrics = DecisionMetrics(context.metrics.registry)
    ownership, anything = Given(), cast("Any", None)
    commands = ScaleCommands(
        context,
        context.kube,
        ObjectCache(),
        anything,
        anything,
        metrics=metrics,
        is_elsewhere=lambda _: False,
        ownership=ownership,
    )
    metrics.budgets({"team": 8})
    async with in_background(commands.run()):
        for _ in range(10):
            await asyncio.sleep(0)
        assert context.metrics.registry.get_sample_value("dynamo_scaler_budget_gpus", {"budget": "team"}) == 8
        await ownership.lose()
        assert context.metrics.registry.get_sample_value("dynamo_scaler_budget_gpus", {"budget": "team"}) is None


def test_metrics_of_images_are_removed(context: ServiceContext) -> None:
    metrics = BuildMetrics(context.metrics.registry)
    image_builder._controller(context, metrics)
    for namespace in ("kept", "gone"):
        metrics.answers.labels(namespace, "built").inc()
    reconciled_and_gone(context, DYNAMO_NIM_REQUESTS.plural)
    assert namespaces(context, "dynamo_image_builder_answers") == {"kept"}
