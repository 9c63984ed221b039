"""Telling what was decided: a NATS event with all inputs, a Kubernetes Event on the graph, a count."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.bus import EventPublisher
from dynamo_shared.bus.specifications import GRAPH_DEPLOYMENT
from dynamo_shared.bus.specifications.scaling_decisions import BudgetFigures, ScaledComponent, ScalingDecision
from dynamo_shared.kube.event_series import EventType
from dynamo_shared.kube.events import EventRecorder

from dynamo_scaler.commands.asking import Ask
from dynamo_scaler.metrics import DecisionMetrics
from dynamo_scaler.safety.verdict import Verdict

SCALED, HELD, REFUSED, ADVISED = "scale-applied", "scale-held", "scale-refused", "scale-advised"
#: Reasons of Kubernetes Events, and whether they are news or trouble.
_EVENTS = {SCALED: "Scaled", HELD: "ScaleHeld", REFUSED: "ScaleRefused", ADVISED: "ScaleAdvised"}


class News(NamedTuple):
    """What was decided, of which components (those of the request first), by which figures."""

    reason: str
    message: str
    verdicts: Sequence[Verdict] = ()
    figures: Sequence[BudgetFigures] = ()


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells people and programs. Nothing of it can fail or wait."""

    recorder: EventRecorder
    publisher: EventPublisher
    metrics: DecisionMetrics

    def tell(self, event: str, graph: KubeObject, ask: Ask, news: News) -> None:
        """One decision about a request. The same one told again is the same event."""
        metadata, (reason, message, verdicts, figures) = graph["metadata"], news
        components = [_component(each, done=event in {SCALED, ADVISED}) for each in verdicts]
        data = ScalingDecision(
            name=metadata["name"],
            namespace=metadata["namespace"],
            generation=str(metadata.get("generation", 0)),
            reason=reason,
            message=message,
            components=components,
            budgets=list(figures),
            requester=ask.requester,
            request_reason=ask.reason,
            command=ask.command,
            dry_run=ask.dry_run,
        )
        what = [f"{each.graph_deployment}/{each.component}:{each.allowed}:{each.reason}" for each in components]
        # A command's components may end one by one, each for a reason of its own.
        what = what or [reason, message]
        self.publisher.publish(
            kind=GRAPH_DEPLOYMENT,
            obj=graph,
            event=event,
            data=data,
            reason=hashlib.blake2b(" ".join(what).encode(), digest_size=8).hexdigest(),
            causation_id=ask.command,
        )
        who = f" (asked by {ask.requester}{f': {ask.reason}' if ask.reason else ''})" if ask.requester else ""
        type_: EventType = "Warning" if event == REFUSED else "Normal"
        # People who try something out see the answer; the object's history is of what happened to it.
        if not ask.dry_run:
            note = f"{reason}: {message}{who}" if event != SCALED else f"{message}{who}"
            self.recorder.record(graph, type_=type_, reason=_EVENTS[event], message=note, action="Scale")
        self.metrics.decided(event, reason)
        self.metrics.budgets({each.name: each.after if event == SCALED else each.before for each in figures})


def _component(verdict: Verdict, *, done: bool) -> ScaledComponent:
    pool = verdict.pool
    return ScaledComponent(
        graph_deployment=pool.key.graph,
        namespace=pool.key.namespace,
        component=pool.key.component,
        sub_component_type=pool.type,
        current=pool.current,
        requested=verdict.requested,
        allowed=verdict.allowed if done else pool.current,
        gpus_per_replica=pool.gpus,
        adapter=pool.adapter,
        reason=verdict.reason,
        message=verdict.message,
    )
