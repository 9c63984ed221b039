"""Every Event and every NATS event of the pod-builder, in one place."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
from dynamo_shared.bus import EventPublisher, checkpoint_data, deployment_data
from dynamo_shared.bus.specifications import CHECKPOINT, GRAPH_DEPLOYMENT
from dynamo_shared.bus.specifications.legacy import LegacyDeploymentData
from dynamo_shared.kube.event_series import EventType
from dynamo_shared.kube.events import EventRecorder

from dynamo_pod_builder.artifact_images import Waiting
from dynamo_pod_builder.status.component import Failure
from dynamo_pod_builder.status.graph import ROUTINE


class GraphReporter:
    """Reports graphs to users (Kubernetes Events) and programs (NATS)."""

    def __init__(self, recorder: EventRecorder, publisher: EventPublisher) -> None:
        self._recorder = recorder
        self._publisher = publisher
        #: uids of graphs whose first status is not yet written.
        self._new: set[str] = set()

    def made(self, graph: KubeObject, created: list[str]) -> None:
        """Children of a graph came into being."""
        self._normal(graph, "Created", "Create", f"Created {', '.join(created)}")

    def corrected(self, graph: KubeObject, updated: list[str]) -> None:
        """Children of a graph were brought back to what the spec says."""
        self._normal(graph, "Updated", "Update", f"Updated {', '.join(updated)}")

    def removed(self, graph: KubeObject, deleted: Sequence[KubeObject]) -> None:
        """Children that a graph no longer names were deleted."""
        adapters = [item for item in deleted if item["kind"] == DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind]
        for reason, items in (
            ("AdapterDeleted", adapters),
            ("Deleted", [item for item in deleted if item not in adapters]),
        ):
            if items:
                names = ", ".join(f"{item['kind']} {item['metadata']['name']}" for item in items)
                self._normal(graph, reason, "Delete", f"Deleted {names}")

    def rollout_started(self, graph: KubeObject, components: Sequence[str]) -> None:
        """A managed rolling update of workers began."""
        self._normal(
            graph, "RollingUpdateStarted", "RollingUpdate", f"Rolling update of {', '.join(components)} started"
        )

    def rollout_completed(self, graph: KubeObject, components: Sequence[str]) -> None:
        """A managed rolling update of workers ended."""
        self._normal(
            graph, "RollingUpdateCompleted", "RollingUpdate", f"Rolling update of {', '.join(components)} completed"
        )

    def restart(self, graph: KubeObject, status: KubeObject) -> None:
        """A restart of pods entered a phase; `status` is `status.restart`."""
        id_, phase = status["observedID"], status["phase"]
        if phase == "Superseded":
            message = f"Restart {id_} is superseded by a rolling update of workers; ask for another one after it"
            self._recorder.record(graph, type_="Warning", reason="RestartSuperseded", message=message, action="Restart")
        elif phase == "Completed":
            self._normal(graph, "RestartCompleted", "Restart", f"Restart {id_} completed")
        else:
            self._normal(graph, "RestartStarted", "Restart", f"Restart {id_} started")

    def engine_ended(self, pod: KubeObject, members: Sequence[KubeObject]) -> None:
        """A pod of an engine that fails over ended, and all pods of that engine are replaced."""
        names = ", ".join(sorted(member["metadata"]["name"] for member in members))
        message = f"Pod ended ({pod['status']['phase']}); its engine is replaced: deleting {names}"
        self._recorder.record(pod, type_="Warning", reason="FailoverCascade", message=message, action="Failover")

    def topology_lost(self, graph: KubeObject, reason: str, message: str) -> None:
        """Domains that a graph's pods shall share are not there."""
        self._recorder.record(graph, type_="Warning", reason=reason, message=message, action="Schedule")

    def component_failed(self, component: KubeObject, reason: str, message: str) -> None:
        """A component cannot be created."""
        self._recorder.record(component, type_="Warning", reason=reason, message=message, action="Reconcile")

    def observed(self, graph: KubeObject) -> None:
        """A graph has no status yet; reported once."""
        uid = graph["metadata"]["uid"]
        if uid not in self._new:
            self._new.add(uid)
            self._publish(graph, "created", {"state": "initializing"})

    def changed(self, graph: KubeObject, status: KubeObject) -> None:
        """A graph's state or its reason changed: an Event where it became ready, failed or is stuck, a NATS event always."""
        self._new.discard(graph["metadata"]["uid"])
        ready = next(entry for entry in status["conditions"] if entry["type"] == "Ready")
        state = status["state"]
        if state == "successful":
            self._normal(graph, "Ready", "Reconcile", "All components serve")
        elif state == "failed":
            self._recorder.record(graph, type_="Warning", reason="Failed", message=ready["message"], action="Reconcile")
        elif ready["reason"] not in ROUTINE:
            self._recorder.record(
                graph, type_="Warning", reason=ready["reason"], message=ready["message"], action="Reconcile"
            )
        event = {"successful": "ready", "failed": "failed"}.get(state, "progressing")
        self._publish(graph, event, status)

    def gone(self, graph: KubeObject) -> None:
        """A graph was deleted."""
        self._new.discard(graph["metadata"]["uid"])
        self._publish(graph, "deleted", graph.get("status", {}))

    def _normal(self, graph: KubeObject, reason: str, action: str, message: str) -> None:
        self._recorder.record(graph, type_="Normal", reason=reason, message=message, action=action)

    def _publish(self, graph: KubeObject, event: str, status: KubeObject) -> None:
        data = deployment_data(graph, status)
        self._publisher.publish(kind=GRAPH_DEPLOYMENT, obj=graph, event=event, reason=data.reason, data=data)


