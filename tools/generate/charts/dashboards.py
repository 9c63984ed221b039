"""Grafana dashboards: each panel is one line here; generates Grafana's JSON."""

import json
import re
from typing import Any, NamedTuple


class Panel(NamedTuple):
    """One graph: a title, its unit as Grafana names it, and its queries with their legends."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


def _p99(metric: str, by: str) -> str:
    return f"histogram_quantile(0.99, sum by (le, {by}) (rate({metric}_bucket[5m])))"


def _of_graphs(metric: str) -> str:
    """A metric, filtered by the selected graphs: a large cluster has hundreds."""
    return f'{metric}{{namespace=~"$namespace",graph=~"$graph"}}'


DASHBOARDS: dict[str, tuple[str, tuple[Panel, ...]]] = {
    "graphs": (
        "Dynamo Platform: graphs",
        (
            Panel("Objects by state", "short", (
                ("sum by (resource_type, status) (dynamo_operator_resources_total)", "{{resource_type}} {{status}}"),
            )),
            Panel("Reconciles", "ops", (
                ("sum by (resource_type, result) (rate(dynamo_operator_reconcile_total[5m]))", "{{resource_type}} {{result}}"),
            )),
            Panel("Errors", "ops", (
                ("sum by (resource_type, error_type) (rate(dynamo_operator_reconcile_errors_total[5m]))",
                 "{{resource_type}} {{error_type}}"),
            )),
            Panel("Time of a reconcile, p99", "s", (
                (_p99("dynamo_operator_reconcile_duration_seconds", "resource_type"), "{{resource_type}}"),
            )),
            Panel("Kubernetes Events", "ops", (
                ("sum by (reporter, outcome) (rate(dynamo_platform_kube_events_total[5m]))", "{{reporter}} {{outcome}}"),
            )),
            Panel("Refused by webhooks", "ops", (
                ("sum by (resource_type, reason) (rate(dynamo_operator_webhook_denials_total[5m]))",
                 "{{resource_type}} {{reason}}"),
            )),
            Panel("Time of a webhook, p99", "s", (
                (_p99("dynamo_operator_webhook_duration_seconds", "webhook"), "{{webhook}}"),
            )),
            Panel("Workers and models", "short", (
                ("sum by (role) (dynamo_model_discovery_workers)", "workers: {{role}}"),
                ("sum by (available) (dynamo_model_discovery_served_models)", "models available: {{available}}"),
            )),
            Panel("Requests to the API server", "ops", (
                ("sum by (method, code) (rate(dynamo_platform_kube_requests_total[5m]))", "{{method}} {{code}}"),
            )),
        ),
    ),
    "queues": (
        "Dynamo Platform: queues and replicas",
        (
            Panel("Keys that wait", "short", (("sum by (queue) (dynamo_platform_queue_depth)", "{{queue}}"),)),
            Panel("Time in a queue, p99", "s", ((_p99("dynamo_platform_queue_wait_seconds", "queue"), "{{queue}}"),)),
            Panel("Longest work under way", "s", (
                ("max by (queue, pod) (dynamo_platform_queue_longest_work_seconds)", "{{queue}} {{pod}}"),
            )),
            Panel("Retries", "ops", (("sum by (queue) (rate(dynamo_platform_queue_retries_total[5m]))", "{{queue}}"),)),
            Panel("Partitions held", "short", (("dynamo_platform_partitions", "{{service}} {{pod}}"),)),
            Panel("Leases", "short", (
                ("dynamo_platform_lease_alive", "alive: {{pod}}"),
                ("increase(dynamo_platform_lease_losses_total[15m])", "lost: {{pod}}"),
            )),
            Panel("Services started again", "short", (
                ("increase(dynamo_platform_service_restarts_total[15m])", "{{service}} {{pod}}"),
            )),
        ),
    ),
    "planner": (
        "Dynamo Platform: planner decisions",
        (
            Panel("Replicas: observed and predicted", "short", (
                (_of_graphs("dynamo_planner_num_prefill_replicas"), "prefill {{namespace}}/{{graph}}"),
                (_of_graphs("dynamo_planner_num_decode_replicas"), "decode {{namespace}}/{{graph}}"),
                (_of_graphs("dynamo_planner_predicted_num_prefill_replicas"), "predicted prefill {{namespace}}/{{graph}}"),
                (_of_graphs("dynamo_planner_predicted_num_decode_replicas"), "predicted decode {{namespace}}/{{graph}}"),
            )),
            Panel("Requests a second", "reqps", (
                (_of_graphs("dynamo_planner_observed_requests_per_second"), "observed {{namespace}}/{{graph}}"),
                (_of_graphs("dynamo_planner_predicted_requests_per_second"), "predicted {{namespace}}/{{graph}}"),
            )),
            Panel("Time to the first token", "ms", (
                (_of_graphs("dynamo_planner_observed_ttft_ms"), "observed {{namespace}}/{{graph}}"),
                (_of_graphs("dynamo_planner_estimated_ttft_ms"), "estimated {{namespace}}/{{graph}}"),
            )),
            Panel("Time between tokens", "ms", (
                (_of_graphs("dynamo_planner_observed_itl_ms"), "observed {{namespace}}/{{graph}}"),
                (_of_graphs("dynamo_planner_estimated_itl_ms"), "estimated {{namespace}}/{{graph}}"),
            )),
            Panel("Decisions of the scaler", "ops", (
                ("sum by (event, reason) (rate(dynamo_scaler_decisions_total[5m]))", "{{event}} {{reason}}"),
            )),
            Panel("Inputs that are missing", "short", (
                (_of_graphs("dynamo_planner_input_missing"), "{{namespace}}/{{graph}} {{input}}: {{why}}"),
            )),
            Panel("GPUs of budgets", "short", (("dynamo_scaler_budget_gpus", "{{budget}}"),)),
            Panel("Profiling", "short", (
                ("dynamo_planner_profiling_workers", "worker processes"),
                ("increase(dynamo_planner_profiling_sweeps_total[1h])", "sweeps: {{outcome}}"),
            )),
        ),
    ),
    "bus": (
        "Dynamo Platform: NATS lag",
        (
            Panel("Connected", "short", (("dynamo_bus_connected", "{{pod}}"),)),
            Panel("Objects that wait to be published", "short", (("dynamo_state_waiting", "{{pod}}"),)),
            Panel("Time to publish an object, p99", "s", ((_p99("dynamo_state_publish_seconds", "pod"), "{{pod}}"),)),
            Panel("Events that wait", "short", (("dynamo_events_waiting", "{{pod}}"),)),
            Panel("Events dropped", "short", (("increase(dynamo_events_dropped_total[15m])", "{{pod}} {{cause}}"),)),
            Panel("Objects published", "ops", (
                ("sum by (resource) (rate(dynamo_state_published_total[5m]))", "{{resource}}"),
            )),
            Panel("Since the watcher last had all objects", "s", (
                ("time() - max by (namespace, resource) (dynamo_watcher_last_synced_timestamp_seconds)", "{{resource}}"),
            )),
            Panel("Publishing refused", "ops", (
                ("sum by (stream, cause) (rate(dynamo_bus_publish_errors_total[5m]))", "{{stream}} {{cause}}"),
            )),
        ),
    ),
}  # fmt: skip

_WIDTH, _HEIGHT = 12, 8
_PLANNED = "dynamo_planner_num_decode_replicas"
#: Filters of a dashboard, in addition to the clusters of a Prometheus that has several: labels, and the metrics that
#: have them.
_CHOICES = {"planner": {"namespace": _PLANNED, "graph": f'{_PLANNED}{{namespace=~"$namespace"}}'}}
_METRIC = re.compile(r"\b(dynamo_\w+)(\{?)")


def page(name: str) -> str:
    """One dashboard as Grafana imports it."""
    title, panels = DASHBOARDS[name]
    dashboard = {
        "uid": f"dynamo-platform-{name}",
        "title": title,
        "tags": ["dynamo"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
                _variable("cluster", "label_values(dynamo_bus_connected, cluster)"),
                *(
                    _variable(label, f"label_values({_of_clusters(metric)}, {label})")
                    for label, metric in _CHOICES.get(name, {}).items()
                ),
            ]
        },
        "panels": [_panel(number, panel) for number, panel in enumerate(panels)],
    }
    return json.dumps(dashboard, indent=1) + "\n"


_SOURCE = {"type": "prometheus", "uid": "${source}"}


def _variable(label: str, query: str) -> dict[str, Any]:
    """A selection of a label's values: initially all of them, and series without the label."""
    return {
        "name": label,
        "label": label.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "definition": query,
        "query": {"query": query, "refId": label},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _of_clusters(query: str) -> str:
    """The same query, filtered by the selected clusters."""
    return _METRIC.sub(lambda match: f'{match[1]}{{cluster=~"$cluster"{"," if match[2] else "}"}', query)


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": {"x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _SOURCE,
                "expr": _of_clusters(query),
                "legendFormat": legend,
            }
            for index, (query, legend) in enumerate(panel.queries)
        ],
    }
