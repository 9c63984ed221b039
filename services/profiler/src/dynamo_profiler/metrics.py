"""Metrics of the profiler. Their names are older than the service."""

from dynamo_shared.runtime.metrics import ServiceMetrics
from prometheus_client import CollectorRegistry


class ProfilingMetrics(ServiceMetrics):
    """Metrics of rapid profiling: its worker processes, and the results of sweeps for requests."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.workers = self._gauge("dynamo_planner_profiling_workers", "Running worker processes of profiling.")
        self.memory = self._gauge("dynamo_planner_profiling_memory_bytes", "Resident memory of these processes.")
        self.sweeps = self._counter(
            "dynamo_planner_profiling_sweeps",
            "Sweeps and curves that requests needed, by outcome.",
            ("outcome", "cached"),
        )
        self.seconds = self._histogram(
            "dynamo_planner_profiling_sweep_seconds",
            "Seconds that a sweep took in its process.",
            buckets=(0.5, 1, 2, 5, 10, 20, 40, 80, 160, 320),
        )
