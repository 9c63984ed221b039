"""When the policy wants to be asked (planner.md, section a.1): two cadences, which share a tick where they meet."""

from dynamo_shared.api.contracts.planner import PlannerConfig, Target

from dynamo_planner.core.decision import Tick

MERGE_WITHIN = 0.5
"""Seconds; two deadlines that are closer are one tick."""


class Schedule:
    """Next due times of reactive and predictive scaling."""

    def __init__(self, config: PlannerConfig) -> None:
        self._load_interval = float(config.load_adjustment_interval_seconds) if config.load_scaling else None
        self._throughput_interval = (
            float(config.throughput_adjustment_interval_seconds) if config.throughput_scaling else None
        )
        self._estimates = config.optimization_target is Target.SLA
        self._load_due: float | None = None
        self._throughput_due: float | None = None

    def start(self, now: float) -> Tick:
        """The first tick: one interval from now."""
        self._load_due = _after(now, self._load_interval)
        self._throughput_due = _after(now, self._throughput_interval)
        return self._next()

    def done(self, tick: Tick, now: float) -> Tick:
        """The tick after one that was asked for; what ran is due one interval from now, whatever came of it."""
        if tick.run_load:
            self._load_due = _after(now, self._load_interval)
        if tick.run_throughput:
            self._throughput_due = _after(now, self._throughput_interval)
        return self._next()

    def _next(self) -> Tick:
        due = min(at for at in (self._load_due, self._throughput_due) if at is not None)
        load = self._load_due is not None and self._load_due - due <= MERGE_WITHIN
        throughput = self._throughput_due is not None and self._throughput_due - due <= MERGE_WITHIN
        window = self._throughput_interval if throughput else None
        if self._throughput_interval is None and self._estimates:
            # Nothing is predicted, but how often the KV cache hits counts for what reactive scaling estimates.
            window = self._load_interval
        return Tick(at=due, run_load=load, run_throughput=throughput, traffic_window=window, need_forward_passes=load)


def _after(now: float, interval: float | None) -> float | None:
    return None if interval is None else now + interval
