"""The simulated graph: its pools and engines, and the latency targets."""

from dataclasses import dataclass, field
from typing import Self

from dynamo_shared.api.contracts.planner import MetricsSource, Mode, PlannerConfig

from dynamo_planner.core.observation import EngineCapabilities, Pool

DEFAULT_CHUNK = 8192
DEFAULT_SEQUENCES = 1024
DEFAULT_KV = 1_000_000
DEFAULT_TRANSFER = 2e-6
"""Seconds to move the KV cache of a token: 64 KiB (Llama-3.1-8B in FP8) at some 32 GB/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A graph to simulate. Seconds, tokens and GPUs."""

    disaggregated: bool = True
    """two pools; otherwise one aggregated pool, `Pool.DECODE`"""
    ttft: float = 0.5
    itl: float = 0.05
    startup: float = 0.0
    """from the request for a replica until its worker is ready"""
    replicas: dict[Pool, int] = field(default_factory=lambda: {Pool.PREFILL: 1, Pool.DECODE: 1})
    """at the beginning"""
    gpus: dict[Pool, int] = field(default_factory=lambda: {Pool.PREFILL: 1, Pool.DECODE: 1})
    """of one engine"""
    unknown_gpus: frozenset[Pool] = frozenset()
    """pools whose GPUs the planner does not know: no budget limits them, and GPU-hours count the assumed ones"""
    watts: dict[Pool, int] = field(default_factory=dict)
    """power limit of these, if known; an unknown limit is not constrained by a power budget"""
    cluster_gpus: int | None = None
    """total number; further replicas are pending. None: unlimited"""
    max_num_batched_tokens: int = DEFAULT_CHUNK
    max_num_seqs: int = DEFAULT_SEQUENCES
    max_kv_tokens: int = DEFAULT_KV
    transfer: float = DEFAULT_TRANSFER
    """seconds to move the KV cache of one token from prefill to decode"""
    reports_hits: bool = False
    """whether the traffic has the KV-cache hit rate: only the metrics of routers have it"""
    one_after_another: bool = False
    """the times of prompts and decode tokens of an iteration add up, and a completed prompt gets its first token from
    the decode part, as in Dynamo's mocker; otherwise, both share one read of the weights, like real engines
    """

    @classmethod
    def of(cls, config: PlannerConfig, *, startup: float = 0.0, max_kv_tokens: int | None = None) -> Self:
        """The graph for a planner's configuration. Modes of a single pool have no other pool to simulate, so they
        become disagg.
        """
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
            reports_hits=config.throughput_metrics_source is MetricsSource.ROUTER,
        )

    def capabilities(self) -> dict[Pool, EngineCapabilities]:
        """Capabilities, in the form of model cards."""
        return {
            pool: EngineCapabilities(
                num_gpu=None if pool in self.unknown_gpus else gpus,
                watts=self.watts.get(pool),
                max_num_batched_tokens=self.max_num_batched_tokens,
                max_num_seqs=self.max_num_seqs,
                context_length=max(131_072, self.max_num_batched_tokens),
                max_kv_tokens=self.max_kv_tokens,
            )
            for pool, gpus in self.gpus.items()
        }
