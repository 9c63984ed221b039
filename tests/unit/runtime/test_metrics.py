"""Metrics that several services have."""

import math
import subprocess
import sys
from typing import get_args

from dynamo_shared.kube.event_series import EventOutcome
from dynamo_shared.runtime.metrics import Metrics
from prometheus_client import Counter


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
