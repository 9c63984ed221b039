"""New pods that should start from a PodSnapshot: whether they can, and how they change.

The pod-builder annotates the pod templates of workers with what their pods may start from (a candidate), and does so
before it is there: so no pod is replaced when it comes, and those that are created later start from it. Source of the
rules: Dynamo 1.5, `pod_checkpoint_restore_handler.go`, and Snapshot 0.1.0, `api/podcontract/restore_pod.go`.

1. The PodSnapshot is there, ready, and of an engine as this one: the pod is changed so that Snapshot's agent restores
   it.
2. It is not, or something is in the way, and the candidate is Immediate and automatic: the pod starts without it. Here
   the reference refuses what does not fit; a graph that serves all the same could then replace none of its pods.
3. Else the pod is refused. Its controller tries again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import structlog
from dynamo_shared.api import objects, snapshots
from dynamo_shared.api.embedded.rules.names import wrong_object_name
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations, env, labels
from dynamo_shared.api.resources import POD_SNAPSHOTS, PODS, SNAPSHOT_JOBS, ObjectKey, Resource
from dynamo_shared.api.untrusted.reading import items, mapping, text
from dynamo_shared.api.untrusted.words import shortened
from dynamo_shared.kube import KubeClient, KubeError, NotFound, NotServed, ResponseTooLarge
from dynamo_shared.lru import LruCache

from dynamo_admission import jsonpatch
from dynamo_admission.review import CREATE, LONGEST_LINE, SKIPPED, ReviewVerdict, bounded
from dynamo_admission.wire import AdmissionRequest, ReviewStatus

#: Reads an object; None if the object or its kind does not exist, or if it is larger than `MAX_POD`. KubeError or
#: TimeoutError if the API server does not answer.
Find: TypeAlias = Callable[[Resource, ObjectKey], Awaitable[KubeObject | None]]

#: A pod of a component, and its PodSnapshot, have about 10 KB each. Larger objects are not read: their author may send
#: hundreds at once, and each waits for the API server in memory twenty times as large. Bytes.
MAX_POD = 256 << 10

#: How long an object that was too large is not read again, in seconds, and for how many objects this is remembered.
_TOO_LARGE_FOR, _REMEMBERED = 30.0, 1000
#: Number of objects that are read at a time: each takes some milliseconds.
_AT_ONCE = 8
#: Labels that every pod of a component has: other pods do not start from the PodSnapshot of a candidate.
_STAMPED = (labels.COMPONENT, labels.COMPONENT_TYPE, labels.DYNAMO_NAMESPACE, labels.SELECTOR)
#: Longest duration of a restore, with one probe each second: half an hour.
_LONGEST = 1800
_RESTORED = {"exec": {"command": ["cat", snapshots.RESTORE_COMPLETE]}, "timeoutSeconds": 1}

log = structlog.get_logger("dynamo.admission")


class _Refused(Exception):
    """A pod that may not start; the message says why."""


class _Unavailable(Exception):
    """The PodSnapshot does not exist or is not ready; the message says why."""


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
        metadata = mapping(pod.get("metadata"))
        own, stamped = _texts(metadata.get("annotations")), _texts(metadata.get("labels"))
        if own.get(annotations.RESTORE_CANDIDATE) != "true":
            return SKIPPED
        if not own.get(annotations.RESTORE_SOURCE) or not all(stamped.get(label) for label in _STAMPED):
            return _refusal("its annotations and labels do not match a pod of a component")
        try:
            snapshot = await self._snapshot(own, ObjectKey(request.namespace, own[annotations.RESTORE_SOURCE]))
            return ReviewVerdict(patch=jsonpatch.difference(pod, restored(pod, snapshot, self.profile)))
        except (_Unavailable, KubeError, TimeoutError) as error:
            if _is_immediate(own):
                return SKIPPED
            why = str(error) if isinstance(error, _Unavailable) else "the API server does not answer"
            return _refusal(f"the pod waits for its checkpoint: {why}")
        except _Refused as error:
            why = shortened(str(error), LONGEST_LINE)
            log.warning("pod not restored", namespace=request.namespace, pod=request.name, because=why)
            if _is_immediate(own):
                return replace(SKIPPED, warnings=bounded([f"the pod starts without its checkpoint: {why}"]))
            return _refusal(why)

    async def _snapshot(self, own: Mapping[str, str], key: ObjectKey) -> KubeObject:
        if wrong_object_name(key.name):
            raise _Refused(f"annotation {annotations.RESTORE_SOURCE} is not a valid object name")
        kind = own.get(annotations.RESTORE_SOURCE_KIND)
        if kind == SNAPSHOT_JOBS.kind:
            return await self._of_job(own, key)
        if kind == POD_SNAPSHOTS.kind:
            return await self._pinned(own, key)
        raise _Refused(f"annotation {annotations.RESTORE_SOURCE_KIND} is neither SnapshotJob nor PodSnapshot")

    async def _of_job(self, own: Mapping[str, str], key: ObjectKey) -> KubeObject:
        """The PodSnapshot of a SnapshotJob."""
        job = await self.find(SNAPSHOT_JOBS, key)
        if job is None or objects.uid(job) != own.get(annotations.RESTORE_JOB_UID):
            raise _Unavailable(f"SnapshotJob {key.name} no longer exists")
        owner = snapshots.owner_uid(job)
        if not owner:
            raise _Refused(f"SnapshotJob {key.name} was not created for a graph")
        if snapshots.failure_of(job) is not None or not snapshots.is_completed(job):
            raise _Unavailable(f"SnapshotJob {key.name} has not completed")
        name = snapshots.snapshot_name(job)
        snapshot = await self.find(POD_SNAPSHOTS, ObjectKey(key.namespace, name)) if name else None
        if snapshot is None or not snapshots.is_taken_by(job, snapshot):
            raise _Unavailable(f"the PodSnapshot of SnapshotJob {key.name} no longer exists")
        return _usable(snapshot, own, owner)

    async def _pinned(self, own: Mapping[str, str], key: ObjectKey) -> KubeObject:
        """The PodSnapshot that a user has named, if it is the one for which the pod's template was rendered."""
        snapshot = await self.find(POD_SNAPSHOTS, key)
        # Every client that reaches the port can ask about every namespace: reveal nothing about a PodSnapshot to a
        # client that does not know its uid.
        if snapshot is None or objects.uid(snapshot) != own.get(annotations.RESTORE_SNAPSHOT_UID):
            raise _Refused(f"PodSnapshot {key.name} is not the one for which the pod's template was created")
        usable = _usable(snapshot, own)
        if snapshots.content_of(usable) != own.get(annotations.RESTORE_SNAPSHOT_CONTENT):
            raise _Refused(
                f"PodSnapshot {key.name} is bound to another PodSnapshotContent than the pod's template names"
            )
        return usable


