"""The layout of an engine on GPUs."""

from dataclasses import dataclass
from math import isqrt


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLayout:
    """The parallelism and the batch size of an engine. `tp`, `pp` and `dp` are tensor, pipeline and data parallel
    sizes; `moe_tp` and `moe_ep` are those of the experts.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    moe_tp: int = 1
    moe_ep: int = 1
    batch_size: int | None = None
    """concurrent requests in each data-parallel rank; None means the engine's default"""
    eight_bit_cache: bool = False
    """whether the KV cache is in FP8, which doubles its capacity"""
    gpus: int = 1
    """of one replica"""
    requests_per_second: float | None = None
    """of one replica"""

    def nodes(self, gpus_per_node: int) -> int:
        """Nodes of one replica: the smallest number on which its GPUs can be distributed equally."""
        # Of each pair of divisors one is at most the root; users may write any number of GPUs.
        low = [each for each in range(1, isqrt(self.gpus) + 1) if self.gpus % each == 0]
        shares = (*low, *(self.gpus // each for each in low))
        return self.gpus // max(each for each in shares if each <= gpus_per_node)
