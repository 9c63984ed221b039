"""New pods that are to start from a PodSnapshot: whether they can, and what they are then.

The pod-builder annotates the pod templates of workers with what their pods may start from (a candidate), and does so before it
is there: so no pod is replaced when it comes, and those that are created later start from it. Source of the rules: Dynamo 1.5,
`pod_checkpoint_restore_handler.go`, and Snapshot 0.1.0, `api/podcontract/restore_pod.go`.

1. The PodSnapshot is there, ready, and of an engine as this one: the pod is changed so that Snapshot's agent restores it.
2. It is not, or something is in the way, and the candidate is Immediate and automatic: the pod starts without it. Here the
   reference refuses what does not fit; a graph that serves all the same could then replace none of its pods.
3. Else the pod is refused. Its controller tries again.
"""

import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import structlog
from dynamo_shared.api import objects, snapshots
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations, env, labels
from dynamo_shared.api.resources import POD_SNAPSHOTS, PODS, SNAPSHOT_JOBS, ObjectKey, Resource
from dynamo_shared.api.untrusted.reading import items, mapping
from dynamo_shared.kube import KubeError

from dynamo_admission import jsonpatch
from dynamo_admission.review import CREATE, SKIPPED, ReviewVerdict
from dynamo_admission.wire import AdmissionRequest, ReviewStatus

#: Reads an object; None where it is not there, or its kind is not. KubeError or TimeoutError where the API server is away.
Find: TypeAlias = Callable[[Resource, ObjectKey], Awaitable[KubeObject | None]]

#: What every pod of a component has: pods of others do not start from what a candidate names.
_STAMPED = (labels.COMPONENT, labels.COMPONENT_TYPE, labels.DYNAMO_NAMESPACE, labels.SELECTOR)
#: The longest that a restore may take, asked each second: half an hour.
_LONGEST = 1800
_RESTORED = {"exec": {"command": ["cat", snapshots.RESTORE_COMPLETE]}, "timeoutSeconds": 1}

log = structlog.get_logger("dynamo.admission")


class _Refused(Exception):
    """A pod that may not start; the message says why."""


class _Unavailable(Exception):
    """The PodSnapshot is not there, or not yet; the message says why."""


@dataclass(frozen=True, slots=True)
class PodRestorer:
    """Answers for new pods. `profile`: the seccomp profile of restored containers, "" for none."""

    find: Find
    profile: str = ""

    async def review(self, request: AdmissionRequest) -> ReviewVerdict:
        """Judge a new pod."""
        pod = request.object
        if request.operation != CREATE or request.kind.kind != PODS.kind or not isinstance(pod, dict):
            return SKIPPED
        own = mapping(mapping(pod.get("metadata")).get("annotations"))
        if own.get(annotations.RESTORE_CANDIDATE) != "true":
            return SKIPPED
        if not own.get(annotations.RESTORE_SOURCE) or not all(objects.labels(pod).get(label) for label in _STAMPED):
            return _refusal("its annotations and labels are not those of a pod of a component")
        try:
            snapshot = await self._snapshot(own, ObjectKey(request.namespace, own[annotations.RESTORE_SOURCE]))
            return ReviewVerdict(patch=jsonpatch.difference(pod, restored(pod, snapshot, self.profile)))
        except (_Unavailable, KubeError, TimeoutError) as error:
            if _is_immediate(own):
                return SKIPPED
            why = str(error) if isinstance(error, _Unavailable) else "the API server does not answer"
            return _refusal(f"waits for its checkpoint: {why}")
        except _Refused as error:
            log.warning("a pod is not restored", namespace=request.namespace, pod=request.name, because=str(error))
            if _is_immediate(own):
                return replace(SKIPPED, warnings=[f"starts without its checkpoint: {error}"])
            return _refusal(str(error))

    async def _snapshot(self, own: Any, key: ObjectKey) -> KubeObject:
        kind = own.get(annotations.RESTORE_SOURCE_KIND)
        if kind == SNAPSHOT_JOBS.kind:
            return await self._of_job(own, key)
        if kind == POD_SNAPSHOTS.kind:
            return await self._pinned(own, key)
        raise _Refused(f"annotation {annotations.RESTORE_SOURCE_KIND} is neither SnapshotJob nor PodSnapshot")

    async def _of_job(self, own: Any, key: ObjectKey) -> KubeObject:
        """The PodSnapshot that a SnapshotJob has had taken."""
        job = await self.find(SNAPSHOT_JOBS, key)
        if job is None or objects.uid(job) != own.get(annotations.RESTORE_JOB_UID):
            raise _Unavailable(f"SnapshotJob {key.name} is gone")
        owner = snapshots.owner_uid(job)
        if not owner:
            raise _Refused(f"SnapshotJob {key.name} was not created for a graph")
        if snapshots.failure_of(job) is not None or not snapshots.is_completed(job):
            raise _Unavailable(f"SnapshotJob {key.name} has not completed")
        name = snapshots.snapshot_name(job)
        snapshot = await self.find(POD_SNAPSHOTS, ObjectKey(key.namespace, name)) if name else None
        if snapshot is None or not snapshots.is_taken_by(job, snapshot):
            raise _Unavailable(f"the PodSnapshot of SnapshotJob {key.name} is gone")
        return _usable(snapshot, own, owner)

    async def _pinned(self, own: Any, key: ObjectKey) -> KubeObject:
        """The PodSnapshot that a user has named: the very one that the pod's template was made for."""
        snapshot = await self.find(POD_SNAPSHOTS, key)
        if snapshot is None:
            raise _Refused(f"PodSnapshot {key.name} is gone")
        usable = _usable(snapshot, own)
        pinned = (own.get(annotations.RESTORE_SNAPSHOT_UID), own.get(annotations.RESTORE_SNAPSHOT_CONTENT))
        if pinned != (objects.uid(usable), snapshots.content_of(usable)):
            raise _Refused(f"PodSnapshot {key.name} is another one than that of the pod's template")
        return usable