def finder(kube: KubeClient, within: float, clock: Callable[[], float] = time.monotonic) -> Find:
    """Reads objects from the API server, if it answers `within` so many seconds.

    A large object may cost the API server a second of time, and its author almost nothing. So only a few are read at
    once, and an object that was too large is not read again for a while.
    """
    large: LruCache[tuple[Resource, ObjectKey], float] = LruCache(_REMEMBERED)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def find(resource: Resource, key: ObjectKey) -> KubeObject | None:
        try:
            async with asyncio.timeout(within), gate:
                if clock() < large.get((resource, key), 0.0):
                    return None
                return await kube.get(resource, key, most=MAX_POD)
        except (NotFound, NotServed):
            return None
        except ResponseTooLarge:
            large[resource, key] = clock() + _TOO_LARGE_FOR
            return None

    return find


def restored(pod: KubeObject, snapshot: KubeObject, profile: str) -> KubeObject:
    """A candidate that starts from a PodSnapshot. Raises _Refused if another setting conflicts.

    It shares unchanged parts with the given pod, which may have any number of parts.
    """
    own, spec = _texts(pod["metadata"]["annotations"]), mapping(pod.get("spec"))
    targets = [name.strip() for name in own.get(annotations.RESTORE_TARGETS, "").split(",")]
    if not all(targets) or len(set(targets)) < len(targets):
        raise _Refused(f"annotation {annotations.RESTORE_TARGETS} must name containers of the pod, each once")
    containers = [mapping(each) for each in items(spec.get("containers"))]
    if lacking := sorted(set(targets) - {text(each.get("name")) for each in containers}):
        raise _Refused(f"the pod has no container {lacking[0]} to restore")
    source = snapshots.captured_container(snapshot)
    mapped = "" if targets == [source] else ",".join(sorted(f"{source}={each}" for each in targets))
    for name, value in (
        (annotations.RESTORE_FROM, objects.name(snapshot)),
        (annotations.RESTORE_CONTAINER_MAP, mapped),
    ):
        if own.get(name, value) != value:
            raise _Refused(f"annotation {name} is already {own[name]!r}: remove it")
        if value:
            own[name] = value
    for name in snapshots.OF_CANDIDATES:
        own.pop(name, None)
    volume = {"name": snapshots.CONTROL_VOLUME, "emptyDir": {}}
    volumes = _with(items(spec.get("volumes")), volume, "name", f"volume {snapshots.CONTROL_VOLUME}")
    chosen = set(targets)
    changed = [_restored(each, profile) if text(each.get("name")) in chosen else each for each in containers]
    return {
        **pod,
        "metadata": {**pod["metadata"], "annotations": own},
        "spec": {**spec, "containers": changed, "volumes": volumes},
    }


