"""The models of the engines that a mode plans."""

from collections.abc import Iterable

from dynamo_shared.api.contracts.planner import Mode, PlannerConfig

from dynamo_planner.core.observing import ForwardPass, Pool
from dynamo_planner.core.profile import Profile
from dynamo_planner.core.reference.aggregated import AggregatedEngine
from dynamo_planner.core.reference.bootstrap import forward_passes
from dynamo_planner.core.reference.decode import DecodeEngine
from dynamo_planner.core.reference.prefill import PrefillEngine

MOST_SAMPLES = 1024
"""Measured iterations of an engine that are kept, whatever a configuration says: each tick is fitted to all of them."""


class Engines:
    """One model a role; those that the mode has no pool for learn nothing."""

    def __init__(self, config: PlannerConfig, profile: Profile | None = None) -> None:
        size = {
            "limit": min(config.max_num_fpm_samples, MOST_SAMPLES),
            "buckets": config.fpm_sample_bucket_size,
            "least": config.load_min_observations,
        }
        self._mode = config.mode
        self.prefill = PrefillEngine(**size)
        self.decode = DecodeEngine(**size)
        self.aggregated = AggregatedEngine(**size)
        if profile is not None:
            self.learn(forward_passes(profile))

    def learn(self, passes: Iterable[ForwardPass]) -> None:
        """Learn iterations."""
        for each in passes:
            if self._mode is Mode.AGG:
                self.aggregated.learn(each)
            elif each.pool is Pool.PREFILL:
                self.prefill.learn(each)
            else:
                self.decode.learn(each)
