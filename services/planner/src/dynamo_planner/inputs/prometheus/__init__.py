"""Traffic of a graph, from Prometheus (planner.md, section a.3)."""

from dynamo_planner.inputs.prometheus.client import PrometheusClient, PrometheusError, Sample, Track
from dynamo_planner.inputs.prometheus.options import PrometheusOptions, prometheus_options
from dynamo_planner.inputs.prometheus.traffic import TrafficReader

__all__ = [
    "PrometheusClient",
    "PrometheusError",
    "PrometheusOptions",
    "Sample",
    "Track",
    "TrafficReader",
    "prometheus_options",
]
