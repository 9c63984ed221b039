"""Grafana dashboards: panels as one line each, out as Grafana's JSON."""

import json
from typing import Any, NamedTuple


class Panel(NamedTuple):
    """One graph: a title, its unit in Grafana's words, and its queries with their legends."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


def _p99(metric: str, by: str) -> str:
    return f"histogram_quantile(0.99, sum by (le, {by}) (rate({metric}_bucket[5m])))"


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
                ("dynamo_planner_num_prefill_replicas", "prefill {{graph}}"),
                ("dynamo_planner_num_decode_replicas", "decode {{graph}}"),
                ("dynamo_planner_predicted_num_prefill_replicas", "predicted prefill {{graph}}"),
                ("dynamo_planner_predicted_num_decode_replicas", "predicted decode {{graph}}"),
            )),
            Panel("Requests a second", "reqps", (
                ("dynamo_planner_observed_requests_per_second", "observed {{graph}}"),
                ("dynamo_planner_predicted_requests_per_second", "predicted {{graph}}"),
            )),
            Panel("Time to the first token", "ms", (
                ("dynamo_planner_observed_ttft_ms", "observed {{graph}}"),
                ("dynamo_planner_estimated_ttft_ms", "estimated {{graph}}"),
            )),
            Panel("Time between tokens", "ms", (
                ("dynamo_planner_observed_itl_ms", "observed {{graph}}"),
                ("dynamo_planner_estimated_itl_ms", "estimated {{graph}}"),
            )),
            Panel("Decisions of the scaler", "ops", (
                ("sum by (event, reason) (rate(dynamo_scaler_decisions_total[5m]))", "{{event}} {{reason}}"),
            )),
            Panel("Inputs that are missing", "short", (
                ("dynamo_planner_input_missing", "{{graph}} {{input}}: {{why}}"),
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
            "list": [{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}]
        },
        "panels": [_panel(number, panel) for number, panel in enumerate(panels)],
    }
    return json.dumps(dashboard, indent=1) + "\n"


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": source,
        "gridPos": {"x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": source, "expr": query, "legendFormat": legend}
            for index, (query, legend) in enumerate(panel.queries)
        ],
    }
