"""What a decision may not pass: replicas that each pool keeps, the GPU budget, and how far one step goes."""

from collections.abc import Mapping

from dynamo_shared.api.contracts.planner import Mode, PlannerConfig
from dynamo_shared.api.gpu_budget import clamp_pair, clamp_single
from dynamo_shared.api.gpus import words as gpu_words

from dynamo_planner.core.observing import EngineCapabilities, Pool, PoolCounts

Replicas = Mapping[Pool, int]


def planned_pools(mode: Mode) -> tuple[Pool, ...]:
    """Pools that a mode plans; the one pool of aggregated serving is `DECODE`."""
    match mode:
        case Mode.DISAGG:
            return (Pool.PREFILL, Pool.DECODE)
        case Mode.PREFILL:
            return (Pool.PREFILL,)
        case Mode.DECODE | Mode.AGG:
            return (Pool.DECODE,)


class Limits:
    """The limits of a configuration."""

    def __init__(self, config: PlannerConfig) -> None:
        self._config = config
        self.pools = planned_pools(config.mode)

    def least(self, pool: Pool) -> int:
        """Replicas that a pool keeps."""
        return self._config.least_replicas(pool)

    def step(self, desired: Replicas, current: Replicas) -> dict[Pool, int]:
        """Not further from what there is than `max_throughput_scaling_replicas`, where the configuration says so itself:
        the release that is followed has no such limit, and the default is that of newer ones.
        """
        if "max_throughput_scaling_replicas" not in self._config.model_fields_set:
            return dict(desired)
        far = self._config.max_throughput_scaling_replicas
        return {
            pool: min(max(count, current[pool] - far), current[pool] + far) if pool in current else count
            for pool, count in desired.items()
        }

    def bounded(self, desired: Replicas, able: Mapping[Pool, EngineCapabilities]) -> dict[Pool, int]:
        """At least what each pool keeps, and within the budget; the budget is last, since there are no more GPUs."""
        config = self._config
        kept = {pool: max(count, self.least(pool)) for pool, count in desired.items()}
        gpus = {pool: self.gpus(pool, able) for pool in self.pools}
        if config.mode is Mode.DISAGG:
            pair = clamp_pair(
                kept[Pool.PREFILL],
                kept[Pool.DECODE],
                gpus[Pool.PREFILL],
                gpus[Pool.DECODE],
                min_gpus=config.min_gpu_budget,
                max_gpus=config.max_gpu_budget,
                min_endpoint=self.least(Pool.PREFILL),
                min_decode=self.least(Pool.DECODE),
            )
            return {Pool.PREFILL: pair.prefill, Pool.DECODE: pair.decode}
        return {
            pool: clamp_single(
                count,
                gpus[pool],
                min_gpus=config.min_gpu_budget,
                max_gpus=config.max_gpu_budget,
                min_endpoint=self.least(pool),
            )
            for pool, count in kept.items()
        }

    def unmoved(self, desired: Replicas, current: Replicas, able: Mapping[Pool, EngineCapabilities]) -> dict[Pool, int]:
        """Like `bounded`, but where the budget is too low for all, no pool gives a replica that it still asks for to another.

        What the budget has left goes to pools that grow, in their order. Where pools have more than the budget, as `bounded`.
        """
        final = self.bounded(desired, able)
        stay = {pool: min(desired[pool], current[pool]) for pool in desired}
        if all(final[pool] >= count for pool, count in stay.items()) or self.bounded(stay, able) != stay:
            return final
        for pool, most in desired.items():
            for count in range(stay[pool] + 1, most + 1):
                more = stay | {pool: count}
                if self.bounded(more, able) != more:
                    break
                stay = more
        return stay

    def too_low(self, able: Mapping[Pool, EngineCapabilities]) -> str:
        """That the budget is too low for what each pool keeps, so that all of them go to 0; empty where it is not."""
        least = {pool: self.least(pool) for pool in self.pools}
        bounded = self.bounded(least, able)
        if all(bounded[pool] >= count for pool, count in least.items()):
            return ""
        kept = " and ".join(f"{count} {pool}" for pool, count in least.items())
        gpus = sum(count * (self.gpus(pool, able) or 0) for pool, count in least.items())
        return (
            f"max_gpu_budget is {self._config.max_gpu_budget}, and {kept} (min_endpoint) need {gpu_words(gpus)}: "
            "no replicas are kept"
        )

    def lifted(
        self, workers: Mapping[Pool, PoolCounts], able: Mapping[Pool, EngineCapabilities]
    ) -> dict[Pool, int] | None:
        """Replicas where a pool is asked for fewer than it keeps; None where none is, where that is not known, and where the
        budget has no more GPUs.

        For ticks that decide nothing, as while metrics are missing: what pools keep follows from no metric.
        """
        asked = {pool: workers[pool].expected for pool in self.pools if pool in workers}
        known = {pool: count for pool, count in asked.items() if count is not None}
        if len(known) < len(self.pools) or all(count >= self.least(pool) for pool, count in known.items()):
            return None
        final = self.bounded(known, able)
        return final if all(final[pool] >= count for pool, count in known.items()) and final != known else None

    def gpus(self, pool: Pool, able: Mapping[Pool, EngineCapabilities]) -> int | None:
        """GPUs of a replica; None where nothing says it."""
        return self._config.engine_gpus(pool) or (able[pool].num_gpu if pool in able else None)
