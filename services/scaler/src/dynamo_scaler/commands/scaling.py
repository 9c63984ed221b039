"""Requests to change replicas: decided one at a time, written, recorded, reported.

One lock serialises decisions and their writes: a transfer affects several graphs, and two independent decisions about
one budget would exceed it. A decision takes one or two writes, some milliseconds each. Only one replica of the scaler
does this at a time (`turn.py`).
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from dynamo_shared.api.conditions import timestamp
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted import times
from dynamo_shared.bus.commands import Answered, CommandRefusedError
from dynamo_shared.kube.errors import Forbidden, Invalid
from dynamo_shared.runtime.facts import Announcer

from dynamo_scaler import events
from dynamo_scaler.budgets import intents
from dynamo_scaler.budgets.intents import Intent
from dynamo_scaler.budgets.pools import PoolKey
from dynamo_scaler.commands.admission import Admitted, CommandAdmission
from dynamo_scaler.commands.cluster_view import ClusterView
from dynamo_scaler.commands.decision import APPLIED, CEILING, FLOOR, UNCHANGED, CommandDecision, ScaleOutcome, decide
from dynamo_scaler.commands.intent_changes import IntentChanges, intents_after, promised, rest_of, withdrawn
from dynamo_scaler.commands.records import ScalingRecord
from dynamo_scaler.commands.request import ScaleRequest
from dynamo_scaler.commands.writer import StaleError, Write, Writer, in_order
from dynamo_scaler.events import ADVISED, HELD, REFUSED, SCALED, DecisionReport
from dynamo_scaler.metrics import DecisionMetrics
from dynamo_scaler.safety.policy import InvalidPolicyError
from dynamo_scaler.safety.verdict import PoolVerdict

INVALID_POLICY, WRITE_REFUSED = "InvalidPolicy", "WriteRefused"
DRY_RUN, ADVISORY, WAITS = "DryRun", "Advisory", "Held"
WITHDRAWN = "Withdrawn"
#: Number of attempts for a request whose inputs change meanwhile; then the command is delivered again.
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Scaling:
    """Decides about requests and carries them out. `now` is Unix time."""

    view: ClusterView
    writer: Writer
    announcer: Announcer
    metrics: DecisionMetrics
    admission: CommandAdmission
    now: Callable[[], float]
    #: Called when a request is held and must be checked again.
    on_held: Callable[[], None] = lambda: None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def carry_out(self, request: ScaleRequest) -> Answered:
        """Carry out the allowed part of a command; returns what was done.

        CommandRefusedError says why not; after any other error the command may be sent again.
        """
        async with self.lock:
            await self.view.update()
            try:
                return await self._decided(request)
            except CommandRefusedError as error:
                graph = self.view.graph(request.graph) if self.view.serves(request.graph) else None
                if graph is not None:
                    report = (
                        error.report
                        if isinstance(error, _RefusedDecision)
                        else DecisionReport(error.reason, str(error))
                    )
                    self.report(REFUSED, graph, request, report)
                raise

    async def _decided(self, request: ScaleRequest) -> Answered:
        if request.withdraw:
            return await self._withdrawn(request)
        admitted = await self._admitted(request)
        if not request.dry_run:
            for key, replicas in admitted.desired.items():
                self.view.history.note(key, replicas, admitted.pools[key].current, self.now())
        for _ in range(_ATTEMPTS):
            try:
                return await self._once(request, admitted)
            except StaleError:
                admitted = await self._admitted(request)
        raise RuntimeError(f"{request.graph} changed during each of {_ATTEMPTS} attempts to decide")

    async def _admitted(self, request: ScaleRequest) -> Admitted:
        """The admitted command. If it is refused now, a part may have been done; its waiting part is forgotten."""
        try:
            return await self.admission.admit(request)
        except CommandRefusedError:
            graph = None if self._is_trial(request) else self.view.graph(request.graph)
            known = intents.read(graph) if graph is not None and self.view.serves(request.graph) else {}
            if own := [name for name, intent in known.items() if intent.command == request.command]:
                await self.remember({request.graph: dict.fromkeys(own)})
            raise

    async def _withdrawn(self, request: ScaleRequest) -> Answered:
        """Forget the requester's earlier requests. Completed changes stay."""
        graph, given_up = await self.admission.given_up(request)
        names = ", ".join(f"{pool.key.component} {intent.replicas}" for pool, intent in given_up)
        if not given_up:
            return Answered(UNCHANGED, "no request waits")
        if self._is_trial(request):
            return Answered(DRY_RUN, f"would be withdrawn: {names}")
        # Before the write, during which the graph may be deleted: nothing would forget a later note.
        for pool, _ in given_up:
            self.view.history.note(pool.key, pool.current, pool.current, self.now())
        await self.remember({request.graph: {pool.key.component: None for pool, _ in given_up}})
        for pool, intent in given_up:
            if intent.held:
                message = f"{pool.key.component} stays at {pool.current}: {intent.requester} withdrew its request"
                verdict = PoolVerdict(pool, intent.replicas, intent.replicas, pool.current, WITHDRAWN)
                report = DecisionReport(WITHDRAWN, message, [verdict])
                self.report(REFUSED, graph, ScaleRequest.again(request.graph, intent), report)
        return Answered(WITHDRAWN, f"forgotten: {names}")

    async def _once(self, request: ScaleRequest, admitted: Admitted) -> Answered:
        graph = admitted.graph
        if not admitted.desired:
            return self._done_before(request, admitted)
        decision = self.decide(admitted.desired)
        if decision.outcome is ScaleOutcome.REFUSE:
            if not self._is_trial(request):
                await self.remember(self.after(request, decision))
            raise _RefusedDecision(decision.reason, self._with_lifetime(request, decision), report_of(decision))
        if self._is_trial(request):
            message = f"would scale: {decision.message}" if decision.changes else decision.message
            self.report(ADVISED, graph, request, report_of(decision)._replace(message=message))
            return Answered(DRY_RUN if request.dry_run else ADVISORY, message)
        if decision.outcome is ScaleOutcome.APPLY:
            await self.apply(request, decision)
            return Answered(decision.reason, self._with_lifetime(request, decision))
        await self.remember(self.after(request, decision))
        if decision.outcome is ScaleOutcome.HOLD:
            self.report(HELD, graph, request, report_of(decision))
            self.on_held()
            return Answered(WAITS, self._with_lifetime(request, decision))
        return Answered(decision.reason, decision.message)

    def decide(self, desired: Mapping[PoolKey, int]) -> CommandDecision:
        """The decision about desired replicas by pool, in the current state. CommandRefusedError if a policy is
        invalid.
        """
        try:
            return decide(desired, self.view.inputs(desired, self.now()))
        except InvalidPolicyError as error:
            raise CommandRefusedError(INVALID_POLICY, str(error)) from error

    async def apply(self, request: ScaleRequest, decision: CommandDecision) -> None:
        """Write a decision and report it. StaleError if it must be decided again."""
        remembered = self.after(request, decision)
        units = in_order([self._write(request, decision, each) for each in decision.changes])
        rest = rest_of(remembered, decision)
        await self.remember(rest)
        if len(units) > 1:
            await self.remember(promised(decision, frozenset(each.pool.key for each in units[0])))
        # The numbers of adapters are separate writes: until then their intents stay, whatever is written to the graph
        # before.
        by_adapter = {each.pool.key for each in decision.changes if each.pool.adapter}
        done: list[Write] = []
        try:
            for unit in units:
                if unit[0].pool.adapter:
                    await self.writer.adapter(unit[0])
                else:
                    key = unit[0].pool.key.graph_key
                    known = remembered.get(key, {}).items()
                    own = {name: intent for name, intent in known if PoolKey(*key, name) not in by_adapter}
                    await self.writer.graph(key, unit, own)
                done += unit
        except (Invalid, Forbidden) as error:
            # A refused write is not retried.
            await self.remember(withdrawn(decision, rest, frozenset(each.pool.key for each in done)))
            before = "; ".join(f"{each.pool.key} {each.pool.current} -> {each.replicas}" for each in done)
            message = f"the API server refused the write: {error}{f'; written before that: {before}' if before else ''}"
            report = report_of(decision)._replace(reason=WRITE_REFUSED, message=message)
            raise _RefusedDecision(WRITE_REFUSED, message, report) from error
        await self.remember(remembered)
        self._report_applied(request, decision)

    async def remember(self, remembered: IntentChanges) -> None:
        """Write the intents that changed."""
        for key, intents_of_graph in remembered.items():
            await self.writer.graph(key, [], intents_of_graph)

    def report(self, event: str, graph: KubeObject, request: ScaleRequest, decided: DecisionReport) -> None:
        """Announce and count one decision about a request."""
        self.announcer.announce(graph, events.decided(event, graph, request, decided))
        self.metrics.decisions.labels(event, decided.reason).inc()
        self.metrics.budgets({each.name: each.after if event == SCALED else each.before for each in decided.figures})

    def _report_applied(self, request: ScaleRequest, decision: CommandDecision) -> None:
        graph = self.view.graph(request.graph)
        if graph is not None:
            self.report(SCALED, graph, request, report_of(decision))
        for each in decision.partners:
            # Its requester had got a refusal, and now learns that the request was done.
            other, intent = self.view.graph(each.pool.key.graph_key), decision.intents[each.pool.key]
            if other is not None:
                asked = ScaleRequest.again(each.pool.key.graph_key, intent)
                self.report(SCALED, other, asked, report_of(decision)._replace(verdicts=[each]))
        if any(each.held for each in decision.verdicts):
            self.on_held()

    def _write(self, request: ScaleRequest, decision: CommandDecision, verdict: PoolVerdict) -> Write:
        asked = decision.intents.get(verdict.pool.key, request)
        return Write(
            verdict.pool,
            verdict.allowed,
            ScalingRecord(
                at=self.now(),
                before=verdict.pool.current,
                replicas=verdict.allowed,
                command=asked.command,
                requester=asked.requester,
                sent=asked.sent,
            ),
        )

    def _done_before(self, request: ScaleRequest, admitted: Admitted) -> Answered:
        """The command is delivered again because the replica that carried it out died before its answer."""
        verdicts = []
        for key, record in admitted.done.items():
            if record.command == request.command:
                pool = replace(admitted.pools[key], current=record.before)
                verdicts.append(PoolVerdict(pool, record.replicas, record.replicas, record.replicas))
        message = "; ".join(f"{each.pool.key.component} {each.pool.current} -> {each.allowed}" for each in verdicts)
        message = message or "the command was already carried out"
        self.report(SCALED, admitted.graph, request, DecisionReport(APPLIED, message, verdicts))
        return Answered(APPLIED, message)

    def after(self, request: ScaleRequest, decision: CommandDecision) -> IntentChanges:
        """The record to keep after a decision."""
        return intents_after(request, decision, self._known(decision), self.now(), self.view.settings.intent_lifetime)

    def _known(self, decision: CommandDecision) -> dict[PoolKey, Intent]:
        """The known intents of a decision's components."""
        known: dict[PoolKey, Intent] = {}
        for each in decision.verdicts:
            graph = self.view.graph(each.pool.key.graph_key)
            intent = intents.read(graph).get(each.pool.key.component) if graph is not None else None
            if intent is not None:
                known[each.pool.key] = intent
        return known

    def _is_trial(self, request: ScaleRequest) -> bool:
        return request.dry_run or self.view.settings.advisory

    def _with_lifetime(self, request: ScaleRequest, decision: CommandDecision) -> str:
        """The message with the time until which the rest of the request is kept."""
        if self._is_trial(request):
            return decision.message
        # An intent from an earlier request may keep its time.
        since = min((each.at for each in self._known(decision).values()), default=self.now())
        until = timestamp(times.from_unix(since + self.view.settings.intent_lifetime))
        if decision.outcome is ScaleOutcome.REFUSE:
            kept = decision.reason in {CEILING, FLOOR}
            return (
                f"{decision.message}; the scaler keeps the request until {until}, for a command that balances it"
                if kept
                else decision.message
            )
        held = any(each.held for each in decision.verdicts)
        return f"{decision.message}; the scaler retries until {until}" if held else decision.message


class _RefusedDecision(CommandRefusedError):
    """A refused command, with the decision to report."""

    def __init__(self, reason: str, message: str, report: DecisionReport) -> None:
        super().__init__(reason, message)
        self.report = report


def report_of(decision: CommandDecision) -> DecisionReport:
    """A decision as it is reported."""
    every = (*decision.verdicts, *decision.partners)
    return DecisionReport(decision.reason, decision.message, every, decision.figures)
