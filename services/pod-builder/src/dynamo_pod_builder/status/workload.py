"""The progress of the object that runs a component's pods, for every orchestrator.

A Deployment, or a LeaderWorkerSet if replicas span nodes; with Grove a PodClique, or a PodCliqueScalingGroup.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_shared.api import objects
from dynamo_shared.api.gpus import GpuShape
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import is_active
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    POD_CLIQUE_SCALING_GROUPS,
    POD_CLIQUES,
    Resource,
)

from dynamo_pod_builder.status.pods import Trouble, quoted, summary

#: Workloads of component deployments; Grove's objects belong to whole graphs.
WORKLOADS: tuple[Resource, ...] = (DEPLOYMENTS, LEADER_WORKER_SETS)


@dataclass(frozen=True, slots=True)
class WorkloadReadiness:
    """Whether a workload serves as desired, and if not, what is missing."""

    ready: bool
    message: str
    #: Why, if the workload's own controller is stuck; for programs, like the reason of a condition.
    reason: str = ""


#: The status field of each kind that counts serving replicas.
_SERVING = {
    DEPLOYMENTS.kind: "availableReplicas",
    LEADER_WORKER_SETS.kind: "readyReplicas",
    POD_CLIQUES.kind: "readyReplicas",
    POD_CLIQUE_SCALING_GROUPS.kind: "availableReplicas",
}
#: The reason of a Deployment whose pods take longer than its `progressDeadlineSeconds`.
TOO_LATE = "ProgressDeadlineExceeded"
QUOTA_EXCEEDED = "QuotaExceeded"
#: Why pods are refused, by phrases of the API server and its admission plugins; all other refusals are `FailedCreate`.
_REFUSALS = {
    "exceeded quota": QUOTA_EXCEEDED,
    "failed quota": QUOTA_EXCEEDED,
    "denied the request": "WebhookRefused",
    "failed calling webhook": "WebhookUnavailable",
    "violates PodSecurity": "PodSecurityRefused",
    "error looking up service account": "ServiceAccountMissing",
}
_FORBIDDEN = re.compile(r'^pods "[^"]*" is forbidden: ')
_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")


def ready_replicas(workload: KubeObject | None) -> tuple[int, int]:
    """Serving and ready replicas; only a Deployment distinguishes them."""
    if workload is None:
        return 0, 0
    serving = _SERVING[_kind(workload)]
    is_counted = "readyReplicas" in workload.get("status", {})
    return _count(workload, serving), _count(workload, "readyReplicas" if is_counted else serving)


def outlook(workload: KubeObject | None) -> tuple[object, ...]:
    """What users and rolling updates wait for: the number of serving replicas, and whether it can continue."""
    state = readiness(workload)
    return (*ready_replicas(workload), state.ready, state.reason)


def reported(workload: KubeObject | None) -> tuple[object, ...]:
    """Everything that is read from a workload's status."""
    generation = ((workload or {}).get("status") or {}).get("currentPodCliqueSetGenerationHash")
    return readiness(workload), ready_replicas(workload), replicas_left(workload), replicas_of(workload), generation


def replicas_left(workload: KubeObject | None) -> int:
    """Existing replicas, serving or not; at least the desired number while that is not yet acted on."""
    if workload is None:
        return 0
    generation = workload.get("status", {}).get("observedGeneration", objects.generation(workload))
    existing = _count(workload, "replicas")
    return existing if generation >= objects.generation(workload) else max(objects.replicas(workload), existing)


def replicas_of(workload: KubeObject | None) -> KubeObject | None:
    """`status.component` of a DCD and `status.components[name]` of a DGD; None before there is a workload."""
    if workload is None:
        return None
    kind = _kind(workload)
    counted = _COUNTS if kind == DEPLOYMENTS.kind else ("replicas", "updatedReplicas", _SERVING[kind])
    counts = {name: _count(workload, name) for name in counted}
    # Grove may keep counting deleted pods as updated (grove issue 565), and planners wait until the counts agree.
    counts["updatedReplicas"] = min(counts["updatedReplicas"], counts["replicas"])
    return {"componentKind": kind, "componentNames": [workload["metadata"]["name"]], **counts}