def restored(pod: KubeObject, snapshot: KubeObject, profile: str) -> KubeObject:
    """A candidate that starts from a PodSnapshot. Raises _Refused where something else is in the way."""
    made = copy.deepcopy(pod)
    own, spec = made["metadata"]["annotations"], made["spec"]
    targets = [name.strip() for name in own.get(annotations.RESTORE_TARGETS, "").split(",")]
    if not all(targets) or len(set(targets)) < len(targets):
        raise _Refused(f"annotation {annotations.RESTORE_TARGETS} must name its containers, each once")
    source = snapshots.captured_container(snapshot)
    mapped = "" if targets == [source] else ",".join(sorted(f"{source}={each}" for each in targets))
    for name, value in (
        (annotations.RESTORE_FROM, objects.name(snapshot)),
        (annotations.RESTORE_CONTAINER_MAP, mapped),
    ):
        if own.get(name, value) != value:
            raise _Refused(f"annotation {name} is {own[name]!r} already: leave it out")
        if value:
            own[name] = value
    volume = {"name": snapshots.CONTROL_VOLUME, "emptyDir": {}}
    spec["volumes"] = _with(items(spec.get("volumes")), volume, "name", f"volume {snapshots.CONTROL_VOLUME}")
    containers = {each["name"]: each for each in items(spec.get("containers")) if mapping(each).get("name")}
    for name in targets:
        if name not in containers:
            raise _Refused(f"it has no container {name} to restore")
        _restore(containers[name], profile)
    for name in snapshots.OF_CANDIDATES:
        own.pop(name, None)
    return made


def _restore(container: KubeObject, profile: str) -> None:
    name = container["name"]
    if not snapshots.can_be_restored([*items(container.get("command")), *items(container.get("args"))]):
        raise _Refused(f"container {name} must start its engine by python3 -m dynamo.<engine>, without a shell")
    mount = {"name": snapshots.CONTROL_VOLUME, "mountPath": snapshots.CONTROL_PATH, "subPath": name}
    what = f"a mount at {snapshots.CONTROL_PATH} of container {name}"
    container["volumeMounts"] = _with(items(container.get("volumeMounts")), mount, "mountPath", what)
    for variable, value in (
        (env.SNAPSHOT_CONTROL_DIR, snapshots.CONTROL_PATH),
        (env.DYN_SNAPSHOT_CONTROL_DIR, snapshots.CONTROL_PATH),
        (env.SNAPSHOT_RESTORE_STANDBY, "1"),
    ):
        given = {"name": variable, "value": value}
        container["env"] = _with(items(container.get("env")), given, "name", f"variable {variable} of container {name}")
    if profile:
        context = container.setdefault("securityContext", {})
        profiled = {"type": "Localhost", "localhostProfile": profile}
        if context.setdefault("seccompProfile", profiled) != profiled:
            raise _Refused(f"container {name} has another seccompProfile than {profile}: leave it out")
    probes = (container.get(each) for each in ("startupProbe", "livenessProbe", "readinessProbe"))
    asked = {key: value for key, value in next(filter(None, probes), _RESTORED).items() if key != "initialDelaySeconds"}
    container["startupProbe"] = {**asked, "periodSeconds": 1, "failureThreshold": _LONGEST, "successThreshold": 1}


def _with(present: list[Any], added: KubeObject, key: str, what: str) -> list[Any]:
    """A list with this entry last, or as it is where it has the entry. _Refused where it has another one in its place."""
    taken = [each for each in present if mapping(each).get(key) == added[key]]
    if not taken:
        return [*present, added]
    if taken != [added]:
        raise _Refused(f"{what} is in the way of its restore: leave it out")
    return present


def _usable(snapshot: KubeObject, own: Any, owner: str = "") -> KubeObject:
    name = f"PodSnapshot {objects.name(snapshot)}"
    expected = own.get(annotations.RESTORE_COMPATIBILITY_HASH, "")
    if problem := snapshots.problem_of(snapshot, expected, owner):
        raise _Refused(f"{name} {problem}")
    if not snapshots.is_ready(snapshot):
        raise _Unavailable(f"{name} is not ready") if owner else _Refused(f"{name} is not ready")
    return snapshot


def _is_immediate(own: Any) -> bool:
    """Whether a pod may start without its checkpoint."""
    policy = own.get(annotations.RESTORE_STARTUP_POLICY, snapshots.IMMEDIATE)
    return (own.get(annotations.RESTORE_SOURCE_KIND), policy) == (SNAPSHOT_JOBS.kind, snapshots.IMMEDIATE)


def _refusal(message: str) -> ReviewVerdict:
    return ReviewVerdict(ReviewStatus("Failure", message, "Forbidden", 403))
