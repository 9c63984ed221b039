"""The state of a build, from its Job and the Job's pods. Pure. It quotes pods' messages short and without secrets."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import container_statuses
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.untrusted.times import moment
from dynamo_shared.api.untrusted.words import last_of, quoted, redacted

from dynamo_image_builder.builds import DIGEST
from dynamo_image_builder.job import BUILDER, FETCH

#: If a Job has no pod for this time, the API server has refused the pod. Seconds.
POD_WITHIN = 15.0
#: Length limit of the log in a status. Characters.
LOG_LIMIT = 3000
#: Reasons of pods that a kubelet or the control plane ended, whatever the exit codes of their containers.
_LOST = ("Evicted", "NodeLost", "Shutdown", "Terminated", "Preempting")
#: Waiting reasons that are not reported.
_ORDINARY = frozenset({"", "ContainerCreating", "PodInitializing"})
#: A pattern in the log of a failed build, the reason, and the advice.
_ADVICE: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r"(?i)failed to (push|authorize)|insufficient_scope|push access denied|denied: requested access"),
        "PushFailed",
        "check platform.imageBuilder.registry: its server, and the Secret with credentials that may push",
    ),
    (
        re.compile(r"(?i)server gave HTTP response to HTTPS client"),
        "PushFailed",
        "the registry has no TLS: set platform.imageBuilder.registry.secure to false",
    ),
    (
        re.compile(r"(?i)failed to resolve source metadata|failed to do request|pull access denied"),
        "PullFailed",
        "the build's pod cannot pull the FROM image of the Dockerfile: check the network and the image's name",
    ),
    (
        re.compile(r"(?i)newuidmap|failed to start the child|rootlesskit"),
        "NotAllowed",
        "rootless BuildKit may not create namespaces: admit Pod Security privileged in the builds' namespace, and let nodes "
        "create user namespaces; or set platform.imageBuilder.buildkit.url",
    ),
)


@dataclass(frozen=True, slots=True)
class ObservedBuild:
    """The state of a build. `done` is None while it runs; `duration` in seconds."""

    done: bool | None
    reason: str
    message: str
    digest: str = ""
    log: str = ""
    duration: int | None = None
    ended_at: str = ""


def observe(job: KubeObject, pods: Sequence[KubeObject], now: datetime) -> ObservedBuild:
    """The state of a build. `pods`: the last one first, which decides: a Job replaces lost pods."""
    for type_, ended in (("Complete", _complete), ("Failed", _failed)):
        if (condition := objects.condition(job, type_)) is not None and condition["status"] == "True":
            return ended(job, pods, condition)
    return _under_way(job, pods, now)


def digest_of(job: KubeObject) -> str:
    """The image's digest that an earlier reconcile wrote on the Job; "" if there is none."""
    noted = objects.annotations(job).get(keys.IMAGE_DIGEST, "")
    return noted if DIGEST.fullmatch(noted) else ""


def _complete(job: KubeObject, pods: Sequence[KubeObject], condition: KubeObject) -> ObservedBuild:
    said = _termination_message(pods)
    digest, log = said or ("", "")
    digest = digest or digest_of(job)
    ended = condition.get("lastTransitionTime", "")
    if not digest and said is not None:
        # A repeated build would give the same result.
        message = "BuildKit ended without a digest: set platform.imageBuilder.buildkit.image to a release that reports the digest"
        return ObservedBuild(False, "BuildFailed", message, log=log, duration=_duration(job, ended), ended_at=ended)
    if not digest:
        message = (
            "the build ended, but its pod was deleted before its digest was read: the platform builds the image again"
        )
        return ObservedBuild(False, "ResultLost", message, log=log, ended_at=ended)
    message = f"the image is pushed as {digest}"
    return ObservedBuild(True, "Built", message, digest, log, _duration(job, ended), ended)


def _failed(job: KubeObject, pods: Sequence[KubeObject], condition: KubeObject) -> ObservedBuild:
    _, log = _termination_message(pods) or ("", "")
    ended = condition.get("lastTransitionTime", "")
    reason, message = _cause(pods, log) or ("BuildFailed", quoted(condition.get("message") or "the Job failed"))
    if condition.get("reason") == "DeadlineExceeded":
        seconds = job.get("spec", {}).get("activeDeadlineSeconds")
        reason = "DeadlineExceeded"
        message = f"the build took more than {seconds} s: make it smaller, or raise platform.imageBuilder.deadline"
    return ObservedBuild(False, reason, message, log=log, duration=_duration(job, ended), ended_at=ended)