class LegacyReporter:
    """Reports what keeps objects of kinds before graphs from becoming a graph; the graph reports the rest."""

    def __init__(self, recorder: EventRecorder, publisher: EventPublisher) -> None:
        self._recorder = recorder
        self._publisher = publisher

    def held_up(self, obj: KubeObject, artifact: str, obstacle: Waiting | Failure) -> None:
        """Its image is on its way, or something is wrong."""
        reason, message = obstacle.reason, obstacle.message
        if isinstance(obstacle, Waiting):
            self._recorder.record(obj, type_="Normal", reason=reason, message=message, action="Wait")
            return
        self._recorder.record(obj, type_="Warning", reason=reason, message=message, action="Reconcile")
        data = LegacyDeploymentData(
            name=objects.name(obj),
            namespace=objects.namespace(obj),
            artifact=artifact,
            reason=reason,
            message=message,
            generation=str(objects.generation(obj)),
        )
        self._publisher.publish(kind=obj["kind"], obj=obj, event="failed", reason=reason, data=data)


class CheckpointReporter:
    """Reports checkpoints to users and programs."""

    def __init__(self, recorder: EventRecorder, publisher: EventPublisher) -> None:
        self._recorder = recorder
        self._publisher = publisher

    def changed(self, checkpoint: KubeObject, status: KubeObject, reason: str, *, entered: bool) -> None:
        """A checkpoint entered a phase, or is in it for another reason now."""
        phase, message = status["phase"], status["message"]
        if phase == "Creating" and not entered:
            # What held the Job up is over, which is not reported, or something does.
            if reason != "JobRunning":
                self._record(checkpoint, "Warning", reason, message)
            return
        if phase == "Failed":
            self._record(checkpoint, "Warning", "CheckpointFailed", f"{reason}: {message}")
        elif phase == "Pending":
            self._record(checkpoint, "Warning", "CheckpointWaiting", f"{reason}: {message}")
        elif phase == "Ready":
            self._record(checkpoint, "Normal", "CheckpointReady", message)
        else:
            self._record(checkpoint, "Normal", "CheckpointJobCreated", message)
        if event := {"Creating": "creating", "Ready": "ready", "Failed": "failed"}.get(phase):
            data = checkpoint_data(checkpoint, status, reason)
            self._publisher.publish(kind=CHECKPOINT, obj=checkpoint, event=event, reason=reason, data=data)

    def _record(self, checkpoint: KubeObject, type_: EventType, reason: str, message: str) -> None:
        self._recorder.record(checkpoint, type_=type_, reason=reason, message=message, action="Checkpoint")
