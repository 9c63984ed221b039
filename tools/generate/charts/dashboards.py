"""Grafana dashboards: each panel is one line here; generates Grafana's JSON."""

import json
import re
from typing import Any, NamedTuple


class Panel(NamedTuple):
    """One graph: a title, what it shows, its unit as Grafana names it, and its queries with their legends."""

    title: str
    description: str
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
            Panel("Objects by state", "Graphs, requests and other objects, by the state in their status.", "short", (
                ("sum by (resource_type, status) (dynamo_operator_resources_total)", "{{resource_type}} {{status}}"),
            )),
            Panel("Reconciles per second", "Reconciles by result. `conflict` and `error` are retried.", "ops", (
                ("sum by (resource_type, result) (rate(dynamo_operator_reconcile_total[5m]))", "{{resource_type}} {{result}}"),
            )),
            Panel("Reconcile errors per second", "Failed reconciles by type of error, without conflicts.", "ops", (
                ("sum by (resource_type, error_type) (rate(dynamo_operator_reconcile_errors_total[5m]))",
                 "{{resource_type}} {{error_type}}"),
            )),
            Panel("Reconcile duration, p99", "Duration of one reconcile of an object.", "s", (
                (_p99("dynamo_operator_reconcile_duration_seconds", "resource_type"), "{{resource_type}}"),
            )),
            Panel("Kubernetes Events per second",
                  "Kubernetes Events by outcome: written, counted in a series, suppressed, or dropped.", "ops", (
                ("sum by (reporter, outcome) (rate(dynamo_platform_kube_events_total[5m]))", "{{reporter}} {{outcome}}"),
            )),
            Panel("Requests denied by webhooks per second", "Objects that admission denied, by reason.", "ops", (
                ("sum by (resource_type, reason) (rate(dynamo_operator_webhook_denials_total[5m]))",
                 "{{resource_type}} {{reason}}"),
            )),
            Panel("Webhook duration, p99", "Duration of one admission or conversion request.", "s", (
                (_p99("dynamo_operator_webhook_duration_seconds", "webhook"), "{{webhook}}"),
            )),
            Panel("Workers and models",
                  "Workers by role, and models by availability, according to Dynamo's discovery.", "short", (
                ("sum by (role) (dynamo_model_discovery_workers)", "workers: {{role}}"),
                ("sum by (available) (dynamo_model_discovery_served_models)", "models available: {{available}}"),
            )),
            Panel("Requests to the API server per second",
                  "Requests by method and status code; code 0 means no response.", "ops", (
                ("sum by (method, code) (rate(dynamo_platform_kube_requests_total[5m]))", "{{method}} {{code}}"),
            )),
        ),
    ),
    "queues": (
        "Dynamo Platform: queues and replicas",
        (
            Panel("Queue depth", "Keys that wait to be reconciled.", "short", (
                ("sum by (queue) (dynamo_platform_queue_depth)", "{{queue}}"),
            )),
            Panel("Queue wait time, p99", "Time that a key waits in the queue.", "s", (
                (_p99("dynamo_platform_queue_wait_seconds", "queue"), "{{queue}}"),
            )),
            Panel("Longest running reconcile", "Duration so far of the longest-running reconcile of a queue.", "s", (
                ("max by (queue, pod) (dynamo_platform_queue_longest_work_seconds)", "{{queue}} {{pod}}"),
            )),
            Panel("Retries per second", "Keys that were added again after a failure.", "ops", (
                ("sum by (queue) (rate(dynamo_platform_queue_retries_total[5m]))", "{{queue}}"),
            )),
            Panel("Partitions per replica", "Partitions that a replica owns; absent with one replica.", "short", (
                ("dynamo_platform_partitions", "{{service}} {{pod}}"),
            )),
            Panel("Leases in etcd", "1 if the replica holds a valid lease, and leases lost in 15 minutes.", "short", (
                ("dynamo_platform_lease_alive", "alive: {{pod}}"),
                ("increase(dynamo_platform_lease_losses_total[15m])", "lost: {{pod}}"),
            )),
            Panel("Service restarts in 15 minutes", "Restarts of services after an error.", "short", (
                ("increase(dynamo_platform_service_restarts_total[15m])", "{{service}} {{pod}}"),
            )),
        ),
    ),
    "planner": (
        "Dynamo Platform: planner",
        (
            Panel("Replicas: observed and predicted",
                  "Ready replicas of both pools, and the replicas that the planner expects to need.", "short", (
                (_of_graphs("dynamo_planner_num_prefill_replicas"), "prefill {{namespace}}/{{graph}}"),
                (_of_graphs("dynamo_planner_num_decode_replicas"), "decode {{namespace}}/{{graph}}"),
                (_of_graphs("dynamo_planner_predicted_num_prefill_replicas"), "predicted prefill {{namespace}}/{{graph}}"),
                (_of_graphs("dynamo_planner_predicted_num_decode_replicas"), "predicted decode {{namespace}}/{{graph}}"),
            )),
            Panel("Requests per second", "Observed and predicted request rate of a graph.", "reqps", (
                (_of_graphs("dynamo_planner_observed_requests_per_second"), "observed {{namespace}}/{{graph}}"),
                (_of_graphs("dynamo_planner_predicted_requests_per_second"), "predicted {{namespace}}/{{graph}}"),
            )),
            Panel("Time to first token (TTFT)", "Observed TTFT, and the planner's estimate.", "ms", (
                (_of_graphs("dynamo_planner_observed_ttft_ms"), "observed {{namespace}}/{{graph}}"),
                (_of_graphs("dynamo_planner_estimated_ttft_ms"), "estimated {{namespace}}/{{graph}}"),
            )),
            Panel("Inter-token latency (ITL)", "Observed ITL, and the planner's estimate.", "ms", (
                (_of_graphs("dynamo_planner_observed_itl_ms"), "observed {{namespace}}/{{graph}}"),
                (_of_graphs("dynamo_planner_estimated_itl_ms"), "estimated {{namespace}}/{{graph}}"),
            )),
            Panel("Scaler decisions per second", "Decisions about scale commands, by result and reason.", "ops", (
                ("sum by (event, reason) (rate(dynamo_scaler_decisions_total[5m]))", "{{event}} {{reason}}"),
            )),
            Panel("Missing planner inputs",
                  "1 for each input of the planner that is missing, with the reason.", "short", (
                (_of_graphs("dynamo_planner_input_missing"), "{{namespace}}/{{graph}} {{input}}: {{why}}"),
            )),
            Panel("GPUs by budget", "GPUs of all desired replicas that count in a budget.", "short", (
                ("dynamo_scaler_budget_gpus", "{{budget}}"),
            )),
            Panel("Profiling", "Worker processes of the profiler, and sweeps in one hour by outcome.", "short", (
                ("sum(dynamo_planner_profiling_workers)", "worker processes"),
                ("sum by (outcome) (increase(dynamo_planner_profiling_sweeps_total[1h]))", "sweeps: {{outcome}}"),
            )),
        ),
    ),
    "bus": (
        "Dynamo Platform: NATS",
        (
            Panel("Connected to NATS", "1 if the pod is connected to NATS, otherwise 0.", "short", (
                ("dynamo_bus_connected", "{{pod}}"),
            )),
            Panel("Objects waiting to be published",
                  "Objects that the publisher has not written to STATE yet.", "short", (
                ("dynamo_state_waiting", "{{pod}}"),
            )),
            Panel("Publish latency of objects, p99",
                  "Time from a change's arrival from the API server to its acknowledgement by STATE.", "s", (
                (_p99("dynamo_state_publish_seconds", "pod"), "{{pod}}"),
            )),
            Panel("CloudEvents waiting to be published", "CloudEvents that NATS has not acknowledged yet.", "short", (
                ("dynamo_events_waiting", "{{pod}}"),
            )),
            Panel("CloudEvents dropped in 15 minutes",
                  "CloudEvents that were dropped because too many were waiting, or because NATS refused them.", "short", (
                ("increase(dynamo_events_dropped_total[15m])", "{{pod}} {{cause}}"),
            )),
            Panel("Objects published per second", "Messages that the publisher writes to STATE.", "ops", (
                ("sum by (resource) (rate(dynamo_state_published_total[5m]))", "{{resource}}"),
            )),
            Panel("Time since the last complete sync of the watcher",
                  "Time since STATE last had all objects of a resource.", "s", (
                ("time() - max by (namespace, resource) (dynamo_watcher_last_synced_timestamp_seconds)", "{{resource}}"),
            )),
            Panel("Publish errors per second", "Messages that NATS did not acknowledge, by cause.", "ops", (
                ("sum by (stream, cause) (rate(dynamo_bus_publish_errors_total[5m]))", "{{stream}} {{cause}}"),
            )),
        ),
    ),
}  # fmt: skip

_WIDTH, _HEIGHT = 12, 8
#: Every planned graph has it, also one whose workers are unknown, and one with prefill alone.
_PLANNED = "dynamo_planner_ticks_total"
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
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": {"x": number % 2 * _WIDTH, "y": number // 2 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": _SOURCE, "expr": _of_clusters(query), "legendFormat": legend}
            for index, (query, legend) in enumerate(panel.queries)
        ],
    }