def _under_way(job: KubeObject, pods: Sequence[KubeObject], now: datetime) -> ObservedBuild:
    name, namespace = objects.name(job), objects.namespace(job)
    for pod in pods:
        for condition in pod.get("status", {}).get("conditions") or ():
            if (condition["type"], condition["status"]) == ("PodScheduled", "False"):
                return ObservedBuild(None, "Unschedulable", f"the build's pod waits for a node: {_short(condition)}")
        for container, waiting in _states(pod, "waiting"):
            if waiting.get("reason", "") not in _ORDINARY:
                return ObservedBuild(None, waiting["reason"], f"container {container} waits: {_short(waiting)}")
    if not pods and age(job, now) > POD_WITHIN:
        message = (
            f"Job {name} has no pod: `kubectl describe job {name} --namespace {namespace}` shows the reason; rootless builds "
            "need Pod Security privileged in that namespace"
        )
        return ObservedBuild(None, "NoPod", message)
    return ObservedBuild(None, "Building", f"Job {name} in namespace {namespace} builds the image")


def _termination_message(pods: Sequence[KubeObject]) -> tuple[str, str] | None:
    """The digest and the end of the log from the builder's termination message; None without one."""
    for pod in pods:
        for name, end in _states(pod, "terminated"):
            if name == BUILDER and end.get("message"):
                first, _, rest = str(end["message"]).partition("\n")
                digest = first.removeprefix("digest=")
                return digest if DIGEST.fullmatch(digest) else "", redacted(rest)[-LOG_LIMIT:].strip()
    return None


def _cause(pods: Sequence[KubeObject], log: str) -> tuple[str, str] | None:
    """Why a build failed, and what to do."""
    for pod in pods:
        # First, because the end of a pod kills its containers, and their exit codes look like a failed build.
        if lost := _lost(pod):
            return lost
        for name, end in _states(pod, "terminated"):
            if not end.get("exitCode"):
                continue
            if end.get("reason") == "OOMKilled":
                raised = "fetchResources, or pack the archive with gzip" if name == FETCH else "resources"
                return "OutOfMemory", f"container {name} ran out of memory: raise platform.imageBuilder.{raised}"
            if name == FETCH:
                reason, _, message = str(end.get("message") or "").partition(": ")
                known = re.fullmatch(r"[A-Z][A-Za-z]{2,40}", reason)
                return (
                    (reason, quoted(message))
                    if known
                    else ("FetchFailed", f"the archive was not fetched: {_short(end)}")
                )
            for pattern, reason, advice in _ADVICE:
                if pattern.search(log):
                    return reason, f"{_last_error(log)}; {advice}"
            code = end["exitCode"]
            return (
                "BuildFailed",
                f"{_last_error(log) or f'the builder ended with code {code}'}; correct it in the archive",
            )
    return None


def _lost(pod: KubeObject) -> tuple[str, str] | None:
    """Why a pod was ended from outside; None if its containers ended by themselves."""
    status = pod.get("status") or {}
    reason, message = str(status.get("reason") or ""), status.get("message")
    if reason not in _LOST:
        drained = objects.condition(pod, "DisruptionTarget")
        # A container with a termination message ended before that.
        if (
            drained is None
            or not objects.is_true(pod, "DisruptionTarget")
            or any(end.get("message") for _, end in _states(pod, "terminated"))
        ):
            return None
        reason, message = str(drained.get("reason") or "DisruptionTarget"), drained.get("message")
    return reason, f"the build's pod was lost: {quoted(str(message or reason))}"


def _last_error(log: str) -> str:
    errors = [line for line in log.splitlines() if re.search(r"(?i)error|failed", line)]
    return last_of((errors or log.splitlines() or [""])[-1])


def _states(pod: KubeObject, state: str) -> Iterator[tuple[str, KubeObject]]:
    """Names of the containers in a state, and the details of that state."""
    for entry in container_statuses(pod):
        if result := (entry.get("state") or {}).get(state):
            yield entry["name"], result


def _short(said: KubeObject) -> str:
    return quoted(": ".join(filter(None, (said.get("reason"), said.get("message")))) or "no reason reported")


def _duration(job: KubeObject, ended: str) -> int | None:
    begun, end = moment(job.get("status", {}).get("startTime", "")), moment(ended)
    return max(0, round((end - begun).total_seconds())) if begun and end else None


def age(job: KubeObject, now: datetime) -> float:
    """Seconds since a build's Job was created."""
    created = moment(objects.created_at(job))
    return (now - created).total_seconds() if created else 0.0
