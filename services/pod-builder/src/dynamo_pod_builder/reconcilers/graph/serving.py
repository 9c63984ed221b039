"""Which pods of a new generation of workers serve, and which old generations do: what a rolling update waits for.

A pod can be ready in Kubernetes before it serves. Frontends learn of a worker when it is ready and has registered, and
admit it moments later. Workers find only workers of their own generation: a new decode worker serves nothing before
there is a new prefill worker, so the old workers of both stay until then. A rolling update that counts ready pods of
each component separately has a gap without any worker (https://github.com/ai-dynamo/dynamo/issues/13622).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import is_active, registers
from dynamo_shared.api.registry import labels
from dynamo_shared.api.untrusted.times import moment

from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.requeue import earliest
from dynamo_pod_builder.status.component import unavailable_since
from dynamo_pod_builder.status.pods import UNSCHEDULABLE
from dynamo_pod_builder.status.workload import QUOTA_EXCEEDED, readiness, ready_replicas

#: How long frontends take to admit a pod after it is ready.
ADMISSION = timedelta(seconds=5)
#: How long a ready pod may take to register if earlier pods of its component have registered: with a user's own
#: readiness probe, a pod may be ready before the model is loaded. After this time the update continues as if it had
#: registered.
REGISTRATION = timedelta(minutes=30)
#: How often registrations are checked. Seconds.
RECHECK = 5.0
#: How long pods of all components wait for a node, each next to an old pod, before the update continues with those that
#: have one: Kubernetes' own limit for the progress of a Deployment. The GPUs may not suffice for both generations of
#: several components.
NO_ROOM = timedelta(minutes=10)
#: How long no pod of an old component must have been ready before it makes way for new pods that lack room: a probe
#: that fails once may succeed the next time.
UNRESPONSIVE_AFTER = timedelta(minutes=1)
#: What the default scheduler says about nodes that a pod would not fit even without other pods, for example because of
#: a typing error in its node selector or a missing claim, and about nodes that it might fit.
_NO_USE, _MAYBE = "Preemption is not helpful for scheduling", "No preemption victims"


@dataclass(frozen=True, slots=True)
class ServingPods:
    """Pods of the new generation that serve, by component."""

    pods: Mapping[str, int]
    #: Seconds until more may serve without an event; None if an event reports it.
    again: float | None = None
    #: The old generations that serve, by hash: for each, the share of the desired replicas that serves.
    old: Mapping[str, float] = field(default_factory=dict)
    #: Whether new pods have waited for a node for the time limit, so that old pods lose theirs.
    no_room: bool = False
    #: Whether all old pods are removed, because no old generation serves and new pods lack their room.
    makes_way: bool = False
    #: Whether all old pods stay: of several generations none serves now, but one did a moment ago.
    holds: bool = False
    #: Components whose new pods have had no room for the time limit, and why.
    crowded: Mapping[str, str] = field(default_factory=dict)
    #: Names of ready pods that frontends cannot know yet, by component.
    unregistered: Mapping[str, Sequence[str]] = field(default_factory=dict)


def serving(
    workers: Mapping[str, KubeObject], leftovers: Mapping[str, Sequence[KubeObject]], observed: Observed
) -> ServingPods:
    """Which pods of `workers` serve; `workers`: the desired component deployments of all workers, by component. Pure."""
    workloads = {name: observed.workloads.get(objects.name(child)) for name, child in workers.items()}
    available = {name: ready_replicas(observed.staying(objects.name(child)))[0] for name, child in workers.items()}
    # Most graphs have one generation: their pods are not read.
    if not leftovers:
        return ServingPods(available)
    pods = {name: observed.pods_of(workload) for name, workload in workloads.items()}
    lacking = {
        name: _until(filter(_lacks_room, each), "PodScheduled", "False", NO_ROOM, observed.now)
        for name, each in pods.items()
    }
    crowded = {name: why for name, each in lacking.items() if (why := _no_room_cause(each, workloads[name]))}
    waits = [wait for each in lacking.values() for wait in each]
    no_room = any(wait <= 0 for wait in waits)
    desired = {name: objects.replicas(child) for name, child in workers.items()}
    generations = _old_generations(leftovers, available, desired, observed)
    old = {name: each.share for name, each in generations.items() if each.serves}
    useless = [each.useless_in(no_room=no_room) for each in generations.values() if not each.serves]
    # With several generations it is unknown which one is useful; with one, there is no other to remove instead.
    holds = not old and len(generations) > 1 and any(each.recovers for each in generations.values())
    if not old and (waits or QUOTA_EXCEEDED in crowded.values()):
        # A generation that does not serve must not keep nodes.
        again = earliest(*(wait for wait in (*waits, *useless) if 0 < wait < inf))
        makes_way = all(wait <= 0 for wait in useless)
        return ServingPods(available, again, old, no_room=no_room, makes_way=makes_way, holds=holds, crowded=crowded)
    if no_room:
        return ServingPods(available, None, old, no_room=True, crowded=crowded)
    if holds:
        waits += [wait for wait in useless if 0 < wait < inf]
    unregistered = {name: _unregistered(each, leftovers.get(name, ()), observed) for name, each in pods.items()}
    if not old:
        # No old generation serves, so there is nothing to keep for longer.
        unregistered = {}
    for name, each in pods.items():
        unknown = unregistered.get(name, ())
        others = (pod for pod in each if objects.name(pod) not in unknown)
        fresh = [wait for pod in others if (wait := _until_admitted(pod, observed)) is not None]
        available[name] = max(0, available[name] - len(fresh) - len(unknown))
        waits += [*fresh, *([RECHECK] if unknown else ())]
    named = {name: each for name, each in unregistered.items() if each}
    together = paired(available, desired)
    holds = holds and together != desired
    return ServingPods(together, earliest(*waits), old, holds=holds, crowded=crowded, unregistered=named)


def _no_room_cause(waits: Sequence[float], workload: KubeObject | None) -> str:
    """Why new pods of a component have no room, if waiting does not help: a reason of conditions, or ""."""
    if readiness(workload).reason == QUOTA_EXCEEDED:
        return QUOTA_EXCEEDED
    return UNSCHEDULABLE if any(wait <= 0 for wait in waits) else ""


def _lacks_room(pod: KubeObject) -> bool:
    """Whether a pod without a node may get one when other pods are deleted."""
    message = str((objects.condition(pod, "PodScheduled") or {}).get("message", ""))
    return _NO_USE not in message or _MAYBE in message


def _until_admitted(pod: KubeObject, observed: Observed) -> float | None:
    """Seconds until frontends have admitted a ready pod; None if they have, or if the time is unknown."""
    waits = _until([pod], "Ready", "True", ADMISSION, observed.now)
    if waits and (since := observed.registered.get(_uid(pod))) is not None:
        waits.append((since + ADMISSION - observed.now).total_seconds())
    # The clock of a node may be ahead.
    return max((wait for wait in waits if 0 < wait <= 2 * ADMISSION.seconds), default=None)


def _unregistered(pods: Sequence[KubeObject], before: Sequence[KubeObject], observed: Observed) -> list[str]:
    """Unregistered pods of a component, if pods of its generations `before` registered; empty after the time limit."""
    known = observed.registered
    replaced = (pod for dcd in before for pod in observed.pods_of(observed.workloads.get(objects.name(dcd))))
    if not any(_uid(pod) in known for pod in replaced):
        return []
    unknown = [pod for pod in pods if is_active(pod) and registers(pod) and _uid(pod) not in known]
    waits = _until(unknown, "Ready", "True", REGISTRATION, observed.now)
    return [] if any(wait <= 0 for wait in waits) else [objects.name(pod) for pod in unknown]


def _uid(pod: KubeObject) -> str:
    return str(pod["metadata"].get("uid", ""))


def paired(available: Mapping[str, int], desired: Mapping[str, int]) -> dict[str, int]:
    """Of the available pods of a generation, by component, those with their share of the pods of all other components."""
    shares = [(available[name], whole) for name, whole in desired.items() if whole > 0]
    return {
        name: min([available[name], *(part * count // whole for part, whole in shares)])
        for name, count in desired.items()
    }


@dataclass(slots=True)
class _OldGeneration:
    """An old generation that has replicas."""

    #: For each component that does not serve: seconds until it makes way.
    waits: list[float] = field(default_factory=list)
    #: Whether the new generation has replaced one of its components: the others then have no counterparts.
    is_replaced: bool = False
    #: The share of the desired replicas that serves, of the component with the lowest share.
    share: float = 1.0

    @property
    def serves(self) -> bool:
        return not self.waits and not self.is_replaced

    @property
    def recovers(self) -> bool:
        """Whether it served a moment ago, if that is known."""
        return not self.is_replaced and all(wait > 0 for wait in self.waits)

    def useless_in(self, *, no_room: bool) -> float:
        """Seconds until it makes way; 0 or less if it does now."""
        waits = [*self.waits, 0.0 if no_room else inf] if self.is_replaced else self.waits
        return min(waits)


def _old_generations(
    leftovers: Mapping[str, Sequence[KubeObject]],
    available: Mapping[str, int],
    desired: Mapping[str, int],
    observed: Observed,
) -> dict[str, _OldGeneration]:
    """Each old generation that has replicas, by its hash. `available`: pods of the new generation, by component."""
    generations: dict[str, _OldGeneration] = defaultdict(_OldGeneration)
    replicas: dict[str, int] = defaultdict(int)
    for component, part in leftovers.items():
        for dcd in part:
            name = generation_of(dcd)
            generation = generations[name]
            replicas[name] += objects.replicas(dcd)
            if (whole := desired.get(component, 0)) > 0:
                serve, _ = ready_replicas(observed.staying(objects.name(dcd)))
                # Pods that are being removed, but that its controller has not subtracted yet, no longer serve.
                generation.share = min(generation.share, min(serve, objects.replicas(dcd)) / whole)
            if objects.replicas(dcd) > 0:
                wait = _until_useless(dcd, observed)
                generation.waits += [] if wait is None else [wait]
            elif available.get(component):
                generation.is_replaced = True
    return {name: each for name, each in generations.items() if replicas[name]}


def _until_useless(dcd: KubeObject, observed: Observed) -> float | None:
    """Seconds until an old component has not served for so long that it makes way; None if it serves."""
    name = objects.name(dcd)
    if ready_replicas(observed.staying(name))[0] > 0:
        return None
    # For an engine on several nodes, the leader's readiness says whether it serves.
    workload = observed.workloads.get(name)
    pods = [pod for pod in observed.pods_of(workload) if objects.labels(pod).get(labels.ROLE) != "worker"]
    if any(objects.is_true(pod, "Ready") for pod in pods):
        return inf
    since = (_unready_since(pod) for pod in pods if is_active(pod))
    last = max((each for each in since if each is not None), default=None)
    if objects.replicas(dcd) == 1 and (unavailable := unavailable_since(dcd)) is not None:
        # Pods of an engine on several nodes are recreated each time that one crashes.
        last = min(last or unavailable, unavailable)
    return 0.0 if last is None else (last + UNRESPONSIVE_AFTER - observed.now).total_seconds()


def _unready_since(pod: KubeObject) -> datetime | None:
    """When a pod was last ready; without a Ready condition (it replaced another and has no node), its creation."""
    ready = objects.condition(pod, "Ready") or {}
    return moment(ready.get("lastTransitionTime") or objects.created_at(pod))


def generation_of(dcd: KubeObject) -> str:
    """The worker hash of a component deployment; empty if it was created before hashes existed."""
    return objects.labels(dcd).get(labels.WORKER_HASH, "")


def _until(pods: Iterable[KubeObject], type_: str, status: str, within: timedelta, now: datetime) -> list[float]:
    """For each pod with this condition: seconds until it has had the condition for `within`; 0 or less if it has."""
    observed = [objects.condition(pod, type_) for pod in pods if is_active(pod)]
    since = [
        moment(each.get("lastTransitionTime")) for each in observed if each is not None and each["status"] == status
    ]
    return [(begun + within - now).total_seconds() for begun in since if begun is not None]