def with_gpus(replicas: KubeObject, shape: GpuShape | None) -> KubeObject:
    """Replicas of a component with its GPUs, which planners of Dynamo 1.6 read; `shape` None: unknown."""
    if shape is None:
        return replicas
    return {**replicas, "gpusPerEngine": shape.engine, "gpusPerReplica": shape.replica}


def is_observed(workload: KubeObject | None) -> bool:
    """Whether a workload's own controller has observed its present spec, if it reports that."""
    if workload is None:
        return True
    observed = workload.get("status", {}).get("observedGeneration")
    if observed is None and _kind(workload) == LEADER_WORKER_SETS.kind:
        # Older releases of LeaderWorkerSet never report it.
        return True
    return bool((observed or 0) >= objects.generation(workload))


def readiness(workload: KubeObject | None) -> WorkloadReadiness:
    """Ready means: every desired replica of the newest template serves and no other is left."""
    if workload is None:
        return WorkloadReadiness(False, "its workload does not exist yet")
    match _kind(workload):
        case DEPLOYMENTS.kind:
            return _deployment(workload)
        case LEADER_WORKER_SETS.kind:
            return _leader_worker_set(workload)
        case kind:
            return _of_grove(workload, "pods" if kind == POD_CLIQUES.kind else "groups")


def why_not(state: WorkloadReadiness, causes: Sequence[Trouble]) -> WorkloadReadiness:
    """The same readiness with the troubles of the pods in the message, and as the reason.

    Refused pods are reported first: users should not wait for what will never become ready. Slowness is reported last.
    """
    if state.ready or not causes:
        return state
    reason = state.reason if state.reason and state.reason != TOO_LATE else causes[0].reason
    return WorkloadReadiness(False, f"{state.message}; {summary(causes)}", reason)


def _deployment(deployment: KubeObject) -> WorkloadReadiness:
    spec = deployment.get("spec", {})
    if spec.get("paused"):
        return WorkloadReadiness(False, "the Deployment is paused")
    if not is_observed(deployment):
        return WorkloadReadiness(False, "the Deployment controller has not observed the latest change yet")
    desired = spec.get("replicas", 1)
    available, updated, total = counts = _counts(deployment)
    if _all_serve(deployment, desired, counts):
        return WorkloadReadiness(True, f"{desired} of {desired} replicas available")
    # The Deployment controller's own messages say more than numbers: quota, deadline, refused pods.
    refused, late = objects.condition(deployment, "ReplicaFailure"), objects.condition(deployment, "Progressing")
    trouble = []
    reason = ""
    if late is not None and late["status"] == "False":
        trouble.append(_reason_and_message(late))
        reason = TOO_LATE if late.get("reason") == TOO_LATE else ""
    if refused is not None and refused["status"] == "True":
        reason = _refused(refused.get("message", "")) or refused.get("reason", "")
        trouble.insert(0, _reason_and_message(refused))
    progress = f"{available} of {desired} replicas available{_rolling(desired, updated, total)}"
    return WorkloadReadiness(False, "; ".join([progress, *trouble]), reason)


def _rolling(desired: int, updated: int, total: int) -> str:
    """The other counts, while an update or a change of the number is under way."""
    return "" if desired == updated == total else f", {updated} updated, {total} in total"


def _reason_and_message(condition: KubeObject) -> str:
    """Reason and message of a Deployment's condition; both may be missing."""
    return f"{condition.get('reason', '')}: {condition.get('message', '')}"


def refusal_of(clique: KubeObject) -> tuple[str, str] | None:
    """Reason and message if Grove cannot create pods of a clique; None if no pod is missing, or for another reason.

    Grove does not clear its last errors after they are over.
    """
    if _count(clique, "replicas") >= objects.replicas(clique):
        return None
    for error in clique.get("status", {}).get("lastErrors") or ():
        if error.get("code") == "ERR_CREATE_POD":
            return refusal(str(error.get("description")).rpartition("cause: ")[2])
    return None