def _restored(given: KubeObject, profile: str) -> KubeObject:
    container, name = dict(given), given["name"]
    if not snapshots.can_be_restored([*items(container.get("command")), *items(container.get("args"))]):
        raise _Refused(f"container {name} must start its engine with python3 -m dynamo.<engine>, without a shell")
    mount = {"name": snapshots.CONTROL_VOLUME, "mountPath": snapshots.CONTROL_PATH, "subPath": name}
    what = f"a mount at {snapshots.CONTROL_PATH} of container {name}"
    container["volumeMounts"] = _with(items(container.get("volumeMounts")), mount, "mountPath", what)
    for variable, value in (
        (env.SNAPSHOT_CONTROL_DIR, snapshots.CONTROL_PATH),
        (env.DYN_SNAPSHOT_CONTROL_DIR, snapshots.CONTROL_PATH),
        (env.SNAPSHOT_RESTORE_STANDBY, "1"),
    ):
        added = {"name": variable, "value": value}
        container["env"] = _with(items(container.get("env")), added, "name", f"variable {variable} of container {name}")
    if profile:
        context = mapping(container.get("securityContext"))
        profiled = {"type": "Localhost", "localhostProfile": profile}
        if (context.get("seccompProfile") or profiled) != profiled:
            raise _Refused(f"container {name} has another seccompProfile than {profile}: remove it")
        container["securityContext"] = {**context, "seccompProfile": profiled}
    probes = (mapping(container.get(each)) for each in ("startupProbe", "livenessProbe", "readinessProbe"))
    asked = {key: value for key, value in next(filter(None, probes), _RESTORED).items() if key != "initialDelaySeconds"}
    container["startupProbe"] = {**asked, "periodSeconds": 1, "failureThreshold": _LONGEST, "successThreshold": 1}
    return container


def _with(present: list[Any], added: KubeObject, key: str, what: str) -> list[Any]:
    """A list with this entry appended, or unchanged if it has the entry. _Refused if it has a different entry with the
    same key.
    """
    taken = [each for each in present if mapping(each).get(key) == added[key]]
    if not taken:
        return [*present, added]
    if taken != [added]:
        raise _Refused(f"{what} conflicts with the restore: remove it")
    return present


def _usable(snapshot: KubeObject, own: Mapping[str, str], owner: str = "") -> KubeObject:
    name = f"PodSnapshot {objects.name(snapshot)}"
    expected = own.get(annotations.RESTORE_COMPATIBILITY_HASH, "")
    if problem := snapshots.problem_of(snapshot, expected, owner):
        raise _Refused(f"{name} {problem}")
    if not snapshots.is_ready(snapshot):
        raise _Unavailable(f"{name} is not ready") if owner else _Refused(f"{name} is not ready")
    return snapshot


def _is_immediate(own: Mapping[str, str]) -> bool:
    """Whether a pod may start without its checkpoint."""
    policy = own.get(annotations.RESTORE_STARTUP_POLICY, snapshots.IMMEDIATE)
    return (own.get(annotations.RESTORE_SOURCE_KIND), policy) == (SNAPSHOT_JOBS.kind, snapshots.IMMEDIATE)


def _texts(value: Any) -> dict[str, str]:
    """Annotations or labels; the API server sends only string values."""
    return {name: each for name, each in mapping(value).items() if isinstance(each, str)}


def _refusal(message: str) -> ReviewVerdict:
    return ReviewVerdict(ReviewStatus("Failure", shortened(message, LONGEST_LINE), "Forbidden", 403))
