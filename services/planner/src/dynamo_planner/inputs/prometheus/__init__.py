"""Traffic of a graph, from Prometheus (planner.md, section a.3)."""

from dynamo_planner.inputs.prometheus.client import PrometheusClient, PrometheusError, SeriesValue, Track
from dynamo_planner.inputs.prometheus.options import PrometheusOptions, prometheus_options
from dynamo_planner.inputs.prometheus.traffic import TrafficReader

__all__ = [
    "PrometheusClient",
    "PrometheusError",
    "PrometheusOptions",
    "SeriesValue",
    "Track",
    "TrafficReader",
    "prometheus_options",
]
