"""Carries out held scalings when their hold ends, and reports those whose lifetime ends first."""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field

import structlog
from dynamo_shared.aio import Turns, spread
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import PLANNER_CONFIG
from dynamo_shared.api.resources import ObjectKey, key_of
from dynamo_shared.api.wording import many
from dynamo_shared.bus.commands import CommandRefusedError
from dynamo_shared.kube.errors import KubeError
from dynamo_shared.wire.specifications.scaling import PLANNER

from dynamo_scaler.budgets import intents
from dynamo_scaler.budgets.intents import Intent
from dynamo_scaler.budgets.pools import PoolKey
from dynamo_scaler.commands.admission import AUTOSCALED, SUPERSEDED
from dynamo_scaler.commands.decision import CommandDecision, ScaleOutcome
from dynamo_scaler.commands.request import ScaleRequest
from dynamo_scaler.commands.scaling import WITHDRAWN, Scaling, report_of
from dynamo_scaler.commands.targets import UNKNOWN
from dynamo_scaler.commands.writer import StaleError
from dynamo_scaler.events import REFUSED, DecisionReport
from dynamo_scaler.safety.verdict import PoolVerdict

EXPIRED = "Expired"
#: Interval of checks for intents whose hold ends by time alone (a cooldown, a lifetime). Seconds.
TICK = 1.0
#: Interval of checks for intents that are only to be forgotten. Seconds.
SWEEP = 30.0
#: Debounce: changes come in groups (new pods, their status, the graph's). Seconds.
SETTLE = 0.05
#: How long graphs are checked before it is asked again which have something to check: those of other namespaces come before
#: thousands of one. Seconds.
PASS = 1.0
#: While changes do not end, so much time passes between checks for each second that one takes.
REST = 4.0

log = structlog.get_logger("dynamo.scaler.commands")


