"""Reports decisions: a NATS event with all inputs, a Kubernetes Event on the graph, a count."""

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

from dynamo_scaler.commands.request import ScaleRequest
from dynamo_scaler.metrics import DecisionMetrics
from dynamo_scaler.safety.verdict import PoolVerdict

SCALED, HELD, REFUSED, ADVISED = "scale-applied", "scale-held", "scale-refused", "scale-advised"
#: Reasons of Kubernetes Events, and whether they are decided or trouble.
_EVENTS = {SCALED: "Scaled", HELD: "ScaleHeld", REFUSED: "ScaleRefused", ADVISED: "ScaleAdvised"}


class DecisionReport(NamedTuple):
    """What was decided, of which components (those of the request first), by which figures."""

    reason: str
    message: str
    verdicts: Sequence[PoolVerdict] = ()
    figures: Sequence[BudgetFigures] = ()


@dataclass(frozen=True, slots=True)
class DecisionReporter:
    """Reports to users and programs. It never fails or waits."""

    recorder: EventRecorder
    publisher: EventPublisher
    metrics: DecisionMetrics

    def report(self, event: str, graph: KubeObject, request: ScaleRequest, decided: DecisionReport) -> None:
        """One decision about a request. The same one reported again is the same event."""
        metadata, (reason, message, verdicts, figures) = graph["metadata"], decided
        components = [_component(each, done=event in {SCALED, ADVISED}) for each in verdicts]
        data = ScalingDecision(
            name=metadata["name"],
            namespace=metadata["namespace"],
            generation=str(metadata.get("generation", 0)),
            reason=reason,
            message=message,
            components=components,
            budgets=list(figures),
            requester=request.requester,
            request_reason=request.reason,
            command=request.command,
            dry_run=request.dry_run,
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
            causation_id=request.command,
        )
        who = (
            f" (asked by {request.requester}{f': {request.reason}' if request.reason else ''})"
            if request.requester
            else ""
        )
        type_: EventType = "Warning" if event == REFUSED else "Normal"
        # A dry run has its answer; the object's history shows what happened to it.
        if not request.dry_run:
            note = f"{reason}: {message}{who}" if event != SCALED else f"{message}{who}"
            self.recorder.record(graph, type_=type_, reason=_EVENTS[event], message=note, action="Scale")
        self.metrics.decided(event, reason)
        self.metrics.budgets({each.name: each.after if event == SCALED else each.before for each in figures})


def _component(verdict: PoolVerdict, *, done: bool) -> ScaledComponent:
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
