"""A request's objective with defaults: numbers for sweeps and picking (planner.md, b.2 and b.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dynamo_shared.api.contracts.planner import Mode, PlannerConfig
from dynamo_shared.api.engines import BACKENDS
from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec, OptimizationType, SlaSpec
from pydantic import ValidationError

from dynamo_profiler.profiling.gpus import vram_of
from dynamo_profiler.profiling.results import ProfilingFailed, ProfilingRequest

DISAGG, AGG = "disagg", "agg"
DEFAULT_TTFT_MS, DEFAULT_ITL_MS = 2000.0, 30.0
DEFAULT_ISL, DEFAULT_OSL = 4000, 1000
#: Without latencies to keep, sweeps try everything: no engine is slower than this. Milliseconds.
NO_LIMIT_MS = 1e7
_PROMPT_SHARE = 0.25
"""Share of TTFT in the latency of the whole answer, if the engines of both roles are chosen or scaled separately."""


class Picking(StrEnum):
    """How to choose a deployment among those that keep the latencies."""

    DEFAULT = "default"
    """most tokens per second of all GPUs"""
    LOAD_MATCH = "load_match"
    """fewest GPUs that serve the stated load"""
    AUTOSCALE = "autoscale"
    """one engine of each role, the best one: the planner adds others"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingObjective:
    """The objective in milliseconds, tokens, requests and seconds."""

    model: str
    gpu_sku: str
    vram_mib: float | None
    backends: tuple[str, ...]
    servings: tuple[str, ...]
    total_gpus: int
    gpus_per_node: int
    isl: int
    osl: int
    ttft_ms: float
    itl_ms: float
    latency_ms: float | None
    """latency to the end of the answer; if set, it replaces the other two"""
    tune_for: OptimizationType | None
    """what to favour if no latencies are given"""
    request_rate: float | None
    concurrency: float | None
    picking: Picking
    planner: PlannerConfig | None

    def times_of_roles(self) -> tuple[float, float]:
        """TTFT and ITL of the separate roles, milliseconds. TTFT is a quarter of the latency of the whole answer."""
        if self.latency_ms is None:
            return self.ttft_ms, self.itl_ms
        return split(self.latency_ms, self.osl)

    def least(self, role: str) -> int:
        """Engines of a role that a planner must keep, at least one."""
        return 1 if self.planner is None else max(1, self.planner.least_replicas(role))

    def endpoints(self, engines: Mapping[str, EngineLayout]) -> dict[str, int]:
        """Engines by role that a planner begins with: the number that it must keep, or the number that fits."""
        least = {role: self.least(role) for role in engines}
        if sum(engine.gpus * least[role] for role, engine in engines.items()) > self.total_gpus:
            fits = self.total_gpus // sum(engine.gpus for engine in engines.values())
            return {role: max(1, min(count, fits)) for role, count in least.items()}
        return least

    def meets(self, *, ttft_ms: float, itl_ms: float, latency_ms: float) -> bool:
        """Whether the latencies are kept; always true if none are requested."""
        if self.tune_for is not None:
            return True
        if self.latency_ms is not None:
            return latency_ms <= self.latency_ms
        return ttft_ms <= self.ttft_ms and itl_ms <= self.itl_ms

    def excess(self, *, ttft_ms: float, itl_ms: float, latency_ms: float) -> tuple[float, ...]:
        """Factors by which latencies exceed the objective, the worst first; 1 for a latency that is kept."""
        if self.latency_ms is not None:
            return (max(1.0, latency_ms / self.latency_ms),)
        factors = (max(1.0, ttft_ms / self.ttft_ms), max(1.0, itl_ms / self.itl_ms))
        return tuple(sorted(factors, reverse=True))

    def words(self) -> str:
        """The objective as text."""
        load = ""
        if self.request_rate is not None:
            load = f" at {self.request_rate:g} requests/s"
        elif self.concurrency is not None:
            load = f" with {self.concurrency:g} concurrent requests"
        if self.tune_for is not None:
            return f"{self.tune_for}{load}"
        if self.latency_ms is not None:
            return f"e2eLatency {self.latency_ms:g} ms{load}"
        return f"ttft {self.ttft_ms:g} ms, itl {self.itl_ms:g} ms{load}"


def split(latency_ms: float, osl: int) -> tuple[float, float]:
    """TTFT and ITL in milliseconds that add up to the latency of an answer with `osl` tokens."""
    return latency_ms * _PROMPT_SHARE, latency_ms * (1 - _PROMPT_SHARE) / max(1, osl - 1)