@dataclass(frozen=True, slots=True)
class HeldScalings:
    """Checks intents when something changes, and at intervals."""

    scaling: Scaling
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    #: Graphs to check: by writes, one after the other.
    _waiting: Turns[ObjectKey] = field(default_factory=lambda: Turns(lambda graph: graph.namespace))

    def wake(self) -> None:
        """A change may end a hold."""
        self._changed.set()

    async def run(self) -> None:
        """Run until cancelled. Failures are retried."""
        swept = float("-inf")
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK if self.scaling.view.has_intents() else None):
                    if not self._waiting.available:
                        await self._changed.wait()
            self._changed.clear()
            await asyncio.sleep(SETTLE)
            started = time.monotonic()
            try:
                sweeps = started - swept >= SWEEP
                await self.check(held=not sweeps)
                swept = started if sweeps else swept
                await asyncio.sleep(min(TICK, REST * (time.monotonic() - started)))
            except KubeError as error:
                log.warning("cannot check held scalings, will retry", error=str(error))
                await asyncio.sleep(spread(TICK, least=1.0, most=3.0))

    async def check(self, *, held: bool = False) -> None:
        """Carry out the allowed intents, and forget ended ones. KubeError if the API server does not answer, or refused
        a write.

        `held`: check only graphs with held scalings, not graphs that only remember refused ones.
        """
        if self.scaling.view.settings.advisory:
            return
        trouble: KubeError | None = None
        for key in self.scaling.view.keys_with_intents(held=held):
            if key not in self._waiting:
                self._waiting.add(key)
        until = time.monotonic() + PASS
        while self._waiting.available:
            key, _ = self._waiting.pop()
            graph = self.scaling.view.graph(key)
            try:
                trouble = (await self._check_graph(graph) if graph is not None else None) or trouble
            except KubeError:
                raise  # the API server does not answer, for any graph
            except Exception:
                # A graph that cannot be understood must not hold up all others.
                log.exception("cannot check held scalings of a graph", graph=str(key))
            # A decision awaits nothing, and there may be hundreds to decide about.
            await asyncio.sleep(0)
            if time.monotonic() >= until:
                break
        if trouble is not None:
            raise trouble

    async def _check_graph(self, graph: KubeObject) -> KubeError | None:
        """Returns the refusals of the API server: a command that cannot be written must not block all others."""
        trouble: KubeError | None = None
        # Requests of one command are decided together.
        for command in dict.fromkeys(intent.command for intent in intents.read(graph).values()):
            try:
                async with self.scaling.lock:
                    await self.scaling.view.update()
                    with suppress(StaleError):
                        # The next check handles changes in the meantime.
                        await self._check_command(key_of(graph), command)
            except KubeError as error:
                if not error.status:
                    raise
                trouble = error
        return trouble

    async def _check_command(self, key: ObjectKey, command: str) -> None:
        graph = self.scaling.view.graph(key)
        if graph is None or not self.scaling.view.serves(key):
            return
        pools = {pool.key: pool for pool in self.scaling.view.pools(graph)}
        held: dict[PoolKey, Intent] = {}
        now, lifetime = self.scaling.now(), self.scaling.view.settings.intent_lifetime
        for name, intent in intents.read(graph).items():
            if intent.command != command:
                continue
            pool = pools.get(PoolKey(*key, name))
            if pool is None:
                await self._forget(
                    graph, name, intent, DecisionReport(UNKNOWN, f"{name}: the graph no longer has this component")
                )
            elif not self.scaling.view.is_open(intent, pool):
                message = f"{name}: another client set {many(pool.current, 'replica')} meanwhile"
                done = pool.current == intent.replicas
                await self._forget(graph, name, intent, None if done else DecisionReport(SUPERSEDED, message))
            elif not intent.is_fresh(now, lifetime):
                message = (
                    f"{name} stays at {pool.current}: expired after {lifetime:g} s: {intent.reason}: {intent.message}"
                )
                await self._forget(graph, name, intent, DecisionReport(EXPIRED, message) if intent.held else None)
            elif scaler := self.scaling.view.autoscaler(pool):
                await self._forget(graph, name, intent, DecisionReport(AUTOSCALED, f"{scaler} now scales {name}"))
            elif intent.requester == PLANNER and PLANNER_CONFIG not in objects.annotations(graph):
                message = f"{name} stays at {pool.current}: the graph no longer requests a planner"
                await self._forget(graph, name, intent, DecisionReport(WITHDRAWN, message))
            elif intent.held:
                held[pool.key] = intent
        if held and self.scaling.view.graph(key) is not None:
            for each, intent in held.items():
                # The intent may be older than the last restart.
                self.scaling.view.history.note(each, intent.replicas, pools[each].current, now)
            await self._resume(graph, held)

    async def _resume(self, graph: KubeObject, held: dict[PoolKey, Intent]) -> None:
        request = ScaleRequest.again(key_of(graph), next(iter(held.values())))
        try:
            decision = self.scaling.decide({key: intent.replicas for key, intent in held.items()})
            if decision.outcome is ScaleOutcome.APPLY:
                await self.scaling.apply(request, decision)
            elif decision.outcome is not ScaleOutcome.HOLD:
                await self._end(graph, request, decision)
        except CommandRefusedError as error:
            current = self.scaling.view.graph(key_of(graph))
            done = {pool.key: pool.current for pool in self.scaling.view.pools(current)} if current is not None else {}
            for key, intent in held.items():
                # A component may have been written before a refused write, which the message of the others says.
                is_done = done.get(key) == intent.replicas
                report = None if is_done else DecisionReport(error.reason, str(error))
                await self._forget(graph, key.component, intent, report)

    async def _end(self, graph: KubeObject, request: ScaleRequest, decision: CommandDecision) -> None:
        """The request is done, or a budget refuses it: report and remember that, like for any command."""
        await self.scaling.remember(self.scaling.after(request, decision))
        if decision.outcome is ScaleOutcome.REFUSE:
            self.scaling.report(REFUSED, graph, request, report_of(decision))

    async def _forget(self, graph: KubeObject, name: str, intent: Intent, report: DecisionReport | None) -> None:
        key = key_of(graph)
        await self.scaling.remember({key: {name: None}})
        if report is None or not intent.held:
            return
        current = self.scaling.view.graph(key)
        if current is None:
            self.scaling.report(REFUSED, graph, ScaleRequest.again(key, intent), report)
            return
        verdicts = [
            PoolVerdict(pool, intent.replicas, intent.replicas, pool.current, report.reason)
            for pool in self.scaling.view.pools(current)
            if pool.key.component == name
        ]
        self.scaling.report(REFUSED, current, ScaleRequest.again(key, intent), report._replace(verdicts=verdicts))
