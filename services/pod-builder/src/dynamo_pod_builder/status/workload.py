"""How far the object that runs a component's pods is, whatever orchestrator it belongs to.

A Deployment, or a LeaderWorkerSet where replicas span nodes; with Grove a PodClique, or a PodCliqueScalingGroup.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_shared.api import objects
from dynamo_shared.api.gpus import GpuShape
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import is_there
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    POD_CLIQUE_SCALING_GROUPS,
    POD_CLIQUES,
    Resource,
)

from dynamo_pod_builder.status.pods import Trouble, quoted, summary

#: Of component deployments; what Grove makes belongs to whole graphs.
WORKLOADS: tuple[Resource, ...] = (DEPLOYMENTS, LEADER_WORKER_SETS)


@dataclass(frozen=True, slots=True)
class WorkloadReadiness:
    """Whether a workload serves as desired, and what is missing where it does not."""

    ready: bool
    message: str
    #: Why, where the workload's own controller cannot go on; a word for programs, as conditions have it.
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
#: By the words of the API server and its admission plugins, why it refuses pods; all else is its own `FailedCreate`.
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
    """Replicas that serve, and that are ready; only a Deployment distinguishes them."""
    if workload is None:
        return 0, 0
    serving = _SERVING[_kind(workload)]
    is_counted = "readyReplicas" in workload.get("status", {})
    return _count(workload, serving), _count(workload, "readyReplicas" if is_counted else serving)


def outlook(workload: KubeObject | None) -> tuple[object, ...]:
    """What people and rolling updates wait for: how many replicas serve, and whether it goes on."""
    state = readiness(workload)
    return (*ready_replicas(workload), state.ready, state.reason)


def reported(workload: KubeObject | None) -> tuple[object, ...]:
    """All that is read of a workload's status."""
    generation = ((workload or {}).get("status") or {}).get("currentPodCliqueSetGenerationHash")
    return readiness(workload), ready_replicas(workload), replicas_left(workload), replicas_of(workload), generation


def replicas_left(workload: KubeObject | None) -> int:
    """Replicas that there are, serving or not; what was asked for, while that is not yet acted on."""
    if workload is None:
        return 0
    generation = workload.get("status", {}).get("observedGeneration", objects.generation(workload))
    there = _count(workload, "replicas")
    return there if generation >= objects.generation(workload) else max(objects.replicas(workload), there)


def replicas_of(workload: KubeObject | None) -> KubeObject | None:
    """`status.component` of a DCD and `status.components[name]` of a DGD; None before there is a workload."""
    if workload is None:
        return None
    kind = _kind(workload)
    counted = _COUNTS if kind == DEPLOYMENTS.kind else ("replicas", "updatedReplicas", _SERVING[kind])
    return {
        "componentKind": kind,
        "componentNames": [workload["metadata"]["name"]],
        **{name: _count(workload, name) for name in counted},
    }


def with_gpus(replicas: KubeObject, shape: GpuShape | None) -> KubeObject:
    """Replicas of a component with its GPUs, which planners of Dynamo 1.6 read; None leaves them out: they are not known."""
    if shape is None:
        return replicas
    return {**replicas, "gpusPerEngine": shape.engine, "gpusPerReplica": shape.replica}


def is_observed(workload: KubeObject | None) -> bool:
    """Whether a workload's own controller has observed its spec as it is, as far as it says so."""
    if workload is None:
        return True
    observed = workload.get("status", {}).get("observedGeneration")
    if observed is None and _kind(workload) == LEADER_WORKER_SETS.kind:
        # Older releases of LeaderWorkerSet never say so.
        return True
    return bool((observed or 0) >= objects.generation(workload))


def readiness(workload: KubeObject | None) -> WorkloadReadiness:
    """Ready means: every desired replica of the newest template serves and no other is left."""
    if workload is None:
        return WorkloadReadiness(False, "nothing runs its pods yet")
    match _kind(workload):
        case DEPLOYMENTS.kind:
            return _deployment(workload)
        case LEADER_WORKER_SETS.kind:
            return _leader_worker_set(workload)
        case kind:
            return _of_grove(workload, "pods" if kind == POD_CLIQUES.kind else "groups")


