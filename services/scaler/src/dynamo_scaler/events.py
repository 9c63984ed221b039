"""Kubernetes Events and CloudEvents about adapters and scale commands."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.runtime.facts import EventReason, Fact
from dynamo_shared.wire.specifications.scaling import ScalingAdapterData
from dynamo_shared.wire.specifications.scaling_decisions import BudgetFigures, ScaledComponent, ScalingDecision

from dynamo_scaler.adapters.status import ConditionState
from dynamo_scaler.commands.request import ScaleRequest
from dynamo_scaler.safety.verdict import PoolVerdict

ADAPTER_SCALED = EventReason("Scaled", "The scaler set the replicas of an adapter in its graph.", action="Scale")
CONFLICT = EventReason("", "Another client also sets the replicas.", "Warning", "Scale", "Conflict")
FAILED = EventReason(
    "", "An adapter or its autoscaler cannot set the replicas.", "Warning", "Scale", "Synced or Autoscaling"
)
AUTOSCALER_CREATED = EventReason(
    "AutoscalerCreated", "The scaler created the autoscaler of an adapter.", action="Autoscale"
)
AUTOSCALER_UPDATED = EventReason("AutoscalerUpdated", "The autoscaler of an adapter was changed.", action="Autoscale")
AUTOSCALER_DELETED = EventReason("AutoscalerDeleted", "The autoscaler of an adapter was removed.", action="Autoscale")

COMMAND_DONE = EventReason("Scaled", "A scale command changed the replicas of a graph.", action="Scale")
COMMAND_HELD = EventReason("ScaleHeld", "A scale command waits.", action="Scale")
COMMAND_REFUSED = EventReason("ScaleRefused", "The scaler refused a scale command.", "Warning", "Scale")
COMMAND_ADVISED = EventReason(
    "ScaleAdvised", "The scaler decided on a scale command, but only advises the result.", action="Scale"
)

SCALED, HELD, REFUSED, ADVISED = "scale-applied", "scale-held", "scale-refused", "scale-advised"
_DECISIONS = {SCALED: COMMAND_DONE, HELD: COMMAND_HELD, REFUSED: COMMAND_REFUSED, ADVISED: COMMAND_ADVISED}


class DecisionReport(NamedTuple):
    """A decision, its components (the request's first), and its figures."""

    reason: str
    message: str
    verdicts: Sequence[PoolVerdict] = ()
    figures: Sequence[BudgetFigures] = ()


def scaled(adapter: KubeObject, component: str, before: int, writer: str) -> Fact:
    """A graph got an adapter's number; `before` is the previous number, `writer` is "" if unknown."""
    message = f"Scaled component {component} from {before} to {adapter['spec']['replicas']} replicas"
    if writer:
        message += f", requested by {writer}"
    writers = [writer] if writer else []
    return _of_adapter(adapter, ADAPTER_SCALED, message, "scaled", before=before, writers=writers)


def conflict(adapter: KubeObject, state: ConditionState, before: int, writers: Sequence[str]) -> Fact:
    """Another client sets the number, too. `writers`: the adapter's first."""
    return _of_adapter(adapter, CONFLICT.named(state.reason), state.message, "conflict", before=before, writers=writers)


def failed(adapter: KubeObject, state: ConditionState) -> Fact:
    """An adapter cannot do its work."""
    replicas = adapter["spec"]["replicas"]
    return _of_adapter(adapter, FAILED.named(state.reason), state.message, "failed", before=replicas, writers=[])


def decided(event: str, graph: KubeObject, request: ScaleRequest, report: DecisionReport) -> Fact:
    """One decision about a request. A repeated report is the same CloudEvent."""
    metadata, (reason, message, verdicts, figures) = graph["metadata"], report
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
    # A command's components may end one by one, each for its own reason.
    what = what or [reason, message]
    identity = hashlib.blake2b(" ".join(what).encode(), digest_size=8).hexdigest()
    # A dry run gets only its answer: the object's history contains only real changes.
    if request.dry_run:
        return Fact(event=event, data=data, identity=identity, causation_id=request.command)
    note = message if event == SCALED else f"{reason}: {message}"
    if request.requester:
        note += f" (requested by {request.requester}{f': {request.reason}' if request.reason else ''})"
    return _DECISIONS[event](note, event, data, identity, request.command)


def _of_adapter(
    adapter: KubeObject, reason: EventReason, message: str, event: str, *, before: int, writers: Sequence[str]
) -> Fact:
    """A fact with data of the adapter."""
    metadata, spec = adapter["metadata"], adapter["spec"]
    data = ScalingAdapterData(
        name=metadata["name"],
        namespace=metadata["namespace"],
        graph_deployment=spec["dgdRef"]["name"],
        component=spec["dgdRef"]["componentName"],
        previous_replicas=before,
        replicas=spec["replicas"],
        writers=list(writers),
        reason=reason.name,
        message=message,
        generation=str(metadata.get("generation", 0)),
    )
    return reason(message, event, data, identity=reason.name)


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
        shared_gpus=sum(pool.shared.values()),
        adapter=pool.adapter,
        reason=verdict.reason,
        message=verdict.message,
    )
