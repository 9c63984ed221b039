"""Engines that thorough profiling would measure (planner.md, b.4): known beforehand, so that a hopeless Job never starts."""

from __future__ import annotations

from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.gpus import words as gpu_words
from dynamo_shared.runtime.settings.planner import Rapid

from dynamo_profiler.profiling.models import known_model
from dynamo_profiler.profiling.objective import objective_of
from dynamo_profiler.profiling.results import ProfilingFailed, ProfilingRequest

_USABLE = 0.9
"""Share of a GPU's memory that engines take; weights and at least some KV cache must be in it."""
_MIB = 1024 * 1024


def thorough_candidates(request: ProfilingRequest, settings: Rapid) -> list[EngineLayout]:
    """All engines, of either role, that hold the model; ProfilingFailed where no engine does.

    A model of unknown size is not held against the request: then all engines count.
    """
    objective = objective_of(request)
    model = known_model(objective.model, settings)
    # Each side leaves at least one GPU to the other.
    sizes = [1 << power for power in range(objective.total_gpus.bit_length()) if 1 << power < objective.total_gpus]
    fitting = [size for size in sizes if _fits(size, model.weights_bytes, objective.vram_mib)]
    least = min(fitting, default=0)
    # The other side needs its share of the GPUs.
    fitting = [size for size in fitting if size + least <= objective.total_gpus]
    engines = [
        engine for size in fitting for engine in _of_size(size, experts=model.experts, node=objective.gpus_per_node)
    ]
    if not engines:
        weights = "" if model.weights_bytes is None else f" ({model.weights_bytes / 1024**3:.1f} GiB of weights)"
        raise ProfilingFailed(
            "NoCandidates",
            f"no prefill and decode engines of {model.name}{weights} fit {gpu_words(objective.total_gpus)} {objective.gpu_sku}"
            f"{'' if objective.vram_mib is None else f' of {objective.vram_mib:g} MiB'}; thorough profiling measures both: "
            "give more or larger GPUs in spec.hardware, or a quantized model",
        )
    return engines


def _fits(gpus: int, weights: int | None, vram_mib: float | None) -> bool:
    return weights is None or vram_mib is None or weights < gpus * vram_mib * _MIB * _USABLE


def _of_size(gpus: int, *, experts: bool, node: int) -> list[EngineLayout]:
    """Tensor parallel within a node; experts also spread over ranks, with tensor or data parallel attention."""
    if not experts:
        return [EngineLayout(tp=gpus, gpus=gpus)] if gpus <= node else []
    made = [EngineLayout(tp=gpus, moe_tp=gpus, gpus=gpus)] if gpus <= node else []
    if gpus > 1:
        if gpus <= node:
            made.append(EngineLayout(tp=gpus, moe_ep=gpus, gpus=gpus))
        made.append(EngineLayout(dp=gpus, moe_ep=gpus, gpus=gpus))
    return made