def stateful_set_lacking(groups: KubeObject | None, pods: Sequence[KubeObject]) -> str:
    """The StatefulSet of a LeaderWorkerSet that lacks pods: the leaders' or a group's; "" if none does.

    Only its Events say why.
    """
    if groups is None or _kind(groups) != LEADER_WORKER_SETS.kind:
        return ""
    name = objects.name(groups)
    sizes = Counter(map(_group_of, pods))
    if len(sizes) < groups.get("spec", {}).get("replicas", 1):
        return name
    return next((f"{name}-{group}" for group, count in sorted(sizes.items()) if count < _size(groups)), "")


def served_groups(workload: KubeObject | None, pods: Sequence[KubeObject]) -> int:
    """Groups of a LeaderWorkerSet up to the last serving one, which goes first on scale-down; 0 for other kinds."""
    if workload is None or _kind(workload) != LEADER_WORKER_SETS.kind:
        return 0
    ready = Counter(_group_of(pod) for pod in pods if is_active(pod) and objects.is_true(pod, "Ready"))
    whole = (int(group) + 1 for group, count in ready.items() if group.isdecimal() and count >= _size(workload))
    return max((number for number in whole if number <= objects.replicas(workload)), default=0)


def _group_of(pod: KubeObject) -> str:
    return objects.labels(pod).get(labels.LWS_GROUP, "")


def _size(groups: KubeObject) -> int:
    """Pods in each group of a LeaderWorkerSet."""
    return int((groups.get("spec", {}).get("leaderWorkerTemplate") or {}).get("size", 1))


def refusal(message: str) -> tuple[str, str]:
    """Reason and message of a refusal of pods, without the pod's name, which differs in each attempt."""
    words = _FORBIDDEN.sub("", message)
    return _refused(words) or "FailedCreate", quoted(words)


def _refused(message: str) -> str:
    return next((word for part, word in _REFUSALS.items() if part in message), "")


def _leader_worker_set(workload: KubeObject) -> WorkloadReadiness:
    """A LeaderWorkerSet counts groups; right after a change, those of the previous template."""
    if not is_observed(workload):
        return WorkloadReadiness(False, "the LeaderWorkerSet controller has not observed the latest change yet")
    desired = objects.replicas(workload)
    ready, updated, total = counts = _counts(workload)
    if _all_serve(workload, desired, counts):
        return WorkloadReadiness(True, f"{desired} of {desired} groups ready")
    return WorkloadReadiness(False, f"{ready} of {desired} groups ready{_rolling(desired, updated, total)}")


def _all_serve(workload: KubeObject, desired: int, counts: tuple[int, int, int]) -> bool:
    """Whether exactly the desired number of replicas exists, and all serve with the newest template."""
    serving, updated, total = counts
    enough = min(updated, serving) >= desired == total
    return enough and (desired == 0 or objects.is_true(workload, "Available"))


def _of_grove(workload: KubeObject, unit: str) -> WorkloadReadiness:
    """A clique or a scaling group (reference behaviour, section 1.5): the desired number, all serving, of this spec.

    Grove may keep counting deleted pods as updated (grove issue 565).
    """
    if (refusal := refusal_of(workload)) is not None:
        reason, words = refusal
        return WorkloadReadiness(False, f"its pods cannot be created: {words}", reason)
    if not is_observed(workload):
        return WorkloadReadiness(False, f"Grove has not observed the latest change of the {_kind(workload)} yet")
    desired = objects.replicas(workload)
    serving, updated, total = _counts(workload)
    if serving == total == desired and updated >= desired:
        return WorkloadReadiness(True, f"{desired} of {desired} {unit} ready")
    return WorkloadReadiness(False, f"{serving} of {desired} {unit} ready{_rolling(desired, updated, total)}")


def _counts(workload: KubeObject) -> tuple[int, int, int]:
    """The number of serving, of updated and of existing replicas."""
    serving = _SERVING[_kind(workload)]
    return _count(workload, serving), _count(workload, "updatedReplicas"), _count(workload, "replicas")


def _count(workload: KubeObject, name: str) -> int:
    """A number of its status, at least 0: the API server would refuse a status that repeats a negative number."""
    return max(0, workload.get("status", {}).get(name) or 0)


def _kind(workload: KubeObject) -> str:
    return str(workload.get("kind", DEPLOYMENTS.kind))
