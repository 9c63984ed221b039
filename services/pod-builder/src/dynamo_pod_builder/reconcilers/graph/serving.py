"""Which pods of a new generation of workers serve, and which old generations do: what a rolling update waits for.

Kubernetes has a pod ready before it serves. Frontends learn of a worker when it is ready, and admit it moments later. And workers
find only those of their own generation: a new decode worker serves nothing before there is a new prefill worker, so the old
workers of both stay until then. A rolling update that counts ready pods of each component for itself has a gap without any
worker (https://github.com/ai-dynamo/dynamo/issues/13622).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import is_there
from dynamo_shared.api.registry import labels
from dynamo_shared.api.untrusted.times import moment

from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.requeue import earliest
from dynamo_pod_builder.status.workload import ready_replicas

#: How long after a pod is ready its frontends have admitted it.
ADMISSION = timedelta(seconds=5)
#: How long pods of all components wait for a node, each next to an old one, before the update goes on with those that have one:
#: Kubernetes' own limit for the progress of a Deployment. GPUs may be too few for both generations of more than one component.
NO_ROOM = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class ServingPods:
    """Pods of the new generation that serve, by component."""

    pods: Mapping[str, int]
    #: Seconds until there may be more without an event; None where an event reports it.
    again: float | None = None
    #: Hashes of the old generations that serve.
    old: frozenset[str] = frozenset()
    #: Whether new pods have waited for a node for as long as the old ones may keep theirs.
    no_room: bool = False


def serving(
    workers: Mapping[str, KubeObject], leftovers: Mapping[str, Sequence[KubeObject]], observed: Observed
) -> ServingPods:
    """What serves of `workers`, the desired component deployments of all workers by component. Pure."""
    workloads = {name: observed.workloads.get(objects.name(child)) for name, child in workers.items()}
    available = {name: ready_replicas(workload)[0] for name, workload in workloads.items()}
    # Most graphs have one generation: nothing is read of their pods.
    if not leftovers:
        return ServingPods(available)
    pods = {name: observed.pods_of(workload) for name, workload in workloads.items()}
    old = _serving_generations(leftovers, observed)
    waits = [wait for each in pods.values() for wait in _until(each, "PodScheduled", "False", NO_ROOM, observed.now)]
    if any(wait <= 0 for wait in waits):
        return ServingPods(available, None, old, no_room=True)
    if waits and not old:
        # No node is kept for a generation that does not serve.
        return ServingPods(available, earliest(*waits), old)
    for name, each in pods.items():
        # Of a node whose clock is further ahead than that, no time is known.
        fresh = [
            wait for wait in _until(each, "Ready", "True", ADMISSION, observed.now) if 0 < wait <= 2 * ADMISSION.seconds
        ]
        available[name] = max(0, available[name] - len(fresh))
        waits += fresh
    desired = {name: child["spec"].get("replicas", 1) for name, child in workers.items()}
    return ServingPods(paired(available, desired), earliest(*waits), old)


def paired(available: Mapping[str, int], desired: Mapping[str, int]) -> dict[str, int]:
    """Of the available pods of a generation, by component, those that have their share of the pods of all other components."""
    shares = [(available[name], whole) for name, whole in desired.items() if whole > 0]
    return {
        name: min([available[name], *(part * count // whole for part, whole in shares)])
        for name, count in desired.items()
    }


def _serving_generations(leftovers: Mapping[str, Sequence[KubeObject]], observed: Observed) -> frozenset[str]:
    """Hashes of the old generations that serve: each of their components that has replicas has one that is available."""
    generations: dict[str, list[int]] = defaultdict(list)
    for dcd in (dcd for each in leftovers.values() for dcd in each):
        if dcd["spec"].get("replicas", 1) > 0:
            available = ready_replicas(observed.workloads.get(objects.name(dcd)))[0]
            generations[generation_of(dcd)].append(available)
    return frozenset(generation for generation, counts in generations.items() if min(counts) > 0)


def generation_of(dcd: KubeObject) -> str:
    """The hash of a component deployment's workers; empty where they are from before there were hashes."""
    return objects.labels(dcd).get(labels.WORKER_HASH, "")


def _until(pods: Iterable[KubeObject], type_: str, status: str, within: timedelta, now: datetime) -> list[float]:
    """Of each pod with this condition the seconds until it has had it for so long; 0 or less where it has."""
    observed = [objects.condition(pod, type_) for pod in pods if is_there(pod)]
    since = [
        moment(each.get("lastTransitionTime")) for each in observed if each is not None and each["status"] == status
    ]
    return [(begun + within - now).total_seconds() for begun in since if begun is not None]
