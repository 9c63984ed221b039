"""What the pod-builder reports: reasons of Kubernetes Events, and CloudEvents."""

from collections.abc import Iterator, Sequence

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import Condition
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.api.wording import many
from dynamo_shared.runtime.facts import NOTHING, EventReason, Fact
from dynamo_shared.wire.specifications.checkpoint import checkpoint_data
from dynamo_shared.wire.specifications.deployment import component_deployment_data, deployment_data
from dynamo_shared.wire.specifications.legacy import LegacyDeploymentData

from dynamo_pod_builder.applier import SetBack
from dynamo_pod_builder.artifact_images import Waiting
from dynamo_pod_builder.render import names
from dynamo_pod_builder.snapshot_starts import PENDING as CHECKPOINTS_PENDING
from dynamo_pod_builder.snapshot_starts import READY as CHECKPOINTS_READY
from dynamo_pod_builder.status.component import AVAILABLE, FAILURES, NOT_READY, PREDECESSOR_REMAINS, Failure
from dynamo_pod_builder.status.graph import ROUTINE

#: Field manager of Kubernetes' own scaling: the name of the program's file, which may include its version.
AUTOSCALER = "kube-controller-manager"

CREATED = EventReason("Created", "Children of a graph were created.", action="Create")
UPDATED = EventReason("Updated", "Children of a graph were reset to its spec.", action="Update")
REPLICAS_SET_BACK = EventReason(
    "ReplicasSetBack", "Another client set the replicas of a child; the platform reset them.", "Warning", "Scale"
)
DELETED = EventReason("Deleted", "Children that a graph no longer names were deleted.", action="Delete")
ADAPTER_DELETED = EventReason(
    "AdapterDeleted", "Scaling adapters that a graph no longer names were deleted.", action="Delete"
)
ROLLOUT_STARTED = EventReason("RollingUpdateStarted", "A rolling update of workers began.", action="RollingUpdate")
ROLLOUT_COMPLETED = EventReason("RollingUpdateCompleted", "A rolling update of workers ended.", action="RollingUpdate")
RESTART_STARTED = EventReason("RestartStarted", "A restart of a graph's pods began.", action="Restart")
RESTART_COMPLETED = EventReason("RestartCompleted", "A restart of a graph's pods ended.", action="Restart")
RESTART_SUPERSEDED = EventReason(
    "RestartSuperseded", "A rolling update of workers superseded a restart.", "Warning", "Restart"
)
FAILOVER = EventReason(
    "FailoverCascade",
    "A pod of an engine with failover ended; the platform replaces all pods of the engine.",
    "Warning",
    "Failover",
)
LABEL_OF_NODE_MISSING = EventReason(
    "TopologyLabelMissing", "A worker waits for a label of its node that its pod cannot get.", "Warning", "Label"
)
READY = EventReason("Ready", "All components of a graph serve.")
FAILED = EventReason("Failed", "A graph cannot become ready without a change.", "Warning")
GRAPH_STUCK = EventReason("", "A graph is stuck.", "Warning", condition="Ready")
GRAPH_CHECKPOINTS = EventReason(
    "",
    "Checkpoints from which a graph's components start are pending, or ready.",
    action="Checkpoint",
    condition="CheckpointsReady",
)
GRAPH_CHECKPOINTS_FAILED = EventReason(
    "", "A graph's components cannot start from a checkpoint.", "Warning", "Checkpoint", "CheckpointsReady"
)
PLANNER_UNINFORMED = EventReason(
    "", "A planner among a graph's components cannot learn which workers serve.", "Warning", "Plan", "PlannerInformed"
)
TOPOLOGY_LOST = EventReason(
    "",
    "Topology domains that a graph's pods must share do not exist.",
    "Warning",
    "Schedule",
    "TopologyLevelsAvailable",
)
COMPONENT_FAILED = EventReason("", "A component cannot be created.", "Warning", condition=AVAILABLE)
COMPONENT_STUCK = EventReason(
    "", "Pods of a component deployment without a graph do not start.", "Warning", condition=AVAILABLE
)
PULL_SECRET_MALFORMED = EventReason("MalformedPullSecret", "A pull secret cannot be read.", "Warning", "Read")
IMAGE_PENDING = EventReason(
    "", "A DynamoDeployment or DynamoNimDeployment waits for its image.", action="Wait", condition="Ready"
)
LEGACY_FAILED = EventReason(
    "", "A DynamoDeployment or DynamoNimDeployment cannot become a graph.", "Warning", condition="Ready"
)
CHECKPOINT_JOB_CREATED = EventReason("CheckpointJobCreated", "A Job takes a checkpoint.", action="Checkpoint")
CHECKPOINT_READY = EventReason("CheckpointReady", "Pods can start from a checkpoint.", action="Checkpoint")
CHECKPOINT_WAITING = EventReason("CheckpointWaiting", "A checkpoint cannot be taken yet.", "Warning", "Checkpoint")
CHECKPOINT_FAILED = EventReason("CheckpointFailed", "A checkpoint could not be taken.", "Warning", "Checkpoint")
CHECKPOINT_HELD_UP = EventReason(
    "", "The Job of a checkpoint cannot continue.", "Warning", "Checkpoint", "the checkpoint's last condition"
)


