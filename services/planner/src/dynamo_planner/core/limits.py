"""Limits of a decision: the minimum replicas of each pool, budgets of GPUs and power, and the size of one step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dynamo_shared.api.contracts.planner import Mode, PlannerConfig
from dynamo_shared.api.gpu_budget import UNBOUNDED, clamp_pair, clamp_single
from dynamo_shared.api.gpus import words as gpu_words

from dynamo_planner.core.observation import EngineCapabilities, Pool, PoolCounts

Replicas = Mapping[Pool, int]


def planned_pools(mode: Mode) -> tuple[Pool, ...]:
    """Pools that a mode plans; the single pool of aggregated serving is `DECODE`."""
    match mode:
        case Mode.DISAGG:
            return (Pool.PREFILL, Pool.DECODE)
        case Mode.PREFILL:
            return (Pool.PREFILL,)
        case Mode.DECODE | Mode.AGG:
            return (Pool.DECODE,)


def watts_text(watts: int) -> str:
    """Power, as messages format it."""
    return f"{watts} W"


@dataclass(frozen=True, slots=True)
class _Budget:
    """A limit for the replicas of all pools together; `each`: the amount of one replica, None if it is not known."""

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
        """The minimum replicas of a pool."""
        return self._config.least_replicas(pool)

    def step(self, desired: Replicas, current: Replicas) -> dict[Pool, int]:
        """At most `max_throughput_scaling_replicas` away from the current replicas, if the configuration sets this
        field: the release that this project follows has no such limit, and the default comes from newer releases.
        """
        if "max_throughput_scaling_replicas" not in self._config.model_fields_set:
            return dict(desired)
        far = self._config.max_throughput_scaling_replicas
        return {
            pool: min(max(count, current[pool] - far), current[pool] + far) if pool in current else count
            for pool, count in desired.items()
        }

    def bounded(self, desired: Replicas, able: Mapping[Pool, EngineCapabilities]) -> dict[Pool, int]:
        """At least each pool's minimum, and within the budgets; the budgets take precedence, because more cannot be
        allocated.
        """
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
        return _Budget("total_gpu_power_limit", watts_text, watts, most)

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
        """If growing and shrinking at once would exceed the power limit, pools that grow wait for pools that shrink.

        `drawing`: replicas that draw power now or soon. GPUs need no such wait: Kubernetes gives no pod the GPUs that
        another replica still has.
        """
        peak = {pool: max(count, drawing.get(pool, 0)) for pool, count in desired.items()}
        if peak == desired or not self._power(able).exceeded(peak):
            return dict(desired)
        return {pool: min(count, drawing.get(pool, 0)) for pool, count in desired.items()}

    def beyond(self, replicas: Replicas, able: Mapping[Pool, EngineCapabilities]) -> str:
        """Which budgets are too low for replicas, in words; empty if none is."""
        over = (each for each in self._budgets(able) if each.exceeded(replicas))
        return " and ".join(f"{each.field} is {each.most}" for each in over)

    def bounded_without_transfer(
        self, desired: Replicas, current: Replicas, able: Mapping[Pool, EngineCapabilities]
    ) -> dict[Pool, int]:
        """Like `bounded`, but if the budget is too low for all, no pool gives a replica that it still requests to
        another.

        The rest of the budget goes to growing pools, in order. If pools exceed the budget already, the result is that
        of `bounded`.
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
        """A message that the budget is too low for the minimums of the pools, so that all scale to 0;
        otherwise empty.
        """
        least = {pool: self.least(pool) for pool in self.pools}
        for budget in self._budgets(able):
            if self._within(least, budget) != least and budget.exceeded(least):
                kept = " and ".join(f"{count} {pool}" for pool, count in least.items())
                need = budget.words(budget.taken(least))
                return f"{budget.field} is {budget.most}, and {kept} (min_endpoint) need {need}: all pools scale to 0"
        return ""

    def raised_to_minimum(
        self, workers: Mapping[Pool, PoolCounts], able: Mapping[Pool, EngineCapabilities]
    ) -> dict[Pool, int] | None:
        """Replicas that raise pools below their minimum to it; None if no pool is below it, if this is not known, or if
        the budget has no more GPUs.

        For ticks without a decision, such as while metrics are missing: the minimum does not depend on metrics.
        """
        asked = {pool: workers[pool].expected for pool in self.pools if pool in workers}
        known = {pool: count for pool, count in asked.items() if count is not None}
        if len(known) < len(self.pools) or all(count >= self.least(pool) for pool, count in known.items()):
            return None
        final = self.bounded(known, able)
        return final if all(final[pool] >= count for pool, count in known.items()) and final != known else None

    def gpus(self, pool: Pool, able: Mapping[Pool, EngineCapabilities]) -> int | None:
        """GPUs of a replica; None if they are not known."""
        return self._config.engine_gpus(pool) or (able[pool].num_gpu if pool in able else None)
