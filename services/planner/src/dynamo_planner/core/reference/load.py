"""Reactive scaling: follows what each pool's engines report, one replica at a time (planner.md, section a.6)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dynamo_shared.api.contracts.planner import Mode, PlannerConfig, Target

from dynamo_planner.core.limits import Limits
from dynamo_planner.core.observation import EngineCapabilities, ForwardPass, Observation, Pool, PoolCounts
from dynamo_planner.core.reference import latency, thresholds
from dynamo_planner.core.reference.engines import Engines, prefill_share
from dynamo_planner.core.reference.reasons import LoadReason
from dynamo_planner.core.reference.verdicts import Verdict, hold


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """The decision of reactive scaling; `replicas` is None if nothing changes."""

    reason: LoadReason
    replicas: Mapping[Pool, int] | None = None
    verdicts: Mapping[Pool, Verdict] = field(default_factory=dict)
    message: str = ""


class LoadScaler:
    """Reactive scaling of the pools of one configuration."""

    def __init__(self, config: PlannerConfig, engines: Engines, limits: Limits) -> None:
        self._config, self._engines, self._limits = config, engines, limits

    def plan(self, observation: Observation, *, kv_hit_rate: float | None, floors: Mapping[Pool, int]) -> LoadPlan:
        """`floors`: replicas that predictive scaling needs."""
        passes = {
            pool: [each for each in observation.forward_passes if each.pool is pool] for pool in self._limits.pools
        }
        blocked = {pool: _blocked(passes[pool], observation.workers.get(pool)) for pool in self._limits.pools}
        stops = {pool: verdict for pool, verdict in blocked.items() if verdict is not None}
        if any(not verdict.known for verdict in stops.values()):
            first = next(verdict for verdict in stops.values() if not verdict.known)
            return LoadPlan(reason=first.reason, verdicts=stops, message=first.message)
        verdicts = {
            pool: stops.get(pool)
            or self._verdict(
                pool,
                passes[pool],
                observation.workers[pool],
                observation.capabilities.get(pool, EngineCapabilities()),
                kv_hit_rate,
            )
            for pool in self._limits.pools
        }
        return self._limited(verdicts, observation, floors)

    def _verdict(
        self,
        pool: Pool,
        passes: Sequence[ForwardPass],
        counts: PoolCounts,
        able: EngineCapabilities,
        hit_rate: float | None,
    ) -> Verdict:
        asked = _asked(counts)
        verdict = self._of_engines(pool, passes, asked, able, hit_rate)
        if asked == counts.ready or verdict.replicas < asked:
            return verdict
        message = f"{asked - counts.ready} of {asked} replicas wait for free resources in the cluster"
        return hold(asked, LoadReason.SCALING_IN_PROGRESS, message, **verdict.figures)

    def _of_engines(
        self, pool: Pool, passes: Sequence[ForwardPass], replicas: int, able: EngineCapabilities, hit_rate: float | None
    ) -> Verdict:
        config, engines = self._config, self._engines
        aggregated = config.mode is Mode.AGG
        if config.optimization_target is not Target.SLA:
            if pool is Pool.PREFILL:
                return thresholds.prefill_verdict(config, passes, replicas, able)
            return thresholds.decode_verdict(config, passes, replicas, able, prompts=aggregated)
        aim = latency.LatencyTargets(
            ttft=config.ttft_ms / 1000,
            itl=config.itl_ms / 1000,
            sensitivity=config.load_scaling_down_sensitivity / 100,
            share=prefill_share(hit_rate),
        )
        if aggregated:
            return latency.aggregated_verdict(engines.aggregated, passes, replicas, able, aim)
        if pool is Pool.PREFILL:
            return latency.prefill_verdict(engines.prefill, passes, replicas, able, aim)
        return latency.decode_verdict(engines.decode, passes, replicas, able, aim)

    def _limited(
        self, verdicts: Mapping[Pool, Verdict], observation: Observation, floors: Mapping[Pool, int]
    ) -> LoadPlan:
        current = {pool: _asked(observation.workers[pool]) for pool in verdicts}
        reasons = {verdict.reason for verdict in verdicts.values()}
        messages = "; ".join(filter(None, (verdict.message for verdict in verdicts.values())))
        if not any(verdict.known for verdict in verdicts.values()):
            return LoadPlan(reason=next(iter(verdicts.values())).reason, verdicts=verdicts, message=messages)
        desired = {pool: verdict.replicas for pool, verdict in verdicts.items()}
        floored = {pool: max(count, floors.get(pool, 0)) for pool, count in desired.items()}
        final = self._limits.bounded(floored, observation.capabilities)
        if final != current:
            grown = any(final[pool] > current[pool] for pool in final)
            reason = LoadReason.SCALE_UP if grown else LoadReason.SCALE_DOWN
            return LoadPlan(reason=reason, replicas=final, verdicts=verdicts, message=messages)
        if any(desired[pool] < current[pool] <= floored[pool] for pool in desired):
            reason = LoadReason.SCALE_DOWN_CAPPED_BY_THROUGHPUT
        elif LoadReason.SCALE_DOWN_REFUSED_CONSOLIDATION in reasons:
            reason = LoadReason.SCALE_DOWN_REFUSED_CONSOLIDATION
        else:
            unknown = [verdict.reason for verdict in verdicts.values() if not verdict.known]
            reason = unknown[0] if unknown else LoadReason.NO_CHANGE
        if desired != current and reason is LoadReason.NO_CHANGE:
            messages = "; ".join(
                filter(None, (messages, "the desired replicas exceed the limits of min_endpoint or the GPU budget"))
            )
        return LoadPlan(reason=reason, verdicts=verdicts, message=messages)


def _asked(counts: PoolCounts) -> int:
    """Replicas of a pool that serve, plus the pending ones unless others start or stop."""
    waits = counts.ready > 0 < counts.pending and counts.ready + counts.pending == counts.expected
    return counts.ready + counts.pending if waits else counts.ready


def _blocked(passes: Sequence[ForwardPass], counts: PoolCounts | None) -> Verdict | None:
    """Why a pool cannot be judged; None if it can.

    Dynamo's planner checks for rollouts in progress only in single pools, and its Kubernetes connector refuses to act
    for the others until the graph is ready; this policy checks always. Replicas for which the cluster has no room may
    never start: nothing waits for them (dynamo#14251).
    """
    if counts is None:
        return hold(0, LoadReason.WORKER_COUNT_MISMATCH, "the number of workers is unknown")
    if counts.expected not in (None, counts.ready) and _asked(counts) == counts.ready:
        return hold(
            counts.ready,
            LoadReason.SCALING_IN_PROGRESS,
            f"{counts.ready} of {counts.expected} replicas are ready, waiting for the rest",
        )
    if not passes:
        if counts.ready == 0 == counts.expected:
            # Scaled to zero: no engine can report, and a floor may still add replicas.
            return hold(0, LoadReason.NO_CHANGE)
        return hold(counts.ready, LoadReason.NO_FPM_DATA, "no engine reported its iterations")
    ranks: defaultdict[str, set[int]] = defaultdict(set)
    for each in passes:
        ranks[each.worker_id].add(each.dp_rank)
    if len(ranks) != counts.ready or len({frozenset(each) for each in ranks.values()}) != 1:
        return hold(
            counts.ready,
            LoadReason.WORKER_COUNT_MISMATCH,
            f"{counts.ready} workers are ready, but {len(ranks)} report their iterations, or not all of their ranks do",
        )
    return None
