"""Checks before the Job starts that thorough profiling has engines to measure (planner.md, b.4)."""

from dynamo_shared.api.gpus import words as gpu_words
from dynamo_shared.runtime.settings.planner import Rapid

from dynamo_profiler.profiling.models import known_model
from dynamo_profiler.profiling.objective import objective_of
from dynamo_profiler.profiling.results import ProfilingFailed, ProfilingRequest

_USABLE = 0.9
"""Share of a GPU's memory that engines use. Weights and at least a small KV cache must fit in it."""
_MIB = 1024 * 1024


def require_candidates(request: ProfilingRequest, settings: Rapid) -> None:
    """Raise ProfilingFailed if no engines of both roles hold the model. A model of unknown size counts as fitting.

    Tensor-parallel engines stay within a node; expert-parallel engines may span nodes.
    """
    objective = objective_of(request)
    model = known_model(objective.model, settings)
    # Each role leaves at least one GPU to the other.
    sizes = [1 << power for power in range(objective.total_gpus.bit_length()) if 1 << power < objective.total_gpus]
    fitting = [size for size in sizes if _fits(size, model.weights_bytes, objective.vram_mib)]
    least = min(fitting, default=0)
    most = objective.total_gpus - least
    if not any(size <= most and (model.experts or size <= objective.gpus_per_node) for size in fitting):
        weights = "" if model.weights_bytes is None else f" ({model.weights_bytes / 1024**3:.1f} GiB of weights)"
        raise ProfilingFailed(
            "NoCandidates",
            f"no prefill and decode engines of {model.name}{weights} fit {gpu_words(objective.total_gpus)} {objective.gpu_sku}"
            f"{'' if objective.vram_mib is None else f' of {objective.vram_mib:g} MiB'}; thorough profiling measures both: "
            "set more or larger GPUs in spec.hardware, or use a quantized model",
        )


def _fits(gpus: int, weights: int | None, vram_mib: float | None) -> bool:
    return weights is None or vram_mib is None or weights < gpus * vram_mib * _MIB * _USABLE
