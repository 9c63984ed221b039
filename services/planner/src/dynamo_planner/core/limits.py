"""What a decision may not pass: replicas that each pool keeps, budgets of GPUs and of power, and how far one step goes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dynamo_shared.api.contracts.planner import Mode, PlannerConfig
from dynamo_shared.api.gpu_budget import UNBOUNDED, clamp_pair, clamp_single
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


def watt_words(watts: int) -> str:
    """Power, as messages say it."""
    return f"{watts} W"


@dataclass(frozen=True, slots=True)
class _Budget:
    """What replicas of all pools may take together: `each` is that of one replica, None where it is not known."""

    field: str
    words: Callable[[int], str]
    each: Mapping[Pool, int | None]
    most: int
    least: int = UNBOUNDED

    def taken(self, replicas: Replicas) -> int:
        return sum(count * (self.each[pool] or 0) for pool, count in replicas.items())

    def exceeded(self, replicas: Replicas) -> bool:
        return 0 <= self.most < self.taken(replicas)


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
        """At least what each pool keeps, and within the budgets: these are last, since there is no more than they have."""
        bounded = {pool: max(count, self.least(pool)) for pool, count in desired.items()}
        for budget in self._budgets(able):
            bounded = self._within(bounded, budget)
        return bounded

    def _budgets(self, able: Mapping[Pool, EngineCapabilities]) -> tuple[_Budget, ...]:
        config = self._config
        gpus = {pool: self.gpus(pool, able) for pool in self.pools}
        return (
            _Budget("max_gpu_budget", gpu_words, gpus, config.max_gpu_budget, config.min_gpu_budget),
            self._power(able),
        )

    def _power(self, able: Mapping[Pool, EngineCapabilities]) -> _Budget:
        most = UNBOUNDED if self._config.power_limit is None else self._config.power_limit
        watts = {pool: able[pool].watts if pool in able else None for pool in self.pools}
        return _Budget("total_gpu_power_limit", watt_words, watts, most)

    def _within(self, replicas: Replicas, budget: _Budget) -> dict[Pool, int]:
        if self._config.mode is Mode.DISAGG:
            pair = clamp_pair(
                replicas[Pool.PREFILL],
                replicas[Pool.DECODE],
                budget.each[Pool.PREFILL],
                budget.each[Pool.DECODE],
                min_gpus=budget.least,
                max_gpus=budget.most,
                min_endpoint=self.least(Pool.PREFILL),
                min_decode=self.least(Pool.DECODE),
            )
            return {Pool.PREFILL: pair.prefill, Pool.DECODE: pair.decode}
        return {
            pool: clamp_single(
                count, budget.each[pool], min_gpus=budget.least, max_gpus=budget.most, min_endpoint=self.least(pool)
            )
            for pool, count in replicas.items()
        }

    def in_turn(self, desired: Replicas, drawing: Replicas, able: Mapping[Pool, EngineCapabilities]) -> dict[Pool, int]:
        """Pools that grow wait for those that shrink, where both at once would draw more than the limit of power.

        `drawing` are replicas that draw power now, or will soon. GPUs need no such wait: those that another replica still has
        are given to no pod.
        """
        peak = {pool: max(count, drawing.get(pool, 0)) for pool, count in desired.items()}
        if peak == desired or not self._power(able).exceeded(peak):
            return dict(desired)
        return {pool: min(count, drawing.get(pool, 0)) for pool, count in desired.items()}

    def beyond(self, replicas: Replicas, able: Mapping[Pool, EngineCapabilities]) -> str:
        """Which budgets are too low for replicas, in words; empty where none is."""
        over = (each for each in self._budgets(able) if each.exceeded(replicas))
        return " and ".join(f"{each.field} is {each.most}" for each in over)

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
        for budget in self._budgets(able):
            if self._within(least, budget) != least and budget.exceeded(least):
                kept = " and ".join(f"{count} {pool}" for pool, count in least.items())
                need = budget.words(budget.taken(least))
                return f"{budget.field} is {budget.most}, and {kept} (min_endpoint) need {need}: no replicas are kept"
        return ""

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
