"""The common setup of the numeric cases: TTFT 500 ms, ITL 50 ms, sensitivity 80, one GPU an engine, 2048 batched tokens."""

from collections.abc import Iterable

from dynamo_planner.core.decision import Effects, Tick
from dynamo_planner.core.observation import (
    EngineCapabilities,
    EngineWork,
    ForwardPass,
    Observation,
    Pool,
    PoolCounts,
    Traffic,
)
from dynamo_planner.core.profile import DecodePoint, PrefillPoint, Profile
from dynamo_planner.core.reference import ReferencePolicy
from dynamo_shared.api.contracts.planner import PlannerConfig

BATCHED = 2048


def config(**fields) -> PlannerConfig:
    return PlannerConfig.model_validate(
        {
            "mode": "disagg",
            "optimization_target": "sla",
            "load_predictor": "constant",
            "throughput_adjustment_interval_seconds": 60,
            "load_adjustment_interval_seconds": 5,
            "prefill_engine_num_gpu": 1,
            "decode_engine_num_gpu": 1,
            **fields,
        }
    )


def load_only(**fields) -> PlannerConfig:
    return config(enable_throughput_scaling=False, enable_load_scaling=True, **fields)


def prefill_iteration(tokens: int, wall: float) -> ForwardPass:
    return ForwardPass(
        pool=Pool.PREFILL,
        worker_id="measured",
        wall_time=wall,
        scheduled=EngineWork(num_prefill_requests=1, sum_prefill_tokens=tokens),
    )


def decode_iteration(requests: int, kv: int, wall: float) -> ForwardPass:
    return ForwardPass(
        pool=Pool.DECODE,
        worker_id="measured",
        wall_time=wall,
        scheduled=EngineWork(num_decode_requests=requests, sum_decode_kv_tokens=kv),
    )


def prefill_line(slope: float, intercept: float, lengths: Iterable[int] = range(500, 2501, 500)) -> Profile:
    return Profile(
        prefill=tuple(PrefillPoint(isl=tokens, ttft=(slope * tokens + intercept) * 1000) for tokens in lengths)
    )


PM = prefill_line(0.001, 0.002)
DM = Profile(
    decode=tuple(
        DecodePoint(context=1000, kv_tokens=n * 1000, itl=(1e-5 * n * 1000 + 0.001) * 1000) for n in (5, 10, 20, 30, 40)
    )
)
BOTH = PM.joined(DM)


def prefill_queues(*tokens: int) -> tuple[ForwardPass, ...]:
    return tuple(
        ForwardPass(pool=Pool.PREFILL, worker_id=f"p{index}", queued=EngineWork(sum_prefill_tokens=count))
        for index, count in enumerate(tokens)
    )


def decode_caches(*tokens: tuple[int, int] | tuple[int, int, int]) -> tuple[ForwardPass, ...]:
    """Engines by scheduled KV tokens, queued KV tokens and queued prefill tokens."""
    return tuple(
        ForwardPass(
            pool=Pool.DECODE,
            worker_id=f"d{index}",
            scheduled=EngineWork(sum_decode_kv_tokens=each[0]),
            queued=EngineWork(sum_decode_kv_tokens=each[1], sum_prefill_tokens=each[2] if len(each) > 2 else 0),
        )
        for index, each in enumerate(tokens)
    )


def observed(
    now: float = 60.0,
    *,
    traffic: Traffic | None = None,
    passes: tuple[ForwardPass, ...] = (),
    prefill: int = 1,
    decode: int = 1,
    able: EngineCapabilities | None = None,
) -> Observation:
    can = able or EngineCapabilities(num_gpu=1, max_num_batched_tokens=BATCHED)
    return Observation(
        now=now,
        traffic=traffic,
        workers={
            Pool.PREFILL: PoolCounts(ready=prefill, expected=prefill),
            Pool.DECODE: PoolCounts(ready=decode, expected=decode),
        },
        forward_passes=passes,
        capabilities={Pool.PREFILL: can, Pool.DECODE: can},
    )


def requests(
    count: float, *, isl: float = 1000, osl: float = 150, duration: float = 60, hits: float | None = None
) -> Traffic:
    return Traffic(duration=duration, requests=count, isl=isl, osl=osl, kv_hit_rate=hits)


def load_tick(policy: ReferencePolicy, observation: Observation) -> Effects:
    return policy.on_tick(
        Tick(at=observation.now, run_load=True, need_forward_passes=True, traffic_window=None), observation
    )


def throughput_tick(policy: ReferencePolicy, observation: Observation) -> Effects:
    return policy.on_tick(Tick(at=observation.now, run_throughput=True, traffic_window=60.0), observation)


def merged_tick(policy: ReferencePolicy, observation: Observation) -> Effects:
    return policy.on_tick(
        Tick(at=observation.now, run_load=True, run_throughput=True, traffic_window=60.0, need_forward_passes=True),
        observation,
    )
