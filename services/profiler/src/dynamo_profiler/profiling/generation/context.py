"""The longest sequence that one engine can hold: vLLM does not start if its KV cache is too small for the model's
limit.
"""

from dynamo_shared.api.engines.engine import EngineLayout

from dynamo_profiler.profiling.generation.parts import GenerationInputs

_USABLE = 0.9
"""Share of a GPU's memory that vLLM uses by default."""
_OTHER_USE = 3 * 1024**3
"""Approximate bytes of a GPU for activations, graphs and communication."""
_MARGIN = 0.9
"""Share of the estimate to use: with a slightly short length vLLM serves, with a too long one it does not start."""
_STEP = 256
_MIB = 1024 * 1024


def longest(engine: EngineLayout, parts: GenerationInputs) -> int | None:
    """The necessary limit of a sequence, tokens. None if the model's own limit fits, or if too little is known."""
    model, vram = parts.model, parts.objective.vram_mib
    if model is None or vram is None or None in (model.max_context, model.weights_bytes, model.cache_bytes):
        return None
    made_for, weights, cache = model.max_context or 0, model.weights_bytes or 0, model.cache_bytes or 0
    of_a_gpu = cache / engine.pp / min(engine.tp, model.cache_heads) / (2 if engine.eight_bit_cache else 1)
    free = _USABLE * vram * _MIB - weights / engine.gpus - _OTHER_USE
    held = int(_MARGIN * free / of_a_gpu) // _STEP * _STEP
    if held >= made_for:
        return None
    typical = -(-(parts.objective.isl + parts.objective.osl) // _STEP) * _STEP
    return min(made_for, max(held, typical))
