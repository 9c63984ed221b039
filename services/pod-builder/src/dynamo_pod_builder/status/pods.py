"""What prevents pods from serving, read from their status and worded as in `kubectl describe pod`.

One of the following cases can hold for a pod that is not ready; the first that matches is reported:
1. The image of a container cannot be pulled.
2. A container cannot be created: for example, a Secret or ConfigMap is missing.
3. An init container failed.
4. A container was killed because it used more memory than its limit.
5. A container ends repeatedly, or has ended and is on its second try.
6. No node accepts the pod.
7. Its node has ended it: evicted, node shut down. Or its node no longer reports.
8. For a long time, no scheduler has considered it, or its volumes, network or devices are missing.
9. Its startup or readiness probe has not succeeded for a long time.

Kubernetes words the same trouble differently each time (attempts alternate with back-off, and are counted). The
reported message stays the same as long as the trouble does, because each change is a write of a status.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.pods import has_ended, is_active, unschedulable
from dynamo_shared.api.untrusted import times
from dynamo_shared.api.untrusted.words import shortened

#: How long a scheduler may take to consider a pod, and volumes, network and devices to become ready: attaching a
#: network volume usually takes a minute. Seconds.
START_WITHIN = 180.0
#: How long a container may run without being ready; equal to the default progress deadline of a Deployment. Seconds.
READY_WITHIN = 600.0
#: How long a node may take to confirm that it has ended a pod, after the pod's grace period. Seconds.
END_WITHIN = 60.0
#: The number of pods that a message names.
NAMED = 3
#: The longest quotation in a message. Characters.
QUOTED = 400

IMAGE_PULL, INIT_FAILED, OUT_OF_MEMORY = "ImagePullBackOff", "InitContainerFailed", "OOMKilled"
CRASH_LOOP, CRASHED, UNSCHEDULABLE, POD_FAILED = "CrashLoopBackOff", "ContainerCrashed", "Unschedulable", "PodFailed"
NOT_STARTED, STARTUP_PROBE, READINESS_PROBE = "PodNotStarted", "StartupProbeFailing", "ReadinessProbeFailing"
NODE_LOST = "NodeLost"
_REPLACED = "if the machine no longer exists, delete the Node, and Kubernetes replaces its pods"


class Rank(IntEnum):
    """The order in which troubles are reported: first what a user has to change, then what may pass."""

    REFUSED = 0
    IMAGE = 1
    NOT_MADE = 2
    INIT = 3
    MEMORY = 4
    CRASH = 5
    PLACE = 6
    ENDED = 7
    NOT_STARTED = 8
    PROBE = 9


@dataclass(frozen=True, slots=True, order=True)
class Trouble:
    """What prevents one pod from serving; `reason` is for programs, like the reason of a condition."""

    rank: Rank
    reason: str
    pod: str
    message: str
    #: Uid of the pod, because earlier pods may have had its name. Not compared: only the name and the trouble count.
    uid: str = field(default="", compare=False)


def troubles(pods: Iterable[KubeObject], now: datetime) -> list[Trouble]:
    """The trouble of each pod that has one: the worst first, then by name."""
    pods = list(pods)
    # A pod that its node has ended, or fails to end, remains; when another has replaced it, it no longer matters.
    newest = max((objects.created_at(pod) for pod in pods if is_active(pod)), default=None)
    return sorted(
        trouble
        for pod in pods
        if not (newest is not None and not is_active(pod) and objects.created_at(pod) <= newest)
        and (trouble := trouble_of(pod, now)) is not None
    )


def summary(causes: Sequence[Trouble]) -> str:
    """Troubles in one sentence: at most three pods by name, grouped by trouble."""
    groups: dict[tuple[Rank, str, str], list[str]] = {}
    for each in causes:
        groups.setdefault((each.rank, each.reason, each.message), []).append(each.pod)
    parts: list[str] = []
    named = unnamed = 0
    for (_, _, message), names in groups.items():
        shown = names[: max(0, NAMED - named)]
        if not shown:
            unnamed += len(names)
            continue
        named += len(shown)
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        parts.append(f"{'pods' if len(names) > 1 else 'pod'} {', '.join(shown)}{more}: {message}")
    if unnamed:
        parts.append(f"and {unnamed} more {'pods' if unnamed > 1 else 'pod'}")
    return "; ".join(parts)


def trouble_of(pod: KubeObject, now: datetime | None = None) -> Trouble | None:
    """What prevents a pod from serving, or None; without a time, only what does not depend on time."""
    status, metadata = pod.get("status", {}), pod["metadata"]
    if status.get("phase") == "Succeeded" or objects.is_true(pod, "Ready"):
        return None
    if words := _lost(pod, now):
        return Trouble(Rank.ENDED, NODE_LOST, metadata["name"], words, metadata.get("uid", ""))
    if objects.is_deleting(pod):
        return None
    if status.get("phase") == "Failed":
        words = quoted(status.get("message") or "its containers have ended")
        return Trouble(Rank.ENDED, status.get("reason") or POD_FAILED, metadata["name"], words)
    if (scheduled := unschedulable(pod)) is not None:
        # The part about preemption repeats the same reasons.
        words = quoted(scheduled.get("message", "").partition(" preemption:")[0].rstrip(", "))
        return Trouble(Rank.PLACE, UNSCHEDULABLE, metadata["name"], words or "no node fits")
    causes = [each for each in _of_containers(pod, now) if each is not None]
    if now is not None and not causes:
        causes = [late for late in _late(pod) if late.since + late.within <= now]
    if not causes:
        return None
    worst = min(causes, key=lambda each: each.rank)
    return Trouble(worst.rank, worst.reason, metadata["name"], worst.message, metadata.get("uid", ""))


def recheck_after(pods: Iterable[KubeObject], now: datetime) -> float | None:
    """Seconds until a slow pod counts as too late; None if there is none."""
    due: list[float] = []
    for pod in pods:
        if (end := _end_due(pod)) is not None and end > now:
            due.append((end - now).total_seconds())
        if objects.is_deleting(pod) or objects.is_true(pod, "Ready"):
            continue
        ahead = [(late.since + late.within - now).total_seconds() for late in _late(pod)]
        # A container that is not running starts its time limit when it runs, which is not an event here.
        due.append(min((each for each in ahead if each > 0), default=READY_WITHIN))
    return min(due, default=None)


def _lost(pod: KubeObject, now: datetime | None) -> str:
    """A message that names the lost node of a pod, or "". Kubernetes deletes such a pod, and waits for the node.

    If the pod served, the node controller sets it to not ready, without a reason.
    """
    node, ready = (pod.get("spec") or {}).get("nodeName"), objects.condition(pod, "Ready") or {}
    cut_off = ready.get("status") == "False" and not ready.get("reason") and objects.is_true(pod, "ContainersReady")
    if cut_off:
        return f"its node {node} no longer reports; {_REPLACED}"
    if now is not None and (due := _end_due(pod)) is not None and due <= now:
        return f"its node {node} has not terminated it in time; {_REPLACED}"
    return ""


def _end_due(pod: KubeObject) -> datetime | None:
    """When its node should have confirmed the end of a pod that is being deleted; None for other pods."""
    ends = times.moment(pod["metadata"].get("deletionTimestamp"))
    on_node = (pod.get("spec") or {}).get("nodeName") and not has_ended(pod)
    return ends + timedelta(seconds=END_WITHIN) if ends is not None and on_node else None


@dataclass(frozen=True, slots=True)
class _Cause:
    rank: Rank
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class _DelayedCause(_Cause):
    """A cause that becomes a trouble if it lasts."""

    since: datetime
    within: timedelta


#: States of containers that are starting normally.
_STARTING_REASONS = frozenset({"", "ContainerCreating", "PodInitializing"})
#: Attempts and back-off of the same trouble.
_PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"})
_NOT_PULLED = frozenset({"InvalidImageName", "ErrImageNeverPull", "SignatureValidationFailed"})
_GATED = "SchedulingGated"
_NOT_RUN = frozenset({"StartError", "ContainerCannotRun"})
_BACK_OFF = re.compile(r'^Back-off pulling image "[^"]*"(: (ErrImagePull: )?)?')
#: What differs between two attempts with the same result: local ports, times, request ids.
_CHANGING = (
    (re.compile(r":\d+->"), "->"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]"), ""),
    (re.compile(r"\b\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:?\d\d)?"), ""),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "..."),
    (re.compile(r"(request ?id: )[\w-]+", re.IGNORECASE), r"\1..."),
    (re.compile(r"\s+"), " "),
)


#: The containers of a pod in its spec, and the field of its status about them.
_PARTS = {"initContainers": "initContainerStatuses", "containers": "containerStatuses"}


def _of_containers(pod: KubeObject, now: datetime | None) -> Iterator[_Cause | None]:
    spec, status = pod.get("spec", {}), pod.get("status", {})
    for part, of_part in _PARTS.items():
        written = {each["name"]: each for each in spec.get(part, ())}
        # The component's own container first: the others only support it.
        for each in sorted(status.get(of_part, ()), key=lambda each: (each["name"] != MAIN, each["name"])):
            yield _of_container(each, written.get(each["name"], {}), part == "initContainers", now)


def _of_container(status: KubeObject, written: KubeObject, init: bool, now: datetime | None) -> _Cause | None:
    state = status.get("state") or {}
    waiting = state.get("waiting") or {}
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    what = f"{'init container' if init else 'container'} {status['name']}"
    if reason in _PULLING or reason in _NOT_PULLED:
        words = quoted(_BACK_OFF.sub("", message))
        image = written.get("image") or status.get("image", "its image")
        explanation = f"{what} cannot pull {image}" + (f": {words}" if words else "")
        return _Cause(Rank.IMAGE, IMAGE_PULL if reason in _PULLING else reason, explanation)
    if reason == "RunContainerError":
        return _ended(what, {"reason": "StartError", "message": message}, CRASH_LOOP, written, init)
    if reason not in _STARTING_REASONS and reason != CRASH_LOOP:
        return _Cause(Rank.NOT_MADE, reason, f"{what}: {quoted(message) or reason}")
    ended = state.get("terminated") or (status.get("lastState") or {}).get("terminated")
    if ended is None or status.get("ready") or (init and ended.get("exitCode") == 0):
        return None
    running = state.get("running")
    if running and now is not None and now - _time(running.get("startedAt")) > timedelta(seconds=READY_WITHIN):
        # The kubelet, too, resets its back-off by now.
        return None
    again = reason == CRASH_LOOP or status.get("restartCount", 0) > 1
    return _ended(what, ended, CRASH_LOOP if again else CRASHED, written, init)


def _ended(what: str, ended: KubeObject, reason: str, written: KubeObject, init: bool) -> _Cause:
    words = _tail(_without_changing_parts(ended.get("message", "")))
    if ended.get("reason") == OUT_OF_MEMORY:
        limit = written.get("resources", {}).get("limits", {}).get("memory")
        used = f"its limit of {limit}" if limit else "its node had left"
        return _Cause(Rank.MEMORY, OUT_OF_MEMORY, f"{what} was killed: it used more memory than {used}")
    if ended.get("reason") in _NOT_RUN:
        message = f"{what} does not start"
    else:
        code = ended.get("exitCode", 0)
        signal = f", killed by signal {code - 128}" if 128 < code < 160 else ""
        message = f"{what} exited with code {code}{signal}"
    if words:
        message += f": {words}"
    return _Cause(Rank.INIT, INIT_FAILED, message) if init else _Cause(Rank.CRASH, reason, message)


def _late(pod: KubeObject) -> Iterator[_DelayedCause]:
    spec, status = pod.get("spec", {}), pod.get("status", {})
    scheduled, prepared = objects.condition(pod, "PodScheduled"), objects.condition(pod, "PodReadyToStartContainers")
    is_unplaced = not spec.get("nodeName") and not status.get("containerStatuses")
    if is_unplaced and (scheduled is None or scheduled.get("reason") == _GATED):
        # A scheduler writes the condition, unless no scheduler has this name, or a plugin holds the pod back.
        if created := times.moment(pod["metadata"].get("creationTimestamp")):
            within = timedelta(seconds=START_WITHIN)
            yield _DelayedCause(Rank.NOT_STARTED, NOT_STARTED, _unconsidered(spec), created, within)
        return
    if scheduled is not None and scheduled["status"] == "True" and (prepared or {}).get("status") == "False":
        message = (
            f"its volumes, network or devices are not ready {START_WITHIN / 60:.0f} minutes after it was scheduled"
        )
        since = _time(scheduled.get("lastTransitionTime"))
        yield _DelayedCause(Rank.NOT_STARTED, NOT_STARTED, message, since, timedelta(seconds=START_WITHIN))
        return
    turned = (objects.condition(pod, "Ready") or {}).get("lastTransitionTime")
    # Only init containers that keep running (sidecars) have probes.
    written = {each["name"]: each for part in _PARTS for each in spec.get(part, ())}
    reported = [each for part in _PARTS for each in status.get(_PARTS[part], ())]
    for each in sorted(reported, key=lambda each: (each["name"] != MAIN, each["name"])):
        running = (each.get("state") or {}).get("running")
        if not running or each.get("ready"):
            continue
        probes: Mapping[str, Any] = written.get(each["name"], {})
        starting = "startupProbe" in probes and not each.get("started")
        if not starting and "readinessProbe" not in probes:
            continue
        # If it was ready before, the time counts from when it became unready.
        since = max(_time(running.get("startedAt")), _time(turned))
        message = (
            f"container {each['name']} runs, but its {'startup' if starting else 'readiness'} probe "
            f"has not succeeded for more than {READY_WITHIN / 60:.0f} minutes"
        )
        reason = STARTUP_PROBE if starting else READINESS_PROBE
        yield _DelayedCause(Rank.PROBE, reason, message, since, timedelta(seconds=READY_WITHIN))


def _unconsidered(spec: KubeObject) -> str:
    lasts = f"{START_WITHIN / 60:.0f} minutes after it was created"
    if gates := [str(each.get("name")) for each in spec.get("schedulingGates") or ()]:
        return f"its scheduling gates remain {lasts}: {', '.join(gates)}"
    name = spec.get("schedulerName") or "default-scheduler"
    return f"no scheduler has considered it {lasts}; its schedulerName is {name}"


def quoted(text: str) -> str:
    """A quotation that is the same for the same trouble, and not too long."""
    return shortened(_without_changing_parts(text), QUOTED)


def _time(text: object) -> datetime:
    return times.moment(text) or times.EARLIEST


def _without_changing_parts(text: str) -> str:
    for changing, kept in _CHANGING:
        text = changing.sub(kept, text)
    return text.strip()


def _tail(text: str) -> str:
    """The last part of a text: the end of a log says what happened."""
    return text if len(text) <= QUOTED else f"...{text[3 - QUOTED :]}"
