"""How a profiling Job goes, and what came of it, from the Job, its pods and the output ConfigMap. Pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import container_statuses
from dynamo_shared.api.untrusted import times
from dynamo_shared.api.untrusted.words import last_of, quoted
from dynamo_shared.api.v1beta1.request import ProfilingPhase
from dynamo_shared.kube.events import newest_refusal

from dynamo_profiler.profiling.results import ProfilingFailed
from dynamo_profiler.requests.thorough import names

#: Of what a profiler wrote last, in a status, without what looks like a secret. The whole is in its log. Characters.
TAIL = 400
#: The condition of a Job that fails as soon as its pods have ended, and how long these may take beyond their own. Seconds.
_FAILING, END_WITHIN = "FailureTarget", 300.0
#: What comes before the reason in a refusal of the API server.
_FORBIDDEN = " is forbidden: "


class JobOutcome(NamedTuple):
    """Whether a Job has ended, and how."""

    succeeded: bool
    reason: str
    message: str


def end_of(job: KubeObject, now: datetime) -> JobOutcome | None:
    """How a Job ended; None while it runs, or its pod may still hand something over.

    From Kubernetes 1.31 on, a Job has failed only when its pod has ended: on a node that is lost, that takes as long as it is.
    """
    for type_, succeeded in (("Complete", True), ("Failed", False)):
        if objects.is_true(job, type_):
            return _outcome(job, type_, succeeded)
    if not objects.is_true(job, _FAILING) or not _is_overdue(job, now):
        return None
    failing = _outcome(job, _FAILING, succeeded=False)
    return failing._replace(message=f"{failing.message}; its pod has not ended since then: is its node lost?")


def _outcome(job: KubeObject, type_: str, succeeded: bool) -> JobOutcome:
    entry = objects.condition(job, type_) or {}
    return JobOutcome(succeeded, entry.get("reason", ""), entry.get("message", ""))


def _is_overdue(job: KubeObject, now: datetime) -> bool:
    """Whether the pod of a Job that fails has had time enough to end."""
    since = times.moment((objects.condition(job, _FAILING) or {}).get("lastTransitionTime") or "")
    pod = ((job.get("spec") or {}).get("template") or {}).get("spec") or {}
    grace = pod.get("terminationGracePeriodSeconds") or 0
    return since is not None and (now - since).total_seconds() >= END_WITHIN + grace


def step_of(
    output: KubeObject | None, pods: Iterable[KubeObject], events: Iterable[KubeObject] = ()
) -> tuple[ProfilingPhase, str]:
    """What profiling is at: what the profiler says, or what holds its pod up: `events` are the Job's while it has no pod."""
    data = (output or {}).get("data") or {}
    known = {phase.value: phase for phase in ProfilingPhase}
    phase = known.get(data.get(names.PHASE, ""), ProfilingPhase.INITIALIZING)
    if data.get(names.PHASE):
        return phase, quoted(data.get(names.MESSAGE, ""), TAIL) or f"the profiler is at {phase.value}"
    waits = next(filter(None, map(_waits, pods)), "")
    return phase, waits or _refused(events) or "the profiling pod is on its way"


def failure(output: KubeObject | None, ended: JobOutcome | None, pods: Iterable[KubeObject]) -> ProfilingFailed | None:
    """Why there is no result: the profiler's word before the Job's, and its last lines; None where there may yet be one."""
    data = (output or {}).get("data") or {}
    own = data.get(names.ERROR, "") if data.get(names.STATUS) == names.FAILED else ""
    if not own and (ended is None or ended.succeeded):
        return None
    reason = "" if own or ended is None or ended.reason != "DeadlineExceeded" else "BudgetExceeded"
    pods = list(pods)
    # A Job reports how often it may try, and nothing of what ended its pod.
    cause = "" if reason else next(filter(None, map(_ended_by, pods)), "")
    said = quoted(own, TAIL) or f"the profiling Job failed: {cause or (ended.message if ended else '')}"
    last = next(filter(None, map(_last_words, pods)), "")
    log = (
        f"; its last lines: {last}; `kubectl logs` of the profiling pod has the whole"
        if last and last not in said
        else ""
    )
    return ProfilingFailed(reason, f"{said}{log}")


def _waits(pod: KubeObject) -> str:
    status = pod.get("status") or {}
    for entry in status.get("conditions", ()):
        if entry["type"] == "PodScheduled" and entry["status"] == "False":
            return f"the profiling pod is not scheduled: {entry.get('message', '')}"
    for entry in container_statuses(pod):
        waiting = (entry.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            return f"container {entry['name']} waits: {waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
    return ""


def _refused(events: Iterable[KubeObject]) -> str:
    newest = newest_refusal(events)
    if newest is None:
        return ""
    note = str(newest.get("note", ""))
    # Each attempt has another name.
    return f"the profiling pod is refused: {quoted(note.partition(_FORBIDDEN)[2] or note, TAIL)}"


def _ended_by(pod: KubeObject) -> str:
    """What ended a pod from outside: its node or a scheduler, or the limit of its memory."""
    status = pod.get("status") or {}
    disrupted = objects.condition(pod, "DisruptionTarget") or {}
    by = status if status.get("reason") else disrupted if disrupted.get("status") == "True" else {}
    if by:
        return f"its pod was ended: {by['reason']}: {quoted(by.get('message') or '', TAIL)}".rstrip(": ")
    for entry in container_statuses(pod):
        if ((entry.get("state") or {}).get("terminated") or {}).get("reason") == "OOMKilled":
            return f"container {entry['name']} ran out of memory: give it more with spec.overrides.profilingJob (OOMKilled)"
    return ""


def _last_words(pod: KubeObject) -> str:
    for entry in (pod.get("status") or {}).get("containerStatuses", ()):
        ended = (entry.get("state") or {}).get("terminated") or {}
        if entry["name"] == names.PROFILER and ended:
            return (
                last_of(ended.get("message") or "", TAIL)
                or f"exit code {ended.get('exitCode')}, {ended.get('reason', '')}"
            )
    return ""
