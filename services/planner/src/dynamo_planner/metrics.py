"""Metrics of the planner for each graph, with the names of Dynamo's planner (planner.md, section a.11)."""

from collections.abc import Callable, Mapping
from math import isfinite
from time import monotonic

from dynamo_shared.runtime.metrics import ServiceMetrics
from prometheus_client import CollectorRegistry

GRAPH = ("namespace", "graph")

#: Gauges by name, with their help, and the key of the tick's number that they show.
GAUGES: Mapping[str, tuple[str, str]] = {
    "dynamo_planner_num_prefill_replicas": ("Prefill workers that are ready.", "ready.prefill"),
    "dynamo_planner_num_decode_replicas": ("Decode workers that are ready, or those of the one pool.", "ready.decode"),
    "dynamo_planner_observed_requests_per_second": ("Requests a second.", "observed.requests_per_second"),
    "dynamo_planner_observed_ttft_ms": ("Mean time to first token, ms.", "observed.ttft_ms"),
    "dynamo_planner_observed_itl_ms": ("Mean time between tokens, ms.", "observed.itl_ms"),
    "dynamo_planner_observed_input_sequence_tokens": ("Mean tokens of prompts.", "observed.isl"),
    "dynamo_planner_observed_output_sequence_tokens": ("Mean tokens of answers.", "observed.osl"),
    "dynamo_planner_predicted_requests_per_second": ("Predicted requests a second.", "predicted.requests_per_second"),
    "dynamo_planner_predicted_input_sequence_tokens": ("Predicted tokens of prompts.", "predicted.isl"),
    "dynamo_planner_predicted_output_sequence_tokens": ("Predicted tokens of answers.", "predicted.osl"),
    "dynamo_planner_predicted_num_prefill_replicas": ("Desired prefill workers.", "desired.prefill"),
    "dynamo_planner_predicted_num_decode_replicas": ("Desired decode workers.", "desired.decode"),
    "dynamo_planner_sla_target_ttft_ms": ("Desired time to first token, ms.", "target.ttft_ms"),
    "dynamo_planner_sla_target_itl_ms": ("Desired time between tokens, ms.", "target.itl_ms"),
    "dynamo_planner_estimated_ttft_ms": ("Estimated time to first token, ms.", "predicted.estimated_ttft_ms"),
    "dynamo_planner_estimated_itl_ms": ("Estimated time between tokens, ms.", "predicted.estimated_itl_ms"),
    "dynamo_planner_engine_prefill_capacity_requests_per_second": (
        "Requests a second of one prefill engine.",
        "predicted.prefill_capacity_requests_per_second",
    ),
    "dynamo_planner_engine_decode_capacity_requests_per_second": (
        "Requests a second of one decode engine, or of one engine that does both.",
        "predicted.decode_capacity_requests_per_second",
    ),
}
OBSERVED = "observed."
"""Prefix of the keys of observed traffic; a tick that observed traffic has its rate."""
READY = "ready."
"""Prefix of the keys of ready workers, which every tick counts."""
TARGET = "target."
"""Prefix of the keys of what the graph asks for."""


#: The number of a tick that is integrated to GPU-hours: GPUs of the ready workers.
READY_GPUS = "ready.gpus"
_HOUR = 3600.0


class PlanMetrics(ServiceMetrics):
    """Observations, predictions and decisions, by graph. `clock` counts seconds."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(registry)
        self._clock = clock
        #: Time of the last tick in seconds and its ready GPUs, for each graph whose GPUs were known.
        self._held: dict[tuple[str, str], tuple[float, float]] = {}
        self._gpu_hours = self._gauge(
            "dynamo_planner_gpu_hours", "GPU-hours of ready workers since planning began.", GRAPH
        )
        self._gauges = {name: self._gauge(name, text, GRAPH) for name, (text, _) in GAUGES.items()}
        self._ticks = self._counter("dynamo_planner_ticks", "Decisions of the policy, by outcome.", (*GRAPH, "outcome"))
        self._missing = self._gauge(
            "dynamo_planner_input_missing",
            "1 while planning lacks a required input, by reason; a missing input does not mean zero demand.",
            (*GRAPH, "input", "why"),
        )
        self._reported: dict[tuple[str, str], set[tuple[str, str]]] = {}

    def tick(
        self, graph: tuple[str, str], numbers: Mapping[str, float], missing: Mapping[str, str], outcome: str
    ) -> None:
        """Update the gauges for a tick of a graph (namespace, name). Gauges of unknown traffic and workers are
        removed, because the last values are outdated.
        """
        asked = f"{OBSERVED}requests_per_second" in numbers or "traffic" in missing
        for name, (_, key) in GAUGES.items():
            value = numbers.get(key)
            if value is not None and isfinite(value):
                self._gauges[name].labels(*graph).set(value)
            elif key.startswith(READY) or (asked and key.startswith(OBSERVED)):
                self._gauges[name].remove(*graph)
        self._count_gpus(graph, numbers.get(READY_GPUS))
        self._ticks.labels(*graph, outcome).inc()
        before, now = self._reported.get(graph, set()), set(missing.items())
        for gone in before - now:
            self._missing.remove(*graph, *gone)
        for current in now:
            self._missing.labels(*graph, *current).set(1)
        self._reported[graph] = now

    def failed(self, graph: tuple[str, str], outcome: str) -> None:
        """Planning fails: only the targets of the graph are still true."""
        self.tick(graph, {}, {}, outcome)
        for name, (_, key) in GAUGES.items():
            if not key.startswith(TARGET):
                self._gauges[name].remove(*graph)

    def _count_gpus(self, graph: tuple[str, str], gpus: float | None) -> None:
        """Add the GPU time since the last tick. If the GPUs are unknown, nothing is added."""
        now, before = self._clock(), self._held.pop(graph, None)
        if before is not None:
            since, held = before
            self._gpu_hours.labels(*graph).inc(held * (now - since) / _HOUR)
        if gpus is not None:
            self._held[graph] = now, gpus

    def forget(self, graph: tuple[str, str]) -> None:
        """The graph is no longer planned."""
        self._reported.pop(graph, None)
        self._held.pop(graph, None)
        for metric in self._all():
            metric.remove_by_labels(_labels(graph))


def _labels(graph: tuple[str, str]) -> dict[str, str]:
    return dict(zip(GRAPH, graph, strict=True))