def label_of_node_missing(node: str, label: str, refused: str = "") -> Fact:
    """A pod cannot get a label of its node: the node lacks it, or `refused` says what prevents it."""
    why = (
        f": {refused}"
        if refused
        else ", which the node does not have: label the node, or name another label in the policy"
    )
    return LABEL_OF_NODE_MISSING(f"Cannot copy label {label} of node {node}{why}")


def created(children: Sequence[str]) -> Fact:
    """Children of a graph were created."""
    return CREATED(f"Created {', '.join(children)}")


def updated(children: Sequence[str]) -> Fact:
    """Children of a graph were reset to the spec."""
    return UPDATED(f"Updated {', '.join(children)}")


def replicas_set_back(owner: KubeObject, component: str, child: KubeObject, rival: SetBack) -> Fact:
    """Another client set the replicas of a child. `owner`: the graph, or the component deployment without a graph."""
    name, kind = objects.name(owner), owner["kind"]
    writer = f"{rival.writer} (a HorizontalPodAutoscaler)" if rival.writer.startswith(AUTOSCALER) else rival.writer
    instead = f"scale {kind} {name}"
    if kind == DYNAMO_GRAPH_DEPLOYMENTS.kind:
        instead = (
            f"set `scalingAdapter: {{}}` for component {component}, and scale "
            f"{DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind} {names.component_deployment(name, component)}"
        )
    return REPLICAS_SET_BACK(
        f"{writer} scaled {child['kind']} {objects.name(child)} to {many(rival.replicas, 'replica')}; the platform reset it to "
        f"{child['spec']['replicas']}, the number in {kind} {name}. Instead, {instead}"
    )


def deleted(children: Sequence[KubeObject]) -> Iterator[Fact]:
    """Children that a graph no longer names were deleted."""
    adapters = [item for item in children if item["kind"] == DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind]
    for reason, items in (
        (ADAPTER_DELETED, adapters),
        (DELETED, [item for item in children if item not in adapters]),
    ):
        if items:
            names = ", ".join(f"{item['kind']} {objects.name(item)}" for item in items)
            yield reason(f"Deleted {names}")


def rollout_started(components: Sequence[str]) -> Fact:
    """A managed rolling update of workers began."""
    return ROLLOUT_STARTED(f"Rolling update of {', '.join(components)} started")


def rollout_completed(components: Sequence[str]) -> Fact:
    """A managed rolling update of workers ended."""
    return ROLLOUT_COMPLETED(f"Rolling update of {', '.join(components)} completed")


def restart_entered(status: KubeObject) -> Fact:
    """A restart of pods entered a phase; `status` is `status.restart`."""
    id_, phase = status["observedID"], status["phase"]
    if phase == "Superseded":
        words = f"A rolling update of workers superseded restart {id_}; request another restart after the update"
        return RESTART_SUPERSEDED(words)
    if phase == "Completed":
        return RESTART_COMPLETED(f"Restart {id_} completed")
    return RESTART_STARTED(f"Restart {id_} started")


def engine_ended(pod: KubeObject, members: Sequence[KubeObject]) -> Fact:
    """A pod of an engine that fails over ended, and all pods of that engine are replaced."""
    names = ", ".join(sorted(map(objects.name, members)))
    return FAILOVER(f"Pod ended ({pod['status']['phase']}); replacing its engine: deleting {names}")


def graph_observed(graph: KubeObject) -> Fact:
    """A graph has no status yet."""
    return _of_graph(graph, "created", {"state": "initializing"})


