"""Alerts and dashboards name metrics and headings that exist."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from dynamo_planner.metrics import PlanMetrics
from dynamo_pod_builder.status.graph import FAILED
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.runtime.metrics import WAIT_SECONDS
from dynamo_shared.runtime.workqueue import LAST_RETRY
from prometheus_client import CollectorRegistry

from tests.charts import helm

FILES = helm.PLATFORM / "files"
ROWS = re.findall(
    r"^\| `(\w+)` \| \w+ \| (.*?) \|", (helm.ROOT / "docs/reference/metrics.md").read_text(), flags=re.MULTILINE
)
LABELS = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in ROWS}
KNOWN = LABELS.keys()
#: Labels that every series has: those of its target, the bounds of a histogram, and those that a Prometheus of several
#: clusters adds.
ALWAYS = {"namespace", "pod", "le", "cluster"}


def named(expression: str) -> set[str]:
    """Metrics in a query; a histogram's parts count as the histogram."""
    matches = re.findall(r"\bdynamo_\w+", expression)
    return {re.sub(r"_(bucket|sum|count)$", "", each) for each in matches}


def alerts() -> list[dict[str, str]]:
    """The rules."""
    document: list[dict[str, str]] = yaml.safe_load((FILES / "alerts.yaml").read_text())
    return document


def boards() -> dict[str, dict[str, Any]]:
    """The dashboards by name."""
    return {each.stem: json.loads(each.read_text()) for each in (FILES / "dashboards").glob("*.json")}


def queries() -> Iterator[tuple[str, str]]:
    """Every query of alerts and dashboards, with the text that displays labels of its result."""
    for alert in alerts():
        yield alert["expr"], alert["summary"].replace("$labels.", "")
    for board in boards().values():
        for target in (target for panel in board["panels"] for target in panel["targets"]):
            yield target["expr"], target["legendFormat"]
        yield from ((each["definition"], "") for each in board["templating"]["list"] if each["type"] == "query")


@pytest.mark.parametrize(("query", "text"), [*queries()])
def test_queries_name_metrics_and_labels_that_exist(query: str, text: str) -> None:
    assert named(query)
    assert named(query) <= KNOWN
    there = set.intersection(*(LABELS[each] for each in named(query))) | ALWAYS
    kept = re.findall(r"\bby \((.*?)\)", query)
    grouped = set(re.split(", *", kept[0])) if kept else there
    assert grouped <= there
    assert set(re.findall(r'(\w+) *(?:=~|!~|!=|=) *"', query)) <= there
    # A label that the query does not group by is empty in the text.
    assert set(re.findall(r"{{ ?(\w+) ?}}", text)) <= grouped - {"le"}


def test_another_platform_does_not_hide_a_missing_watcher() -> None:
    """Its watcher counted where this platform's had no pod, and so no series."""
    (rules,) = helm.of_kind(
        helm.objects("--set", "metrics.rules.enabled=true", namespace="inference"), "PrometheusRule"
    )
    (alert,) = (each for each in rules["spec"]["groups"][0]["rules"] if each["alert"] == "DynamoNoActiveWatcher")
    assert (
        re.findall(r'dynamo_watcher_active({namespace="inference"})?', alert["expr"]) == ['{namespace="inference"}'] * 2
    )


def test_one_object_that_always_fails_is_enough_for_the_alert_of_errors() -> None:
    (alert,) = (each for each in alerts() if each["alert"] == "DynamoReconcileErrors")
    assert float(alert["expr"].rpartition("> ")[2]) < 1 / LAST_RETRY


@pytest.mark.parametrize(("webhooks", "watched"), [("true", True), ("false", False)])
def test_the_alert_of_missing_webhooks_exists_only_if_webhooks_are_enabled(webhooks: str, watched: bool) -> None:
    objects = helm.objects("--set", f"metrics.rules.enabled=true,webhook.enabled={webhooks}")
    (rules,) = helm.of_kind(objects, "PrometheusRule")
    names = [each["alert"] for each in rules["spec"]["groups"][0]["rules"]]
    assert len(names) == len(alerts()) - (not watched)
    assert ("DynamoNoWebhooks" in names) is watched


