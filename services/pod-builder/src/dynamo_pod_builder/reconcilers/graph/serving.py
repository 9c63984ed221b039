"""Which pods of a new generation of workers serve, and which old generations do: what a rolling update waits for.

Kubernetes has a pod ready before it serves. Frontends learn of a worker when it is ready and has registered, and admit it moments
later. And workers find only those of their own generation: a new decode worker serves nothing before there is a new prefill
worker, so the old workers of both stay until then. A rolling update that counts ready pods of each component for itself has a gap
without any worker (https://github.com/ai-dynamo/dynamo/issues/13622).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import is_there, registers
from dynamo_shared.api.registry import labels
from dynamo_shared.api.untrusted.times import moment

from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.requeue import earliest
from dynamo_pod_builder.status.workload import QUOTA_EXCEEDED, readiness, ready_replicas

#: How long after a pod is ready its frontends have admitted it.
ADMISSION = timedelta(seconds=5)
#: How long a pod that is ready may take to register as those of its component before it have: readiness may be by a probe of the
#: user's own, before the model is loaded. Then the update goes on as if it had.
REGISTRATION = timedelta(minutes=30)
#: How often that is asked for. Seconds.
RECHECK = 5.0
#: How long pods of all components wait for a node, each next to an old one, before the update goes on with those that have one:
#: Kubernetes' own limit for the progress of a Deployment. GPUs may be too few for both generations of more than one component.
NO_ROOM = timedelta(minutes=10)
#: How long no pod of an old component must have been ready before it makes way for new ones that lack room: a probe that fails
#: once may succeed the next time.
USELESS = timedelta(minutes=1)
#: What the default scheduler says of nodes on which a pod would not fit without other pods either, as where its node selector
#: has a typing error or its claim is missing, and of those on which it might.
_NO_USE, _MAYBE = "Preemption is not helpful for scheduling", "No preemption victims"


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
    #: Whether all old pods go, since no generation of them serves and new ones lack their room.
    makes_way: bool = False
    #: Names of pods that are ready, and that frontends cannot know yet, by component.
    unregistered: Mapping[str, Sequence[str]] = field(default_factory=dict)


def serving(
    workers: Mapping[str, KubeObject], leftovers: Mapping[str, Sequence[KubeObject]], observed: Observed
) -> ServingPods:
    """What serves of `workers`, the desired component deployments of all workers by component. Pure."""
    workloads = {name: observed.workloads.get(objects.name(child)) for name, child in workers.items()}
    available = {name: ready_replicas(observed.staying(objects.name(child)))[0] for name, child in workers.items()}
    # Most graphs have one generation: nothing is read of their pods.
    if not leftovers:
        return ServingPods(available)
    pods = {name: observed.pods_of(workload) for name, workload in workloads.items()}
    lacking_room = (filter(_lacks_room, each) for each in pods.values())
    waits = [wait for each in lacking_room for wait in _until(each, "PodScheduled", "False", NO_ROOM, observed.now)]
    no_room = any(wait <= 0 for wait in waits)
    generations = _old_generations(leftovers, available, observed, no_room=no_room)
    old = frozenset(name for name, parts in generations.items() if all(wait is None for wait in parts))
    if not old and (waits or any(map(_exceeds_quota, workloads.values()))):
        # No node is kept for a generation that does not serve.
        useless = [min(wait for wait in parts if wait is not None) for parts in generations.values()]
        again = earliest(*(wait for wait in (*waits, *useless) if 0 < wait < inf))
        return ServingPods(available, again, old, no_room=no_room, makes_way=all(wait <= 0 for wait in useless))
    if no_room:
        return ServingPods(available, None, old, no_room=True)
    unregistered = {name: _unregistered(each, leftovers.get(name, ()), observed) for name, each in pods.items()}
    if not old:
        # Nothing serves that could be kept for longer.
        unregistered = {}
    for name, each in pods.items():
        unknown = unregistered.get(name, ())
        others = (pod for pod in each if objects.name(pod) not in unknown)
        fresh = [wait for pod in others if (wait := _until_admitted(pod, observed)) is not None]
        available[name] = max(0, available[name] - len(fresh) - len(unknown))
        waits += [*fresh, *([RECHECK] if unknown else ())]
    desired = {name: objects.replicas(child) for name, child in workers.items()}
    named = {name: each for name, each in unregistered.items() if each}
    return ServingPods(paired(available, desired), earliest(*waits), old, unregistered=named)


def _exceeds_quota(workload: KubeObject | None) -> bool:
    """Whether pods of a workload are not created, since the namespace has as many as it may."""
    return workload is not None and readiness(workload).reason == QUOTA_EXCEEDED


def _lacks_room(pod: KubeObject) -> bool:
    """Whether a pod that has no node may have one once other pods go."""
    said = str((objects.condition(pod, "PodScheduled") or {}).get("message", ""))
    return _NO_USE not in said or _MAYBE in said


def _until_admitted(pod: KubeObject, observed: Observed) -> float | None:
    """Seconds until frontends have admitted a pod that is ready; None where they have, or where no time is known."""
    waits = _until([pod], "Ready", "True", ADMISSION, observed.now)
    if waits and (since := observed.registered.get(_uid(pod))) is not None:
        waits.append((since + ADMISSION - observed.now).total_seconds())
    # The clock of a node may be ahead.
    return max((wait for wait in waits if 0 < wait <= 2 * ADMISSION.seconds), default=None)


def _unregistered(pods: Sequence[KubeObject], before: Sequence[KubeObject], observed: Observed) -> list[str]:
    """Pods of a component that have not registered, where those of its generations `before` have; for some time only."""
    known = observed.registered
    replaced = (pod for dcd in before for pod in observed.pods_of(observed.workloads.get(objects.name(dcd))))
    if not any(_uid(pod) in known for pod in replaced):
        return []
    unknown = [pod for pod in pods if is_there(pod) and registers(pod) and _uid(pod) not in known]
    waits = _until(unknown, "Ready", "True", REGISTRATION, observed.now)
    return [] if any(wait <= 0 for wait in waits) else [objects.name(pod) for pod in unknown]


def _uid(pod: KubeObject) -> str:
    return str(pod["metadata"].get("uid", ""))


def paired(available: Mapping[str, int], desired: Mapping[str, int]) -> dict[str, int]:
    """Of the available pods of a generation, by component, those that have their share of the pods of all other components."""
    shares = [(available[name], whole) for name, whole in desired.items() if whole > 0]
    return {
        name: min([available[name], *(part * count // whole for part, whole in shares)])
        for name, count in desired.items()
    }


def _old_generations(
    leftovers: Mapping[str, Sequence[KubeObject]], available: Mapping[str, int], observed: Observed, *, no_room: bool
) -> dict[str, list[float | None]]:
    """Of each old generation that has replicas, by its hash: when its components make way, None for those that serve. Seconds.

    `available` is what the new generation has of each component.
    """
    generations: dict[str, list[float | None]] = defaultdict(list)
    replicas: dict[str, int] = defaultdict(int)
    for component, part in leftovers.items():
        for dcd in part:
            name = generation_of(dcd)
            replicas[name] += objects.replicas(dcd)
            if objects.replicas(dcd) > 0:
                generations[name].append(_until_useless(objects.name(dcd), observed))
            elif available.get(component):
                # The new generation has taken its place, and the others of this one have no counterparts.
                generations[name].append(0.0 if no_room else inf)
    return {name: parts for name, parts in generations.items() if replicas[name]}


def _until_useless(dcd: str, observed: Observed) -> float | None:
    """Seconds until an old component has not served for so long that it makes way; None where it serves."""
    if ready_replicas(observed.staying(dcd))[0] > 0:
        return None
    # Of an engine on several nodes the leader says whether it serves.
    pods = [
        pod for pod in observed.pods_of(observed.workloads.get(dcd)) if objects.labels(pod).get(labels.ROLE) != "worker"
    ]
    if any(objects.is_true(pod, "Ready") for pod in pods):
        return inf
    return max(_until(pods, "Ready", "False", USELESS, observed.now), default=0.0)


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
