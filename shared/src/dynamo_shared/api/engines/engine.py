"""How one engine is spread over GPUs."""

from dataclasses import dataclass
from math import isqrt


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

    def nodes(self, gpus_per_node: int) -> int:
        """Nodes that one replica spans: as few as hold its GPUs in equal shares."""
        # Of each pair of divisors one is below the root: there may be a thousand million GPUs.
        low = [each for each in range(1, isqrt(self.gpus) + 1) if self.gpus % each == 0]
        shares = (*low, *(self.gpus // each for each in low))
        return self.gpus // max(each for each in shares if each <= gpus_per_node)
