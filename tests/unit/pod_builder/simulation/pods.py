"""Pods of a story with a clock: controllers create them, a scheduler with limited room places them, nodes run them."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from random import Random
from typing import Any

from dynamo_pod_builder.reconcilers.graph.serving import NO_ROOM
from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import has_ended, is_active
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import RESTART_AT
from dynamo_shared.api.resources import DEPLOYMENTS, LEADER_WORKER_SETS, PODS, key_of

from tests.building.objects import controlled_by, copied

from .timed import TimedWorld

GPU = "nvidia.com/gpu"
FOREGROUND = "foregroundDeletion"
#: The label with the template of a pod, as controllers set it.
OF_TEMPLATE = "pod-template-hash"
#: Images that never become ready.
ABSENT, CRASHES = "img:absent", "img:crashes"
#: A node selector that matches no node.
NOWHERE = {"gpu": "none"}
#: Seconds until a pod with a node serves, and until a deleted pod is gone.
STARTS, ENDS = (2, 30, 90), (0, 10, 60)
#: Seconds until a controller acts on a change.
LAGS = (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Taken:
    """A serving pod that its controller removed, and the replicas that served just before and after."""

    component: str
    generation: str
    before: dict[str, dict[str, int]]
    after: dict[str, dict[str, int]]
    #: Whether a pod had waited for room for so long that the update continues without it.
    no_room: bool


@dataclass
class Pods:
    """`step` does due work, `next_at` is when more is due. `room`: GPUs by node. `prompt`: controllers act at once."""

    world: TimedWorld
    chance: Random
    room: list[int]
    prompt: bool = False
    #: Serving pods that controllers removed, in order.
    taken: list[Taken] = field(default_factory=list)
    _timers: list[tuple[float, str, Callable[[KubeObject], None]]] = field(default_factory=list)
    _synced: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    _due: dict[str, float] = field(default_factory=dict)
    _hashes: dict[tuple[str, int], str] = field(default_factory=dict)
    _count: int = 0
    _version: int = -1

    @property
    def next_at(self) -> float | None:
        return min([*self._due.values(), *(at for at, _, _ in self._timers)], default=None)

    def step(self) -> bool:
        """Do all due work once. Returns whether anything changed."""
        now = self.world.clock.now
        due = [each for each in self._timers if each[0] <= now]
        if self._version == self.world.version and not due and not any(at <= now for at in self._due.values()):
            return False
        self._version = self.world.version
        self._timers = [each for each in self._timers if each[0] > now]
        for _, uid, action in due:
            if (pod := next((each for each in self.all() if objects.uid(each) == uid), None)) is not None:
                action(pod)
        self._collect()
        workloads = self._workloads()
        for workload in workloads:
            self._sync(workload)
        # Work on deleted objects is dropped.
        there = set(map(objects.uid, workloads))
        self._due = {uid: at for uid, at in self._due.items() if uid in there}
        self._schedule()
        return self._version != self.world.version

    def all(self) -> list[KubeObject]:
        return [obj for (id_, _), obj in self.world.objects.items() if id_ == PODS.id]

    def serving(self) -> dict[str, dict[str, int]]:
        """Serving replicas by generation and component, of workloads that are not being deleted."""
        serving: dict[str, dict[str, int]] = defaultdict(dict)
        for workload in self._workloads():
            template = _templates(workload)[0]["metadata"]
            generation, name = template["labels"].get(labels.WORKER_HASH, ""), template["labels"][labels.COMPONENT]
            ready = [pod for pod in self._of(workload) if serves(pod)]
            if workload["kind"] == LEADER_WORKER_SETS.kind:
                size = workload["spec"]["leaderWorkerTemplate"]["size"]
                groups = [sum(_group(pod) == _group(leader) for pod in ready) for leader in ready if _is_leader(leader)]
                count = sum(each == size for each in groups)
            else:
                count = len(ready)
            serving[generation][name] = serving[generation].get(name, 0) + count
        return {name: dict(each) for name, each in serving.items()}

    def moving(self) -> set[str]:
        """Components whose pods are being replaced: they have several templates, or not all of them serve."""
        moving = set()
        for workload in self._workloads():
            there = [pod for pod in self._of(workload) if is_active(pod)]
            size = workload["spec"].get("leaderWorkerTemplate", {}).get("size", 1)
            whole = len(there) == size * objects.replicas(workload) and all(map(serves, there))
            if not whole or {pod["metadata"]["labels"][OF_TEMPLATE] for pod in there} - {self._hash(workload)}:
                moving.add(_templates(workload)[0]["metadata"]["labels"][labels.COMPONENT])
        return moving

    def fail(self, pod: KubeObject, seconds: float) -> None:
        """Let a probe of the pod fail for some time."""
        self._turn(pod, False)
        self._later(seconds, pod, lambda each: self._turn(each, True) if is_active(each) else None)

    def delete_in_foreground(self, obj: KubeObject) -> None:
        """Delete like `kubectl delete --cascade=foreground`."""
        resource, key = resources.of(obj), key_of(obj)
        finalizers = [*(obj["metadata"].get("finalizers") or ()), FOREGROUND]
        self.world.change(resource, key, lambda each: each["metadata"].update(finalizers=finalizers))
        self.world.end(resource, key)

    def evict(self, pod: KubeObject) -> None:
        """The node ends the pod, which stays as a failed pod."""
        self._change(pod, lambda each: each["status"].update(phase="Failed", reason="Evicted", conditions=[]))

    def end(self, pod: KubeObject) -> None:
        """Delete a pod: at once if it never had a node."""
        if objects.is_deleting(pod):
            return
        if not pod["spec"].get("nodeName") or has_ended(pod):
            self.world.remove(PODS, key_of(pod))
            return
        self._change(pod, lambda each: each["metadata"].update(deletionTimestamp=self.world.moment(60)))
        self._later(self.chance.choice(ENDS), pod, lambda each: self.world.remove(PODS, key_of(each)))

    def hurry(self) -> None:
        """Let controllers act at once on everything they have observed."""
        self._due = dict.fromkeys(self._due, self.world.clock.now)

    def touch(self) -> None:
        """Let the scheduler consider waiting pods again, as if nodes were added."""
        self._version = -1

    def lacks_room(self) -> bool:
        """Whether a pod has been without a node for as long as an update waits for one."""
        waiting = (objects.condition(pod, "PodScheduled") for pod in self.all() if not pod["spec"].get("nodeName"))
        long_ago = self.world.moment(-NO_ROOM.total_seconds())
        return any(each is not None and each["lastTransitionTime"] <= long_ago for each in waiting)

    def _workloads(self) -> list[KubeObject]:
        return [obj for (id_, _), obj in self.world.objects.items() if id_ in (DEPLOYMENTS.id, LEADER_WORKER_SETS.id)]

    def _of(self, workload: KubeObject) -> list[KubeObject]:
        uid = objects.uid(workload)
        return [pod for pod in self.all() if (objects.controller_of(pod) or {}).get("uid") == uid]

    def _collect(self) -> None:
        """The garbage collector."""
        uids = {objects.uid(each) for each in self.world.objects.values()}
        deleted = {
            objects.uid(each)
            for each in self.world.objects.values()
            if FOREGROUND in (each["metadata"].get("finalizers") or ())
        }
        blocking: set[str] = set()
        for obj in list(self.world.objects.values()):
            owner = (objects.controller_of(obj) or {}).get("uid", "")
            if owner in deleted:
                blocking.add(owner)
            if not owner or (owner in uids and owner not in deleted) or objects.is_deleting(obj):
                continue
            if obj["kind"] == PODS.kind:
                self.end(obj)
            elif owner in deleted:
                self.delete_in_foreground(obj)
            else:
                self.world.end(resources.of(obj), key_of(obj))
        for obj in list(self.world.objects.values()):
            if objects.uid(obj) in deleted - blocking:
                self.world.change(resources.of(obj), key_of(obj), lambda each: each["metadata"].pop("finalizers"))

    def _sync(self, workload: KubeObject) -> None:
        """What its controller does after it has observed a change."""
        uid, now, pods = objects.uid(workload), self.world.clock.now, self._of(workload)
        versions = tuple(pod["metadata"]["resourceVersion"] for pod in pods)
        observed = (objects.generation(workload), objects.is_deleting(workload), versions)
        if self._synced.get(uid) == observed:
            return
        if now < self._due.setdefault(uid, now + (0 if self.prompt else self.chance.choice(LAGS))):
            return
        del self._due[uid]
        self._synced[uid] = observed
        before = self.serving()
        chosen: list[KubeObject] = []
        if not objects.is_deleting(workload):
            exchange = self._exchange if workload["kind"] == DEPLOYMENTS.kind else self._exchange_groups
            chosen = list(exchange(workload, pods))
        for pod in chosen:
            self.end(pod)
        if any(map(serves, chosen)):
            template = _templates(workload)[0]["metadata"]["labels"]
            generation = template.get(labels.WORKER_HASH, "")
            taken = Taken(template[labels.COMPONENT], generation, before, self.serving(), self.lacks_room())
            self.taken.append(taken)
        self._report(workload)

    def _exchange(self, deployment: KubeObject, pods: list[KubeObject]) -> Iterator[KubeObject]:
        """Create the missing pods of a Deployment. Yields the pods to delete."""
        there, desired = [pod for pod in pods if is_active(pod)], objects.replicas(deployment)
        new = [pod for pod in there if pod["metadata"]["labels"][OF_TEMPLATE] == self._hash(deployment)]
        old = [pod for pod in there if pod not in new]
        strategy = deployment["spec"]["strategy"]
        if strategy["type"] == "Recreate":
            others = [pod for pod in pods if pod not in new and not has_ended(pod)]
            yield from old
            missing = 0 if others else desired - len(new)
        else:
            surge, unavailable = _margins(strategy["rollingUpdate"], desired)
            missing = min(desired - len(new), desired + surge - len(there)) if old else desired - len(new)
            least, ready = desired - unavailable, [pod for pod in there if serves(pod)]
            lacking = max(0, len(new) + max(0, missing) - sum(map(serves, new)))
            room = max(0, len(there) + max(0, missing) - least - lacking)
            unready = [pod for pod in old if not serves(pod)][:room]
            yield from unready
            spare = max(0, min(room - len(unready), len(ready) - least))
            yield from self._any(pod for pod in old if serves(pod))[:spare]
        for _ in range(missing):
            self._count += 1
            self._make(deployment, f"{objects.name(deployment)}-{self._count}", _templates(deployment)[0])
        if missing < 0 and len(new) > desired:
            # Pods without a node are deleted first, then pods that do not serve.
            by_use = sorted(self._any(new), key=lambda pod: (bool(pod["spec"].get("nodeName")), serves(pod)))
            yield from by_use[: len(new) - desired]

    def _exchange_groups(self, workload: KubeObject, pods: list[KubeObject]) -> Iterator[KubeObject]:
        """The same for a LeaderWorkerSet, which creates, deletes and replaces whole groups, the last one first."""
        size, desired, of = (
            workload["spec"]["leaderWorkerTemplate"]["size"],
            objects.replicas(workload),
            self._hash(workload),
        )
        leader_template, worker_template = _templates(workload)
        names = {objects.name(pod): pod for pod in pods}
        outdated, all_serve = [], True
        for group in range(desired):
            members = [
                f"{objects.name(workload)}-{group}",
                *(f"{objects.name(workload)}-{group}-{i}" for i in range(1, size)),
            ]
            there = [names[name] for name in members if name in names]
            if not all(map(is_active, there)):
                # If one of its pods is being deleted, all are.
                yield from (pod for pod in there if not objects.is_deleting(pod))
                all_serve = False
                continue
            for name in [name for name in members if name not in names]:
                template = leader_template if name == members[0] else worker_template
                self._make(workload, name, template, group)
            all_serve = all_serve and len(there) == size and all(map(serves, there))
            if any(pod["metadata"]["labels"][OF_TEMPLATE] != of for pod in there):
                outdated.append(there)
        yield from (pod for pod in pods if int(_group(pod)) >= desired and not objects.is_deleting(pod))
        if outdated and all_serve:
            yield from outdated[-1]

    def _make(self, workload: KubeObject, name: str, template: KubeObject, group: int | None = None) -> None:
        of_template, spec = template["metadata"], template["spec"]
        own = {} if group is None else {labels.LWS_NAME: objects.name(workload), labels.LWS_GROUP: str(group)}
        main = spec["containers"][0]
        metadata = {
            "name": name,
            "namespace": objects.namespace(workload),
            "labels": {**of_template["labels"], **own, OF_TEMPLATE: self._hash(workload)},
            "ownerReferences": [controlled_by(workload)],
        }
        if id_ := (of_template.get("annotations") or {}).get(RESTART_AT):
            metadata["annotations"] = {RESTART_AT: id_}
        container = {"name": main["name"], "image": main["image"], "resources": main.get("resources", {})}
        pod_spec = {"containers": [container], "nodeSelector": spec.get("nodeSelector", {})}
        self.world.create_as_other(
            copied({**PODS.type_meta, "metadata": metadata, "spec": pod_spec, "status": {"phase": "Pending"}})
        )

    def _report(self, workload: KubeObject) -> None:
        """The status of a workload."""
        there, desired = [pod for pod in self._of(workload) if is_active(pod)], objects.replicas(workload)
        generation = {"observedGeneration": objects.generation(workload)}
        counted, size = there, 1
        if workload["kind"] == LEADER_WORKER_SETS.kind:
            # Older releases do not report the generation of the spec.
            generation, size = {}, workload["spec"]["leaderWorkerTemplate"]["size"]
            counted = [pod for pod in there if _is_leader(pod)]
        whole = [
            pod
            for pod in counted
            if size == 1 or sum(serves(each) for each in there if _group(each) == _group(pod)) == size
        ]
        ready = sum(map(serves, whole))
        updated = sum(pod["metadata"]["labels"][OF_TEMPLATE] == self._hash(workload) for pod in counted)
        status: KubeObject = {
            **generation,
            "replicas": len(counted),
            "updatedReplicas": updated,
            "readyReplicas": ready,
            "conditions": [{"type": "Available", "status": str(ready >= desired)}],
        }
        if workload["kind"] == DEPLOYMENTS.kind:
            status["availableReplicas"] = ready
        if workload.get("status") != status:
            self.world.change(resources.of(workload), key_of(workload), lambda each: each.update(status=status))

    def _schedule(self) -> None:
        """Assign nodes to waiting pods in random order, as far as there is room."""
        pods = self.all()
        free = list(self.room)
        for pod in pods:
            if (node := pod["spec"].get("nodeName")) and not has_ended(pod):
                free[int(node)] -= gpus(pod)
        for pod in self._any(pod for pod in pods if not pod["spec"].get("nodeName")):
            if pod["spec"]["nodeSelector"]:
                words = f"0/{len(free)} nodes are available: {len(free)} Preemption is not helpful for scheduling."
            else:
                words = f"0/{len(free)} nodes are available: {len(free)} Insufficient {GPU}."
                if fitting := [node for node, left in enumerate(free) if left >= gpus(pod)]:
                    free[fitting[0]] -= gpus(pod)
                    self._bind(pod, str(fitting[0]))
                    continue
            lacks = self._condition(pod, "PodScheduled", False, reason="Unschedulable", message=words)
            if objects.condition(pod, "PodScheduled") != lacks:
                self._change(pod, partial(_conditioned, [lacks]))

    def _bind(self, pod: KubeObject, node: str) -> None:
        conditions = [self._condition(pod, "PodScheduled", True), self._condition(pod, "Ready", False)]

        def bind(each: KubeObject) -> None:
            each["spec"]["nodeName"] = node
            each["status"]["conditions"] = conditions

        self._change(pod, bind)
        image = pod["spec"]["containers"][0]["image"]
        if image == ABSENT:
            self._later(1, pod, partial(self._stuck, state={"waiting": {"reason": "ImagePullBackOff"}}))
        elif image == CRASHES:
            state = {"waiting": {"reason": "CrashLoopBackOff"}}
            ended: KubeObject = {"lastState": {"terminated": {"exitCode": 1}}, "restartCount": 3}
            self._later(self.chance.choice(STARTS), pod, partial(self._stuck, state=state, **ended))
        else:
            self._later(self.chance.choice(STARTS), pod, lambda each: self._turn(each, True))

    def _stuck(self, pod: KubeObject, **container: Any) -> None:
        self._change(pod, lambda each: each["status"].update(containerStatuses=[{"name": "main", **container}]))

    def _turn(self, pod: KubeObject, ready: bool) -> None:
        if objects.is_deleting(pod) or has_ended(pod):
            return
        now = self._condition(pod, "Ready", ready)

        def turn(each: KubeObject) -> None:
            others = [one for one in each["status"]["conditions"] if one["type"] != "Ready"]
            each["status"] = {"phase": "Running", "conditions": [*others, now]}

        self._change(pod, turn)

    def _condition(self, pod: KubeObject, type_: str, status: bool, **words: str) -> KubeObject:
        before = objects.condition(pod, type_)
        same = before is not None and before["status"] == str(status)
        since = before["lastTransitionTime"] if before is not None and same else self.world.moment()
        return {"type": type_, "status": str(status), "lastTransitionTime": since, **words}

    def _hash(self, workload: KubeObject) -> str:
        place = objects.uid(workload), objects.generation(workload)
        if place not in self._hashes:
            text = json.dumps(_templates(workload), sort_keys=True)
            self._hashes[place] = sha256(text.encode()).hexdigest()[:8]
        return self._hashes[place]

    def _later(self, seconds: float, pod: KubeObject, action: Callable[[KubeObject], None]) -> None:
        self._timers.append((self.world.clock.now + seconds, objects.uid(pod), action))

    def _change(self, pod: KubeObject, change: Callable[[KubeObject], object]) -> None:
        self.world.change(PODS, key_of(pod), change)

    def _any(self, pods: Iterable[KubeObject]) -> list[KubeObject]:
        """In random order."""
        listed = list(pods)
        self.chance.shuffle(listed)
        return listed


def serves(pod: KubeObject) -> bool:
    return is_active(pod) and objects.is_true(pod, "Ready")


def gpus(pod: KubeObject) -> int:
    return int(pod["spec"]["containers"][0]["resources"].get("limits", {}).get(GPU, 0))


def _conditioned(conditions: list[KubeObject], pod: KubeObject) -> None:
    pod["status"]["conditions"] = conditions


def _templates(workload: KubeObject) -> tuple[KubeObject, ...]:
    groups = workload["spec"].get("leaderWorkerTemplate")
    return (workload["spec"]["template"],) if groups is None else (groups["leaderTemplate"], groups["workerTemplate"])


def _group(pod: KubeObject) -> str:
    return objects.labels(pod).get(labels.LWS_GROUP, "")


def _is_leader(pod: KubeObject) -> bool:
    return objects.labels(pod).get(labels.ROLE) == "leader"


def _margins(given: KubeObject, desired: int) -> tuple[int, int]:
    def resolved(value: int | str, rounded: Callable[[float], int]) -> int:
        return value if isinstance(value, int) else rounded(desired * int(value.removesuffix("%")) / 100)

    surge, unavailable = resolved(given["maxSurge"], math.ceil), resolved(given["maxUnavailable"], math.floor)
    return (surge, unavailable) if surge or unavailable else (0, 1)
