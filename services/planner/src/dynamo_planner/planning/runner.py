"""One graph's planning: a policy runs when it asks to, and its decision is carried out and reported."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

import structlog
from dynamo_shared.api.contracts.planner import PlanningPolicy

from dynamo_planner.core.decision import Decision, Effects, Policy, Tick
from dynamo_planner.core.observing import Observation
from dynamo_planner.planning.gathering import Gathered
from dynamo_planner.planning.pace import Acted, Pace, asked
from dynamo_planner.planning.plans import PlannedGraph

log = structlog.get_logger("dynamo.planner.planning")

#: A policy that raises is created again after so long. Seconds.
AFTER_A_FAULT = 30.0


class TickResult(NamedTuple):
    """What happened at a tick."""

    gathered: Gathered
    effects: Effects
    acted: Acted | None


class Runner:
    """Plans one graph until cancelled."""

    def __init__(
        self,
        plan: PlannedGraph,
        *,
        make: Callable[[], Awaitable[Policy]],
        observe: Callable[[Tick, float], Awaitable[Gathered]],
        act: Callable[[Decision], Awaitable[Acted]],
        withdraw: Callable[[], Awaitable[bool]],
        compute: Callable[[Callable[[], Effects]], Awaitable[Effects]] = asyncio.to_thread,
        report: Callable[[TickResult], Awaitable[None]],
        failed: Callable[[Exception], Awaitable[None]],
        clock: Callable[[], float],
        pace: Pace | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`withdraw` gives up what was asked for and waits, and says whether that is done; `failed` reports that a policy failed.

        Neither may raise.
        """
        self._plan, self._make, self._observe = plan, make, observe
        self._act, self._withdraw, self._report, self._failed = act, withdraw, report, failed
        #: Whether the scaler may still do something that was asked for: also before the first decision, by the one before us.
        self._waits = True
        self._compute, self._clock, self._sleep = compute, clock, sleep
        self._pace = pace or Pace(clock)

    async def run(self) -> None:
        """Tick until cancelled. A policy that fails is created again, and has to learn again."""
        while True:
            try:
                await self._run_policy()
            except Exception as error:
                log.exception("planning of a graph failed", graph=str(self._plan.graph))
                # Replicas stay as they are, also those that the scaler would change later.
                await self._give_up()
                await self._failed(error)
                await self._sleep(AFTER_A_FAULT)

    async def _run_policy(self) -> None:
        policy = await self._make()
        tick = policy.first_tick(self._clock())
        while True:
            await self._sleep(max(0.0, tick.at - self._clock()))
            tick = await self.tick(policy, tick)

    async def tick(self, policy: Policy, tick: Tick) -> Tick:
        """One tick; the next one."""
        gathered = await self._observe(tick, self._clock())
        # Predictors compute for a while, and the loop has others to serve.
        effects = await self._compute(partial(policy.on_tick, tick, gathered.observation))
        acted: Acted | None = None
        if (
            effects.decision is not None
            and not self._plan.config.advisory
            and changes(effects.decision, gathered.observation)
        ):
            acted = await self._ask(effects.decision, gathered.observation)
        elif self._desires_nothing(effects):
            await self._give_up()
        else:
            acted = self._pace.last()
        await self._report(TickResult(gathered, effects, acted))
        return effects.next_tick

    async def _give_up(self) -> None:
        self._pace.clear()
        # While NATS is away nothing can be said: the scaler would still do it.
        self._waits = self._waits and not await self._withdraw()

    async def _ask(self, decision: Decision, observation: Observation) -> Acted:
        """The scaler's answer; the earlier one to a plan that it did not carry out, until that is to be asked for again."""
        earlier = self._pace.answer(decision, observation)
        if earlier is not None:
            return earlier
        acted = await self._act(decision)
        self._waits = True
        self._pace.answered(decision, acted)
        return acted

    def _desires_nothing(self, effects: Effects) -> bool:
        """Whether replicas are to stay. `reference` decides nothing at most of its ticks, which are for something else."""
        return effects.decision is not None or self._plan.config.policy is PlanningPolicy.ADAPTIVE


def changes(decision: Decision, observation: Observation) -> bool:
    """Whether a decision asks for anything that is not asked for already."""
    return any(replicas != asked(observation, pool) for pool, replicas in decision.replicas.items())