def why_not(state: WorkloadReadiness, causes: Sequence[Trouble]) -> WorkloadReadiness:
    """The same readiness with what is known of the pods: their trouble in the message, and as the reason.

    Refused pods are reported first: users should not wait for what cannot come. Slowness is reported last.
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
        return WorkloadReadiness(False, "the Deployment's change is not yet observed")
    desired = spec.get("replicas", 1)
    available, updated, total = _counts(deployment)
    if _all_serve(deployment, desired, updated, available, total):
        return WorkloadReadiness(True, f"{desired} of {desired} replicas available")
    # The Deployment controller's own words say more than numbers: quota, deadline, refused pods.
    refused, late = objects.condition(deployment, "ReplicaFailure"), objects.condition(deployment, "Progressing")
    trouble = []
    reason = ""
    if late is not None and late["status"] == "False":
        trouble.append(_said(late))
        reason = TOO_LATE if late.get("reason") == TOO_LATE else ""
    if refused is not None and refused["status"] == "True":
        reason = _refused(refused.get("message", "")) or refused.get("reason", "")
        trouble.insert(0, _said(refused))
    counts = f"{available} of {desired} replicas available, {updated} updated, {total} in all"
    return WorkloadReadiness(False, "; ".join([counts, *trouble]), reason)


def _said(condition: KubeObject) -> str:
    """Reason and message of a condition of a Deployment, which may have none."""
    return f"{condition.get('reason', '')}: {condition.get('message', '')}"


def refusal_of(clique: KubeObject) -> tuple[str, str] | None:
    """Reason and words where Grove cannot create pods of a clique; None where no pod is missing, or for another reason.

    What Grove says of its last errors stays there when they are over.
    """
    if _count(clique, "replicas") >= objects.replicas(clique):
        return None
    for error in clique.get("status", {}).get("lastErrors") or ():
        if error.get("code") == "ERR_CREATE_POD":
            return refusal(str(error.get("description")).rpartition("cause: ")[2])
    return None


def stateful_set_lacking(groups: KubeObject | None, pods: Sequence[KubeObject]) -> str:
    """The StatefulSet that lacks pods of a LeaderWorkerSet: that of the leaders, or a group's; "" where none does, or is.

    Why is said by its Events alone.
    """
    if groups is None or _kind(groups) != LEADER_WORKER_SETS.kind:
        return ""
    name = objects.name(groups)
    sizes = Counter(map(_group_of, pods))
    if len(sizes) < groups.get("spec", {}).get("replicas", 1):
        return name
    return next((f"{name}-{group}" for group, count in sorted(sizes.items()) if count < _size(groups)), "")


def served_groups(workload: KubeObject | None, pods: Sequence[KubeObject]) -> int:
    """Groups of a LeaderWorkerSet up to the last one that serves, which goes first when there are to be fewer; 0 of others."""
    if workload is None or _kind(workload) != LEADER_WORKER_SETS.kind:
        return 0
    ready = Counter(_group_of(pod) for pod in pods if is_there(pod) and objects.is_true(pod, "Ready"))
    whole = (int(group) + 1 for group, count in ready.items() if group.isdecimal() and count >= _size(workload))
    return max((number for number in whole if number <= objects.replicas(workload)), default=0)


def _group_of(pod: KubeObject) -> str:
    return objects.labels(pod).get(labels.LWS_GROUP, "")


def _size(groups: KubeObject) -> int:
    """Pods of each group of a LeaderWorkerSet."""
    return int((groups.get("spec", {}).get("leaderWorkerTemplate") or {}).get("size", 1))


def refusal(message: str) -> tuple[str, str]:
    """Reason and words of a message that pods are refused, the same for each attempt, which has another name."""
    words = _FORBIDDEN.sub("", message)
    return _refused(words) or "FailedCreate", quoted(words)


def _refused(message: str) -> str:
    return next((word for part, word in _REFUSALS.items() if part in message), "")


def _leader_worker_set(workload: KubeObject) -> WorkloadReadiness:
    """A LeaderWorkerSet counts groups; right after a change, those of the former template."""
    if not is_observed(workload):
        return WorkloadReadiness(False, "the LeaderWorkerSet's change is not yet observed")
    desired = objects.replicas(workload)
    ready, updated, total = _counts(workload)
    if _all_serve(workload, desired, updated, ready, total):
        return WorkloadReadiness(True, f"{desired} of {desired} groups ready")
    return WorkloadReadiness(False, f"{ready} of {desired} groups ready, {updated} updated, {total} in all")


def _all_serve(workload: KubeObject, desired: int, updated: int, serving: int, total: int) -> bool:
    """Whether as many replicas as are desired serve, all of the newest template, and no others are there."""
    enough = min(updated, serving) >= desired == total
    return enough and (desired == 0 or objects.is_true(workload, "Available"))


def _of_grove(workload: KubeObject, unit: str) -> WorkloadReadiness:
    """A clique or a scaling group (reference behaviour, section 1.5): as many as desired, all of them serving, of this spec.

    Grove may go on counting pods as updated that are gone (grove issue 565).
    """
    if (refusal := refusal_of(workload)) is not None:
        reason, words = refusal
        return WorkloadReadiness(False, f"its pods are refused: {words}", reason)
    if not is_observed(workload):
        return WorkloadReadiness(False, f"Grove has not yet observed the present {_kind(workload)}")
    desired = objects.replicas(workload)
    serving, updated, total = _counts(workload)
    if serving == total == desired and updated >= desired:
        return WorkloadReadiness(True, f"{desired} of {desired} {unit} ready")
    return WorkloadReadiness(False, f"{serving} of {desired} {unit} ready, {updated} updated, {total} in all")


def _counts(workload: KubeObject) -> tuple[int, int, int]:
    """Replicas that serve, that are of the newest template, and that there are."""
    serving = _SERVING[_kind(workload)]
    return _count(workload, serving), _count(workload, "updatedReplicas"), _count(workload, "replicas")


def _count(workload: KubeObject, name: str) -> int:
    """A number of its status. Those of others may be below zero: a status that repeats one would be refused as a whole."""
    return max(0, workload.get("status", {}).get(name) or 0)


def _kind(workload: KubeObject) -> str:
    return str(workload.get("kind", DEPLOYMENTS.kind))
