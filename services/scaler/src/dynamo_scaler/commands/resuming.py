"""What is held is carried out when its hold has ended, and told of when its life time has."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog
from dynamo_shared.aio import spread
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, key_of
from dynamo_shared.bus.commands import CommandRefusedError
from dynamo_shared.kube.errors import KubeError

from dynamo_scaler.budgets import intents
from dynamo_scaler.budgets.intents import Intent
from dynamo_scaler.budgets.pools import PoolKey
from dynamo_scaler.commands.admitting import AUTOSCALED, SUPERSEDED
from dynamo_scaler.commands.asking import Ask
from dynamo_scaler.commands.deciding import Decision, Outcome
from dynamo_scaler.commands.scaling import Scaling, news
from dynamo_scaler.commands.targets import UNKNOWN
from dynamo_scaler.commands.telling import REFUSED, News
from dynamo_scaler.commands.writing import StaleError
from dynamo_scaler.safety.verdict import Verdict

EXPIRED = "Expired"
#: How often intents are looked at, for what ends with time alone (a cooldown, a life time). Seconds.
TICK = 1.0
#: Changes come in groups: new pods, their status, the graph's. Seconds.
SETTLE = 0.05
#: While changes do not end, so much time passes between looks for each second that one takes.
REST = 4.0

log = structlog.get_logger("dynamo.scaler.commands")


@dataclass(frozen=True, slots=True)
class Resuming:
    """Looks at intents when something changes, and now and then."""

    scaling: Scaling
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Something changed that a hold may have waited for."""
        self._changed.set()

    async def run(self) -> None:
        """For ever. What fails is tried again."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK if self.scaling.picture.with_intents() else None):
                    await self._changed.wait()
            self._changed.clear()
            await asyncio.sleep(SETTLE)
            started = time.monotonic()
            try:
                await self.look()
                await asyncio.sleep(min(TICK, REST * (time.monotonic() - started)))
            except KubeError as error:
                log.warning("held scalings wait", error=str(error))
                await asyncio.sleep(spread(TICK, least=1.0, most=3.0))

    async def look(self) -> None:
        """Carry out what may be, and forget what is over. KubeError where the API server is away, or refused some of it."""
        if self.scaling.picture.settings.advisory:
            return
        trouble: KubeError | None = None
        for graph in self.scaling.picture.with_intents():
            try:
                await self._look_at_all(graph)
            except KubeError as error:
                if not error.status:
                    raise  # nobody answers, for any graph
                # A graph that cannot be written must not hold up all others.
                trouble = error
            except Exception:
                # Nor must one that cannot be understood.
                log.exception("held scalings of a graph not looked at", graph=str(key_of(graph)))
            # Deciding does not wait for anything by itself, and there may be hundreds to decide about.
            await asyncio.sleep(0)
        if trouble is not None:
            raise trouble

    async def _look_at_all(self, graph: KubeObject) -> None:
        for command, names in _by_command(intents.read(graph)).items():
            async with self.scaling.lock:
                with suppress(StaleError):
                    # What changed meanwhile is looked at the next time.
                    await self._look_at(key_of(graph), command, names)

    async def _look_at(self, key: ObjectKey, command: str, names: Iterable[str]) -> None:
        graph = self.scaling.picture.graph(key)
        if graph is None or not self.scaling.picture.serves(key):
            return
        pools = {pool.key: pool for pool in self.scaling.picture.pools(graph)}
        held: dict[PoolKey, Intent] = {}
        now, lifetime = self.scaling.now(), self.scaling.picture.settings.intent_lifetime
        for name, intent in intents.read(graph).items():
            if name not in names or intent.command != command:
                continue
            pool = pools.get(PoolKey(*key, name))
            if pool is None:
                await self._forget(graph, name, intent, News(UNKNOWN, f"{name}: the graph has it no more"))
            elif not self.scaling.picture.is_open(intent, pool):
                message = f"{name}: somebody else set {pool.current} replicas meanwhile"
                done = pool.current == intent.replicas
                await self._forget(graph, name, intent, None if done else News(SUPERSEDED, message))
            elif not intent.is_fresh(now, lifetime):
                message = (
                    f"{name} stays at {pool.current}: not done within {lifetime:g} s: {intent.reason}: {intent.message}"
                )
                await self._forget(graph, name, intent, News(EXPIRED, message) if intent.held else None)
            elif scaler := self.scaling.picture.autoscaler(pool):
                await self._forget(graph, name, intent, News(AUTOSCALED, f"{name} is scaled by {scaler} by now"))
            elif intent.held:
                held[pool.key] = intent
        if held:
            await self._resume(graph, held)

    async def _resume(self, graph: KubeObject, held: dict[PoolKey, Intent]) -> None:
        ask = Ask.again(key_of(graph), next(iter(held.values())))
        try:
            decision = self.scaling.decide({key: intent.replicas for key, intent in held.items()})
            if decision.outcome is Outcome.APPLY:
                await self.scaling.apply(ask, decision)
            elif decision.outcome is not Outcome.HOLD:
                await self._end(graph, ask, decision)
        except CommandRefusedError as error:
            for key, intent in held.items():
                await self._forget(graph, key.component, intent, News(error.reason, str(error)))

    async def _end(self, graph: KubeObject, ask: Ask, decision: Decision) -> None:
        """It is so by now, or a budget is in its way: that is told, and remembered as for any command."""
        await self.scaling.remember(self.scaling.after(ask, decision))
        if decision.outcome is Outcome.REFUSE:
            self.scaling.teller.tell(REFUSED, graph, ask, news(decision))

    async def _forget(self, graph: KubeObject, name: str, intent: Intent, told: News | None) -> None:
        key = key_of(graph)
        await self.scaling.remember({key: {name: None}})
        if told is None or not intent.held:
            return
        current = self.scaling.picture.graph(key)
        if current is None:
            self.scaling.teller.tell(REFUSED, graph, Ask.again(key, intent), told)
            return
        verdicts = [
            Verdict(pool, intent.replicas, intent.replicas, pool.current, told.reason)
            for pool in self.scaling.picture.pools(current)
            if pool.key.component == name
        ]
        self.scaling.teller.tell(REFUSED, current, Ask.again(key, intent), told._replace(verdicts=verdicts))


def _by_command(remembered: dict[str, Intent]) -> dict[str, list[str]]:
    """Components by the command that asked: what was asked for together is decided together."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, intent in remembered.items():
        found[intent.command].append(name)
    return found
