"""Plans one graph: runs its policy at the requested times, and executes and reports its decisions."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

import structlog
from dynamo_shared.api.contracts.planner import PlanningPolicy

from dynamo_planner.core.decision import Decision, Effects, Policy, Tick
from dynamo_planner.core.observation import Observation
from dynamo_planner.planning.backoff import Acted, PlanBackoff, asked
from dynamo_planner.planning.collector import CollectedInputs
from dynamo_planner.planning.plans import PlannedGraph

log = structlog.get_logger("dynamo.planner.planning")

#: Seconds after which a failed policy is created again.
FAULT_PAUSE = 30.0


class TickResult(NamedTuple):
    """The result of a tick."""

    collected: CollectedInputs
    effects: Effects
    acted: Acted | None


async def _in_thread(_tick: Tick, work: Callable[[], Effects]) -> Effects:
    return await asyncio.to_thread(work)


class Runner:
    """Plans one graph until cancelled."""

    def __init__(
        self,
        plan: PlannedGraph,
        *,
        make: Callable[[], Awaitable[Policy]],
        observe: Callable[[Tick, float], Awaitable[CollectedInputs]],
        act: Callable[[Decision], Awaitable[Acted]],
        withdraw: Callable[[], Awaitable[bool]],
        compute: Callable[[Tick, Callable[[], Effects]], Awaitable[Effects]] = _in_thread,
        report: Callable[[TickResult], Awaitable[None]],
        failed: Callable[[Exception], Awaitable[None]],
        clock: Callable[[], float],
        backoff: PlanBackoff | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`withdraw` withdraws waiting requests and returns whether it succeeded; `failed` reports that a policy
        failed.

        Neither may raise.
        """
        self._plan, self._make, self._observe = plan, make, observe
        self._act, self._withdraw, self._report, self._failed = act, withdraw, report, failed
        #: Whether the scaler may still execute a request: initially true, because a former runner may have sent one.
        self._waits = True
        self._compute, self._clock, self._sleep = compute, clock, sleep
        self._backoff = backoff or PlanBackoff(clock)

    async def run(self) -> None:
        """Tick until cancelled. A policy that fails is created again, and must learn again."""
        while True:
            try:
                await self._run_policy()
            except Exception as error:
                log.exception("planning of a graph failed", graph=str(self._plan.graph))
                # Replicas stay unchanged, so requests that the scaler would execute later are withdrawn.
                await self._give_up()
                await self._failed(error)
                await self._sleep(FAULT_PAUSE)

    async def _run_policy(self) -> None:
        policy = await self._make()
        tick = policy.first_tick(self._clock())
        while True:
            await self._sleep(max(0.0, tick.at - self._clock()))
            tick = await self.tick(policy, tick)

    async def tick(self, policy: Policy, tick: Tick) -> Tick:
        """Run one tick; returns the next one."""
        collected = await self._observe(tick, self._clock())
        # Predictors compute for a while, and must not block the event loop.
        effects = await self._compute(tick, partial(policy.on_tick, tick, collected.observation))
        acted: Acted | None = None
        if (
            effects.decision is not None
            and not self._plan.config.advisory
            and changes(effects.decision, collected.observation)
        ):
            acted = await self._ask(effects.decision, collected.observation)
        elif self._keeps_replicas(effects):
            await self._give_up()
        else:
            acted = self._backoff.last()
        await self._report(TickResult(collected, effects, acted))
        return effects.next_tick

    async def _give_up(self) -> None:
        self._backoff.clear()
        # While NATS is unavailable, nothing can be withdrawn: the scaler would still execute it.
        self._waits = self._waits and not await self._withdraw()

    async def _ask(self, decision: Decision, observation: Observation) -> Acted:
        """The scaler's answer; for an unexecuted plan, the earlier answer until the plan must be requested again."""
        earlier = self._backoff.answer(decision, observation)
        if earlier is not None:
            return earlier
        acted = await self._act(decision)
        self._waits = True
        self._backoff.answered(decision, acted)
        return acted

    def _keeps_replicas(self, effects: Effects) -> bool:
        """Whether replicas must stay unchanged. `reference` makes no decision at most of its ticks, which have other
        purposes.
        """
        return effects.decision is not None or self._plan.config.policy is PlanningPolicy.ADAPTIVE


def changes(decision: Decision, observation: Observation) -> bool:
    """Whether a decision requests anything that was not requested already."""
    return any(replicas != asked(observation, pool) for pool, replicas in decision.replicas.items())
