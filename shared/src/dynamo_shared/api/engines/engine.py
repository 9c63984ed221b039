"""How one engine is spread over GPUs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLayout:
    """How one engine is spread over GPUs, and how much it takes at once."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    moe_tp: int = 1
    moe_ep: int = 1
    batch_size: int | None = None
    """requests at once in each data-parallel rank; None: as the engine decides"""
    eight_bit_cache: bool = False
    """whether its KV cache is in FP8: twice the sequences fit, where the engine's options say so"""
    gpus: int = 1
    """of one replica"""
    requests_per_second: float | None = None
    """of one replica"""
