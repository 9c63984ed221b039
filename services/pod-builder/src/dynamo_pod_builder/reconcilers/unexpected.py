"""What the pod-builder reports on an object whose reconcile fails with an unforeseen error."""

from collections.abc import Mapping
from datetime import datetime

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    Resource,
)
from dynamo_shared.runtime.facts import Fact
from dynamo_shared.runtime.unexpected import Report

from dynamo_pod_builder import events
from dynamo_pod_builder.artifact_images import LEGACY, artifact_of
from dynamo_pod_builder.children import graph_uid
from dynamo_pod_builder.reconcilers import legacy
from dynamo_pod_builder.status.checkpoint import PENDING
from dynamo_pod_builder.status.component import Failure, component_status
from dynamo_pod_builder.status.graph import READY, GraphOutcome, graph_status

_REASON = "NotDeployable"


def _with(obj: KubeObject, part: KubeObject) -> KubeObject:
    """The status with this part replaced; the rest stays."""
    return {**obj.get("status", {}), **part}


def _of_graph(obj: KubeObject, message: str, now: datetime) -> tuple[KubeObject, Fact]:
    others = [each for each in obj.get("status", {}).get("conditions", ()) if each["type"] != READY]
    outcome = GraphOutcome({}, failure=Failure(_REASON, message), conditions=others)
    status = _with(obj, graph_status(obj, outcome, now))
    return status, events.graph_changed(obj, status)


def _of_component(obj: KubeObject, message: str, now: datetime) -> tuple[KubeObject, Fact]:
    """If it has a graph, programs learn of the failure from the graph."""
    status = _with(obj, component_status(obj, None, Failure(_REASON, message), now))
    if graph_uid(obj):
        return status, events.COMPONENT_FAILED.named(_REASON)(message)
    return status, events.component_changed(obj, status)


def _of_checkpoint(obj: KubeObject, message: str, _now: datetime) -> tuple[KubeObject, Fact]:
    """Its Job continues, if it has one."""
    phase = obj.get("status", {}).get("phase", PENDING)
    fact = events.CHECKPOINT_HELD_UP.named(_REASON)(message)
    return _with(obj, {"phase": phase, "message": message}), fact


def _of_legacy(resource: Resource) -> Report:
    def of_artifact(obj: KubeObject, message: str, now: datetime) -> tuple[KubeObject, Fact]:
        failure = Failure(_REASON, message)
        status = _with(obj, legacy.status_of(resource, obj, None, failure, now))
        return status, events.legacy_held_up(obj, artifact_of(obj), failure)

    return of_artifact


REPORTS: Mapping[Resource, Report] = {
    DYNAMO_GRAPH_DEPLOYMENTS: _of_graph,
    DYNAMO_COMPONENT_DEPLOYMENTS: _of_component,
    DYNAMO_CHECKPOINTS: _of_checkpoint,
    **{each: _of_legacy(each) for each in LEGACY},
}