def graph_changed(graph: KubeObject, status: KubeObject) -> Fact:
    """A graph's state or its reason changed: for users if it became ready, failed or is stuck, for programs always."""
    ready = next(entry for entry in status["conditions"] if entry["type"] == "Ready")
    if status["state"] == "successful":
        return _of_graph(graph, "ready", status, READY, "All components serve")
    if status["state"] == "failed":
        return _of_graph(graph, "failed", status, FAILED, ready["message"])
    reason = None if ready["reason"] in ROUTINE else GRAPH_STUCK.named(ready["reason"])
    return _of_graph(graph, "progressing", status, reason, ready["message"])


def graph_checkpoints_changed(graph: KubeObject, status: KubeObject, condition: Condition) -> Fact:
    """The checkpoints from which the components of a graph start became ready, failed, or are pending."""
    reason, message = condition["reason"], condition["message"]
    fine = reason in (CHECKPOINTS_PENDING, CHECKPOINTS_READY)
    data = deployment_data(graph, status, "CheckpointsReady")
    event_reason = GRAPH_CHECKPOINTS if fine else GRAPH_CHECKPOINTS_FAILED
    return event_reason.named(reason)(message, "checkpoints", data, f"{reason}: {message}")


def planner_uninformed(graph: KubeObject, status: KubeObject, condition: Condition) -> Fact:
    """A planner among the components of a graph cannot learn which workers serve."""
    reason, message = condition["reason"], condition["message"]
    data = deployment_data(graph, status, condition["type"])
    return PLANNER_UNINFORMED.named(reason)(message, "planner-uninformed", data, f"{reason}: {message}")


def graph_gone(graph: KubeObject) -> Fact:
    """A graph was deleted."""
    return _of_graph(graph, "deleted", graph.get("status", {}))


def component_changed(component: KubeObject, status: KubeObject) -> Fact:
    """The reported status of a component deployment without a graph changed."""
    available = next(entry for entry in status["conditions"] if entry["type"] == AVAILABLE)
    reason, message = available["reason"], available["message"]
    data = component_deployment_data(component, status)
    if available["status"] == "True":
        return Fact(event="ready", data=data, identity=reason)
    if reason in FAILURES:
        return COMPONENT_FAILED.named(reason)(message, "failed", data, reason)
    if reason == PREDECESSOR_REMAINS or reason.endswith(NOT_READY):
        return Fact(event="progressing", data=data, identity=reason)
    return COMPONENT_STUCK.named(reason)(message, "progressing", data, reason)


def component_gone(component: KubeObject) -> Fact:
    """A component deployment without a graph was deleted."""
    return Fact(event="deleted", data=component_deployment_data(component))


def legacy_held_up(obj: KubeObject, artifact: str, obstacle: Waiting | Failure) -> Fact:
    """The image of an object of a kind before graphs is pending, or something is wrong."""
    reason, message = obstacle.reason, obstacle.message
    if isinstance(obstacle, Waiting):
        return IMAGE_PENDING.named(reason)(message)
    data = LegacyDeploymentData(
        name=objects.name(obj),
        namespace=objects.namespace(obj),
        artifact=artifact,
        reason=reason,
        message=message,
        generation=str(objects.generation(obj)),
    )
    return LEGACY_FAILED.named(reason)(message, "failed", data, reason)


def checkpoint_changed(checkpoint: KubeObject, status: KubeObject, reason: str, *, entered: bool) -> Fact:
    """A checkpoint entered a phase, or its reason in that phase changed."""
    phase, message = status["phase"], status["message"]
    if phase == "Creating" and not entered:
        # Either an obstacle of the Job ended, which is not reported, or a new one exists.
        return CHECKPOINT_HELD_UP.named(reason)(message) if reason != "JobRunning" else NOTHING
    if phase == "Pending":
        return CHECKPOINT_WAITING(f"{reason}: {message}")
    data = checkpoint_data(checkpoint, status, reason)
    if phase == "Failed":
        return CHECKPOINT_FAILED(f"{reason}: {message}", "failed", data, reason)
    if phase == "Ready":
        return CHECKPOINT_READY(message, "ready", data, reason)
    return CHECKPOINT_JOB_CREATED(message, "creating", data, reason)


def _of_graph(
    graph: KubeObject, event: str, status: KubeObject, reason: EventReason | None = None, message: str = ""
) -> Fact:
    data = deployment_data(graph, status)
    if reason is None:
        return Fact(event=event, data=data, identity=data.reason)
    return reason(message, event, data, data.reason)
