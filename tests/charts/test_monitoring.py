"""Alerts and dashboards name metrics and headings that exist."""

import json
import re

import yaml
from dynamo_pod_builder.status.graph import FAILED
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.runtime.metrics import WAIT_SECONDS

from tests.charts import helm

FILES = helm.PLATFORM / "files"
KNOWN = set(re.findall(r"^\| `(\w+)`", (helm.ROOT / "docs/reference/metrics.md").read_text(), flags=re.MULTILINE))


def named(expression: str) -> set[str]:
    """Metrics in a query; a histogram's parts count as the histogram."""
    matches = re.findall(r"\bdynamo_\w+", expression)
    return {re.sub(r"_(bucket|sum|count)$", "", each) for each in matches}


def alerts() -> list[dict[str, str]]:
    """The rules."""
    document: list[dict[str, str]] = yaml.safe_load((FILES / "alerts.yaml").read_text())
    return document


def test_alerts_watch_metrics_that_there_are() -> None:
    assert {name for alert in alerts() for name in named(alert["expr"])} <= KNOWN


def test_a_platform_without_a_watcher_is_not_hidden_by_another_one() -> None:
    (alert,) = (each for each in alerts() if each["alert"] == "DynamoNoActiveWatcher")
    assert alert["expr"].startswith("max by (namespace) (")


def test_the_alert_of_failed_graphs_counts_what_the_pod_builder_counts() -> None:
    (alert,) = (each for each in alerts() if each["alert"] == "DynamoGraphFailed")
    counted = f'resource_type="{DYNAMO_GRAPH_DEPLOYMENTS.plural}",status="{FAILED}"'
    assert f"dynamo_operator_resources_total{{{counted}}}" in alert["expr"]


def test_the_alert_of_a_backlog_can_fire() -> None:
    """A quantile is at most the last bound of the histogram: with 60 s as the last one it was never above 60 s."""
    (alert,) = (each for each in alerts() if each["alert"] == "DynamoQueueBacklog")
    assert "dynamo_platform_queue_wait_seconds_bucket" in alert["expr"]
    assert float(alert["expr"].rpartition("> ")[2]) < WAIT_SECONDS[-1]


def test_the_alert_of_overload_does_not_count_what_is_the_callers_fault() -> None:
    """A port scanner is answered with 400 all day."""
    (alert,) = (each for each in alerts() if each["alert"] == "DynamoWebhooksOverloaded")
    assert 'dynamo_admission_requests_turned_away_total{reason!~"caller|junk|size"}' in alert["expr"]


def test_every_alert_has_its_heading() -> None:
    page = (helm.ROOT / "docs/operations.md").read_text()
    headings = {
        re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-")
        for each in re.findall(r"^#+ (.*)$", page, flags=re.MULTILINE)
    }
    for alert in alerts():
        assert alert["runbook"] == f"alert-{alert['alert'].lower()}"
        assert alert["runbook"] in headings


def test_dashboards_show_metrics_that_there_are() -> None:
    boards = sorted((FILES / "dashboards").glob("*.json"))
    assert len(boards) == 4
    for board in boards:
        queries = [target["expr"] for panel in json.loads(board.read_text())["panels"] for target in panel["targets"]]
        assert {name for query in queries for name in named(query)} <= KNOWN


def test_a_watcher_that_was_active_before_draws_no_line_of_its_own() -> None:
    """It keeps the time of its last list, as if nothing was synced any more."""
    board = json.loads((FILES / "dashboards" / "bus.json").read_text())
    (query,) = (
        target["expr"]
        for panel in board["panels"]
        for target in panel["targets"]
        if "dynamo_watcher_last_synced_timestamp_seconds" in target["expr"]
    )
    assert "max by (namespace, resource) (" in query