def objective_of(request: ProfilingRequest) -> ServingObjective:
    """The objective of a request with complete hardware. Raises ProfilingFailed if it contradicts itself."""
    spec = request.spec
    hardware, workload = spec.hardware, spec.workload
    if hardware is None or not hardware.gpu_sku or not hardware.total_gpus:
        raise ProfilingFailed(
            "HardwareUnknown", "spec.hardware: gpuSku and totalGpus are not known; set them, and numGpusPerNode"
        )
    rate = workload.request_rate if workload else None
    concurrency = workload.concurrency if workload else None
    if rate is not None and concurrency is not None:
        raise ProfilingFailed(
            "InvalidWorkload",
            "spec.workload: concurrency and requestRate are both set, but each implies the other; remove one",
        )
    for field, tokens in (("isl", workload.isl), ("osl", workload.osl)) if workload else ():
        if tokens < 1:
            raise ProfilingFailed("InvalidWorkload", f"spec.workload.{field}: {tokens} tokens; must be at least 1")
    planner = planner_config(spec)
    ttft, itl, latency, tune_for = _times(spec.sla)
    per_node = hardware.num_gpus_per_node or min(hardware.total_gpus, 8)
    return ServingObjective(
        model=spec.model,
        gpu_sku=hardware.gpu_sku,
        vram_mib=vram_of(hardware.gpu_sku, hardware.vram_mb),
        backends=tuple(BACKENDS) if spec.backend in ("", "auto") else (spec.backend,),
        servings=_servings(planner),
        total_gpus=_budget(hardware.total_gpus, planner),
        gpus_per_node=per_node,
        isl=workload.isl if workload else DEFAULT_ISL,
        osl=workload.osl if workload else DEFAULT_OSL,
        ttft_ms=ttft,
        itl_ms=itl,
        latency_ms=latency,
        tune_for=tune_for,
        request_rate=rate,
        concurrency=concurrency,
        picking=_picking(planner, rate, concurrency),
        planner=planner,
    )


def planner_config(spec: DynamoGraphDeploymentRequestSpec) -> PlannerConfig | None:
    """`features.planner`, typed; None if the graph gets no planner."""
    given: dict[str, Any] | None = spec.features.planner if spec.features else None
    if given is None:
        return None
    try:
        config = PlannerConfig.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        raise ProfilingFailed("InvalidPlannerConfig", f"spec.features.planner.{at}: {first['msg']}") from error
    for path, message in config.problems():
        raise ProfilingFailed("InvalidPlannerConfig", f"spec.features.planner.{'.'.join(map(str, path))}: {message}")
    return config


def _times(sla: SlaSpec | None) -> tuple[float, float, float | None, OptimizationType | None]:
    """TTFT, ITL, the latency that replaces them, and what to favour instead of latencies (planner.md, b.2)."""
    if sla is None:
        return DEFAULT_TTFT_MS, DEFAULT_ITL_MS, None, None
    if sla.e2e_latency is not None:
        if sla.ttft is not None or sla.itl is not None:
            raise ProfilingFailed(
                "InvalidObjective",
                "spec.sla: e2eLatency replaces ttft and itl; remove e2eLatency, or ttft and itl",
            )
        return DEFAULT_TTFT_MS, DEFAULT_ITL_MS, sla.e2e_latency, None
    if sla.ttft is None and sla.itl is None and sla.optimization_type is not None:
        return NO_LIMIT_MS, NO_LIMIT_MS, None, sla.optimization_type
    return sla.ttft or DEFAULT_TTFT_MS, sla.itl or DEFAULT_ITL_MS, None, None


def _servings(planner: PlannerConfig | None) -> tuple[str, ...]:
    if planner is None:
        return (DISAGG, AGG)
    return (AGG,) if planner.mode is Mode.AGG else (DISAGG,)


def _budget(total_gpus: int, planner: PlannerConfig | None) -> int:
    """GPUs of the graph. An explicit lower budget of the planner wins; its default does not count."""
    if planner is None or "max_gpu_budget" not in planner.model_fields_set or planner.max_gpu_budget < 1:
        return total_gpus
    return min(total_gpus, planner.max_gpu_budget)


def _picking(planner: PlannerConfig | None, rate: float | None, concurrency: float | None) -> Picking:
    if planner is not None:
        return Picking.AUTOSCALE
    return Picking.DEFAULT if rate is None and concurrency is None else Picking.LOAD_MATCH