def test_the_alert_of_failed_graphs_counts_what_the_pod_builder_counts() -> None:
    (alert,) = (each for each in alerts() if each["alert"] == "DynamoGraphFailed")
    counted = f'resource_type="{DYNAMO_GRAPH_DEPLOYMENTS.plural}",status="{FAILED}"'
    assert f"dynamo_operator_resources_total{{{counted}}}" in alert["expr"]


def test_the_alert_of_a_backlog_can_fire() -> None:
    """A quantile is at most the histogram's last bound: when that was 60 s, the quantile never exceeded 60 s."""
    (alert,) = (each for each in alerts() if each["alert"] == "DynamoQueueBacklog")
    assert "dynamo_platform_queue_wait_seconds_bucket" in alert["expr"]
    assert float(alert["expr"].rpartition("> ")[2]) < WAIT_SECONDS[-1]


def test_the_alert_of_overload_does_not_count_client_errors() -> None:
    """A port scanner gets status 400 all day, and a pod that sends slowly 408."""
    (alert,) = (each for each in alerts() if each["alert"] == "DynamoWebhooksOverloaded")
    assert 'dynamo_admission_requests_turned_away_total{reason="busy"}' in alert["expr"]


def test_every_alert_has_its_heading() -> None:
    page = (helm.ROOT / "docs/operations.md").read_text()
    headings = {
        re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-")
        for each in re.findall(r"^#+ (.*)$", page, flags=re.MULTILINE)
    }
    for alert in alerts():
        assert alert["runbook"] == f"alert-{alert['alert'].lower()}"
        assert alert["runbook"] in headings


def test_dashboards_filter_by_the_selected_clusters_and_graphs() -> None:
    """A Prometheus of many clusters has the series of all of them, and a large cluster has hundreds of graphs."""
    assert len(boards()) == 4
    for board in boards().values():
        for query in (target["expr"] for panel in board["panels"] for target in panel["targets"]):
            assert query.count('cluster=~"$cluster"') == len(re.findall(r"\bdynamo_\w+", query))
            of_graphs = all("graph" in LABELS[each] for each in named(query))
            assert ('graph=~"$graph"' in query) is of_graphs


def test_every_planned_graph_can_be_selected() -> None:
    """A graph lacked the metric of decode workers while its workers were unknown, as do graphs of prefill alone."""
    metrics, alone = PlanMetrics(CollectorRegistry()), ("team", "chat")
    metrics.failed(alone, "PlanningFailed")
    present = {sample.name for family in metrics._registry.collect() for sample in family.samples}
    choices = [
        each["definition"]
        for each in boards()["planner"]["templating"]["list"]
        if each["label"] in {"Namespace", "Graph"}
    ]
    assert len(choices) == 2
    assert set().union(*map(named, choices)) <= present


def test_each_line_of_a_dashboard_has_a_name_of_its_own() -> None:
    """Sweeps had two lines of one name: with and without the cache."""
    for board in boards().values():
        for target in (target for panel in board["panels"] for target in panel["targets"]):
            query, legend = target["expr"], target["legendFormat"]
            kept = re.findall(r"\bby \((.*?)\)", query)
            labels = set(re.split(", *", kept[0])) if kept else set() if "sum(" in query else LABELS[min(named(query))]
            assert labels - {"le", "namespace"} <= set(re.findall(r"{{(\w+)}}", legend)), query


def test_dashboards_draw_no_line_for_a_watcher_that_is_no_longer_active() -> None:
    """It still exports the time of its last list, which would read as if nothing is synced any more."""
    (query,) = (
        target["expr"]
        for panel in boards()["bus"]["panels"]
        for target in panel["targets"]
        if "dynamo_watcher_last_synced_timestamp_seconds" in target["expr"]
    )
    assert "max by (namespace, resource) (" in query
