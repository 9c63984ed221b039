"""Requests for other replicas, from asking to telling: decided one at a time, written, remembered, told of.

One lock for all of them serialises looking and acting: a transfer concerns several graphs, and two decisions about one budget
that do not know of each other would exceed it. A decision takes a write or two, some milliseconds each. Of several
replicas of the scaler one at a time does this at all (`turn.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from dynamo_shared.api.conditions import timestamp
from dynamo_shared.bus.commands import Answered, CommandRefusedError
from dynamo_shared.kube.errors import Forbidden, Invalid

from dynamo_scaler.budgets import intents
from dynamo_scaler.budgets.intents import Intent
from dynamo_scaler.budgets.pools import PoolKey
from dynamo_scaler.commands.admitting import Admission, Admitted
from dynamo_scaler.commands.asking import Ask
from dynamo_scaler.commands.deciding import APPLIED, CEILING, FLOOR, Decision, Outcome, decide
from dynamo_scaler.commands.picture import Picture
from dynamo_scaler.commands.records import Record
from dynamo_scaler.commands.remembering import Remembered, intents_after, promised, rest_of
from dynamo_scaler.commands.telling import ADVISED, HELD, REFUSED, SCALED, News, Teller
from dynamo_scaler.commands.writing import StaleError, Write, Writer, in_order
from dynamo_scaler.safety.policy import InvalidPolicyError
from dynamo_scaler.safety.verdict import Verdict

INVALID_POLICY, WRITE_REFUSED = "InvalidPolicy", "WriteRefused"
DRY_RUN, ADVISORY, WAITS = "DryRun", "Advisory", "Held"
#: How often one request is decided anew because what it was decided from changed meanwhile; then the command comes again.
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Scaling:
    """Decides and carries out. `now` is Unix time."""

    picture: Picture
    writer: Writer
    teller: Teller
    admission: Admission
    now: Callable[[], float]
    #: Called when something is held: it has to be looked at again.
    on_held: Callable[[], None] = lambda: None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def carry_out(self, ask: Ask) -> Answered:
        """Do what a command asks for, as far as it may be done; says what was done.

        CommandRefusedError says why not; after any other error the command may be given again.
        """
        async with self.lock:
            try:
                return await self._decided(ask)
            except CommandRefusedError as error:
                graph = self.picture.graph(ask.graph) if self.picture.serves(ask.graph) else None
                if graph is not None:
                    told = error.news if isinstance(error, _RefusedDecision) else News(error.reason, str(error))
                    self.teller.tell(REFUSED, graph, ask, told)
                raise

    async def _decided(self, ask: Ask) -> Answered:
        admitted = await self.admission.admit(ask)
        if not self._is_trial(ask):
            for key, replicas in admitted.wanted.items():
                self.picture.history.note(key, replicas, admitted.pools[key].current, self.now())
        for _ in range(_ATTEMPTS):
            try:
                return await self._once(ask, admitted)
            except StaleError:
                admitted = await self.admission.admit(ask)
        raise RuntimeError(f"{ask.graph} changes faster than it can be decided about")

    async def _once(self, ask: Ask, admitted: Admitted) -> Answered:
        graph = admitted.graph
        if not admitted.wanted:
            return self._done_before(ask, admitted)
        decision = self.decide(admitted.wanted)
        if decision.outcome is Outcome.REFUSE:
            if not self._is_trial(ask):
                await self.remember(self.after(ask, decision))
            raise _RefusedDecision(decision.reason, self._with_lifetime(ask, decision), news(decision))
        if self._is_trial(ask):
            message = f"would be done: {decision.message}" if decision.changes else decision.message
            self.teller.tell(ADVISED, graph, ask, news(decision)._replace(message=message))
            return Answered(DRY_RUN if ask.dry_run else ADVISORY, message)
        if decision.outcome is Outcome.APPLY:
            await self.apply(ask, decision)
            return Answered(decision.reason, self._with_lifetime(ask, decision))
        await self.remember(self.after(ask, decision))
        if decision.outcome is Outcome.HOLD:
            self.teller.tell(HELD, graph, ask, news(decision))
            self.on_held()
            return Answered(WAITS, self._with_lifetime(ask, decision))
        return Answered(decision.reason, decision.message)

    def decide(self, wanted: Mapping[PoolKey, int]) -> Decision:
        """What becomes of so many replicas by pool, as things are. CommandRefusedError where a policy is wrong."""
        try:
            return decide(wanted, self.picture.world(wanted, self.now()))
        except InvalidPolicyError as error:
            raise CommandRefusedError(INVALID_POLICY, str(error)) from error

    async def apply(self, ask: Ask, decision: Decision) -> None:
        """Write what was decided, and tell of it. StaleError where it has to be decided anew."""
        remembered = self.after(ask, decision)
        units = in_order([self._write(ask, decision, each) for each in decision.changes])
        rest = rest_of(remembered, decision)
        await self.remember(rest)
        if len(units) > 1:
            await self.remember(promised(decision, frozenset(each.pool.key for each in units[0])))
        done: list[Write] = []
        try:
            for unit in units:
                if unit[0].pool.adapter:
                    await self.writer.adapter(unit[0])
                else:
                    key = unit[0].pool.key.graph_key
                    await self.writer.graph(key, unit, remembered.pop(key, {}))
                done += unit
        except (Invalid, Forbidden) as error:
            # What is refused is not tried on.
            await self.remember({key: dict.fromkeys(names) for key, names in rest.items()})
            before = "; ".join(f"{each.pool.key} {each.pool.current} -> {each.replicas}" for each in done)
            message = f"the cluster refuses: {error}{f'; done before that: {before}' if before else ''}"
            told = news(decision)._replace(reason=WRITE_REFUSED, message=message)
            raise _RefusedDecision(WRITE_REFUSED, message, told) from error
        await self.remember(remembered)
        self._tell_applied(ask, decision)

    async def remember(self, remembered: Remembered) -> None:
        """Write intents down, as far as they are others."""
        for key, intents_of_graph in remembered.items():
            await self.writer.graph(key, [], intents_of_graph)

    def _tell_applied(self, ask: Ask, decision: Decision) -> None:
        graph = self.picture.graph(ask.graph)
        if graph is not None:
            self.teller.tell(SCALED, graph, ask, news(decision))
        for each in decision.partners:
            # Whoever asked for it was told that it was refused, and hears that it was done after all.
            other, intent = self.picture.graph(each.pool.key.graph_key), decision.intents[each.pool.key]
            if other is not None:
                asked = Ask.again(each.pool.key.graph_key, intent)
                self.teller.tell(SCALED, other, asked, news(decision)._replace(verdicts=[each]))
        if any(each.held for each in decision.verdicts):
            self.on_held()

    def _write(self, ask: Ask, decision: Decision, verdict: Verdict) -> Write:
        intent = decision.intents.get(verdict.pool.key)
        return Write(
            verdict.pool,
            verdict.allowed,
            Record(
                at=self.now(),
                before=verdict.pool.current,
                replicas=verdict.allowed,
                command=intent.command if intent is not None else ask.command,
                requester=intent.requester if intent is not None else ask.requester,
                sent=intent.sent if intent is not None else ask.sent,
            ),
        )

    def _done_before(self, ask: Ask, admitted: Admitted) -> Answered:
        """The command comes again, since whoever carried it out died before it could tell."""
        said = []
        for key, record in admitted.done.items():
            if record.command == ask.command:
                pool = replace(admitted.pools[key], current=record.before)
                said.append(Verdict(pool, record.replicas, record.replicas, record.replicas))
        message = "; ".join(f"{each.pool.key.component} {each.pool.current} -> {each.allowed}" for each in said)
        message = message or "it was carried out before"
        self.teller.tell(SCALED, admitted.graph, ask, News(APPLIED, message, said))
        return Answered(APPLIED, message)

    def after(self, ask: Ask, decision: Decision) -> Remembered:
        """What is to be remembered after a decision."""
        known: dict[PoolKey, Intent] = {}
        for each in decision.verdicts:
            graph = self.picture.graph(each.pool.key.graph_key)
            intent = intents.read(graph).get(each.pool.key.component) if graph is not None else None
            if intent is not None:
                known[each.pool.key] = intent
        return intents_after(ask, decision, known, self.now(), self.picture.settings.intent_lifetime)

    def _is_trial(self, ask: Ask) -> bool:
        return ask.dry_run or self.picture.settings.advisory

    def _with_lifetime(self, ask: Ask, decision: Decision) -> str:
        """The message, with how long what was not done is remembered."""
        lifetime = self.picture.settings.intent_lifetime
        until = timestamp(datetime.fromtimestamp(self.now() + lifetime, UTC))
        if self._is_trial(ask):
            return decision.message
        if decision.outcome is Outcome.REFUSE:
            kept = decision.reason in {CEILING, FLOOR}
            return f"{decision.message}; it may be paired with one until {until}" if kept else decision.message
        held = any(each.held for each in decision.verdicts)
        return f"{decision.message}; carried out when that ends, until {until}" if held else decision.message


class _RefusedDecision(CommandRefusedError):
    """A command is refused for what was decided, all of which is told."""

    def __init__(self, reason: str, message: str, told: News) -> None:
        super().__init__(reason, message)
        self.news = told


def news(decision: Decision) -> News:
    """A decision as it is told of."""
    every = (*decision.verdicts, *decision.partners)
    return News(decision.reason, decision.message, every, decision.figures)
