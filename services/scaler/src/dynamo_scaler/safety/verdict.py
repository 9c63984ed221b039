"""How far one component may be scaled now, without budgets. Pure."""

from dataclasses import dataclass

from dynamo_shared.api.registry.annotations import SCALING_POLICY
from dynamo_shared.api.wording import many
from dynamo_shared.runtime.settings.scaler import ScalingLimits

from dynamo_scaler.budgets.pools import DesiredPool
from dynamo_scaler.safety.history import ReplicaRequest, stabilized
from dynamo_scaler.safety.holds import Hold

BELOW_MINIMUM, ABOVE_MAXIMUM = "BelowMinimum", "AboveMaximum"
COOLDOWN, STABILIZING, STEP_LIMIT = "Cooldown", "Stabilizing", "StepLimit"


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of a component in addition to its pool."""

    limits: ScalingLimits
    #: A roll-out: both directions wait.
    rollout: Hold | None = None
    #: Unschedulable pods or a failed graph: scaling up waits.
    growth: Hold | None = None
    #: Time of the last scaling by a command, Unix time; 0: never.
    scaled_at: float = 0.0
    asked: tuple[ReplicaRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolVerdict:
    """How far a pool may go. `desired` is the request within the pool's bounds."""

    pool: DesiredPool
    requested: int
    desired: int
    allowed: int
    reason: str = ""
    message: str = ""

    @property
    def held(self) -> bool:
        """Whether a part of the request must wait."""
        return self.allowed != self.desired

    @property
    def changes(self) -> bool:
        """Whether there is something to do now."""
        return self.allowed != self.pool.current


def judge(pool: DesiredPool, requested: int, situation: Situation, now: float) -> PoolVerdict:
    """How far towards `requested` a pool may scale at a Unix time."""
    limits, current = situation.limits, pool.current
    desired, bound = _bounded(pool, requested, limits)
    if desired == current:
        return PoolVerdict(pool, requested, desired, current, *(bound or ("", "")))
    grows = desired > current
    hold = situation.rollout or (situation.growth if grows else None)
    if hold is not None:
        return PoolVerdict(pool, requested, desired, current, *hold)
    way = limits.up if grows else limits.down
    rests = situation.scaled_at + way.cooldown - now
    # A clock that was set back, or another replica's clock, must not prolong the cooldown without limit.
    if situation.scaled_at and 0 < rests <= 2 * way.cooldown:
        message = f"it was scaled {max(0.0, now - situation.scaled_at):.0f} s ago; the cooldown ends in {rests:.0f} s"
        return PoolVerdict(pool, requested, desired, current, COOLDOWN, message)
    allowed = stabilized(desired, current, situation.asked, limits, now)
    reason = bound or ("", "")
    if allowed != desired:
        message = f"{many(allowed, 'replica')} were requested within the last {way.stabilization:g} s"
        reason = Hold(STABILIZING, message)
    if way.step and abs(allowed - current) > way.step:
        allowed = current + (way.step if grows else -way.step)
        allowed = _together(pool, allowed, grows=grows)
        reason = bound or ("", "") if allowed == desired else Hold(STEP_LIMIT, f"{many(way.step, 'replica')} at a time")
    return PoolVerdict(pool, requested, desired, allowed, *reason)


def _together(pool: DesiredPool, replicas: int, *, grows: bool) -> int:
    """A step that never ends between zero and the gang size: the first replicas start together, and the last ones stop
    together.
    """
    if not 0 < replicas < pool.least:
        return replicas
    return pool.least if grows or pool.current > pool.least else 0


def _bounded(pool: DesiredPool, requested: int, limits: ScalingLimits) -> tuple[int, Hold | None]:
    """The request limited to the bounds in its own direction: a component that is already out of bounds does not move
    the other way.
    """
    current = pool.current
    if requested <= current:
        minimum = max(limits.min, pool.least) if limits.min else 0
        least = min(minimum, current)
        if requested < least:
            return least, Hold(BELOW_MINIMUM, f"{requested} is below its minimum of {minimum} ({_source_of('min')})")
        return requested, None
    desired = max(requested, limits.min)
    if limits.max:
        desired = min(desired, max(limits.max, current))
    if 0 < desired < pool.least:
        desired = current
    if desired < requested:
        return desired, Hold(ABOVE_MAXIMUM, f"{requested} is above its maximum of {limits.max} ({_source_of('max')})")
    return desired, None


def _source_of(bound: str) -> str:
    return f"{bound} of the annotation {SCALING_POLICY}, else of platform.scaler.limits"
