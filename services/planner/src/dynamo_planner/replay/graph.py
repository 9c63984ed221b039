"""What is simulated: the graph's pools and engines, and what a request may take."""

from dataclasses import dataclass, field
from typing import Self

from dynamo_shared.api.contracts.planner import Mode, PlannerConfig

from dynamo_planner.core.observing import EngineCapabilities, Pool

DEFAULT_CHUNK = 8192
DEFAULT_SEQUENCES = 1024
DEFAULT_KV = 1_000_000
DEFAULT_TRANSFER = 2e-6
"""Seconds to move the KV cache of a token: 64 KiB (Llama-3.1-8B in FP8) at some 32 GB/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A graph to simulate. Seconds, tokens and GPUs."""

    disaggregated: bool = True
    """two pools; otherwise the one that does both, `Pool.DECODE`"""
    ttft: float = 0.5
    itl: float = 0.05
    startup: float = 0.0
    """from a replica asked for to a worker that serves"""
    replicas: dict[Pool, int] = field(default_factory=lambda: {Pool.PREFILL: 1, Pool.DECODE: 1})
    """at the beginning"""
    gpus: dict[Pool, int] = field(default_factory=lambda: {Pool.PREFILL: 1, Pool.DECODE: 1})
    """of one engine"""
    watts: dict[Pool, int] = field(default_factory=dict)
    """that these may draw, where it is known; no budget of power holds back others"""
    cluster_gpus: int | None = None
    """that there are; replicas beyond wait as pending. None: enough"""
    max_num_batched_tokens: int = DEFAULT_CHUNK
    max_num_seqs: int = DEFAULT_SEQUENCES
    max_kv_tokens: int = DEFAULT_KV
    transfer: float = DEFAULT_TRANSFER
    """seconds to move the KV cache of one token from prefill to decode"""
    one_after_another: bool = False
    """prompts and tokens of an iteration take their times one after another, and a prompt that ends gets its first token from the
    tokens' part, as Dynamo's mocker has it; else they share one reading of the weights, as engines do"""

    @classmethod
    def of(cls, config: PlannerConfig, *, startup: float = 0.0, max_kv_tokens: int | None = None) -> Self:
        """The graph that a planner's configuration is for. Modes of one pool alone have no other pool to simulate: disagg."""
        disaggregated = config.mode is not Mode.AGG
        pools = (Pool.PREFILL, Pool.DECODE) if disaggregated else (Pool.DECODE,)
        return cls(
            disaggregated=disaggregated,
            ttft=config.ttft_ms / 1000,
            itl=config.itl_ms / 1000,
            startup=startup,
            replicas={pool: max(1, config.least_replicas(pool)) for pool in pools},
            gpus={pool: config.engine_gpus(pool) or 1 for pool in pools},
            max_kv_tokens=max_kv_tokens or DEFAULT_KV,
        )

    def capabilities(self) -> dict[Pool, EngineCapabilities]:
        """As model cards state them."""
        return {
            pool: EngineCapabilities(
                num_gpu=gpus,
                watts=self.watts.get(pool),
                max_num_batched_tokens=self.max_num_batched_tokens,
                max_num_seqs=self.max_num_seqs,
                context_length=max(131_072, self.max_num_batched_tokens),
                max_kv_tokens=self.max_kv_tokens,
            )
            for pool, gpus in self.gpus.items()
        }
