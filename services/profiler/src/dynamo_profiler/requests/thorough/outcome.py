"""Progress and outcome of a profiling Job, from the Job, its pods and the output ConfigMap. Pure."""

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

#: Length of the end of a profiler's output in a status, with secrets removed. Its log has everything. Characters.
TAIL = 400
#: The condition of a failing Job whose pods have not ended, and the time that they may need beyond their grace period.
#: Seconds.
_FAILING, END_WITHIN = "FailureTarget", 300.0
#: Text before the reason in a refusal of the API server.
_FORBIDDEN = " is forbidden: "


class JobOutcome(NamedTuple):
    """How a Job ended."""

    succeeded: bool
    reason: str
    message: str


def end_of(job: KubeObject, now: datetime) -> JobOutcome | None:
    """How a Job ended; None while it runs, or while its pod may still write output.

    From Kubernetes 1.31 on, a Job has failed only when its pods have ended, which on a lost node never happens by
    itself.
    """
    for type_, succeeded in (("Complete", True), ("Failed", False)):
        if objects.is_true(job, type_):
            return _outcome(job, type_, succeeded)
    if not objects.is_true(job, _FAILING) or not _is_overdue(job, now):
        return None
    failing = _outcome(job, _FAILING, succeeded=False)
    return failing._replace(
        message=f"{failing.message}; the Job's pod is still running: check whether the pod's node is lost"
    )


def _outcome(job: KubeObject, type_: str, succeeded: bool) -> JobOutcome:
    entry = objects.condition(job, type_) or {}
    return JobOutcome(succeeded, entry.get("reason", ""), entry.get("message", ""))


def _is_overdue(job: KubeObject, now: datetime) -> bool:
    """Whether the pods of a failing Job have had enough time to end."""
    since = times.moment((objects.condition(job, _FAILING) or {}).get("lastTransitionTime") or "")
    pod = ((job.get("spec") or {}).get("template") or {}).get("spec") or {}
    grace = pod.get("terminationGracePeriodSeconds") or 0
    return since is not None and (now - since).total_seconds() >= END_WITHIN + grace


def step_of(
    output: KubeObject | None,
    pods: Iterable[KubeObject],
    events: Iterable[KubeObject] = (),
    *,
    suspended: bool = False,
) -> tuple[ProfilingPhase, str]:
    """The current step of profiling: the profiler's report, or the reason that its pod does not start. `events`: the
    Job's, while it has no pod.
    """
    data = (output or {}).get("data") or {}
    known = {phase.value: phase for phase in ProfilingPhase}
    phase = known.get(data.get(names.PHASE, ""), ProfilingPhase.INITIALIZING)
    if data.get(names.PHASE):
        return phase, quoted(data.get(names.MESSAGE, ""), TAIL) or f"the profiler is at {phase.value}"
    if suspended:
        return phase, "the profiling Job is suspended: its queue, or spec.overrides.profilingJob.suspend, holds it back"
    waits = next(filter(None, map(_waits, pods)), "")
    return phase, waits or _refused(events) or "the profiling pod is starting"


def failure(output: KubeObject | None, ended: JobOutcome | None, pods: Iterable[KubeObject]) -> ProfilingFailed | None:
    """Why there is no result, from the profiler before the Job, with its last lines; None if a result may still come."""
    data = (output or {}).get("data") or {}
    own = data.get(names.ERROR, "") if data.get(names.STATUS) == names.FAILED else ""
    if not own and (ended is None or ended.succeeded):
        return None
    reason = "" if own or ended is None or ended.reason != "DeadlineExceeded" else "BudgetExceeded"
    pods = list(pods)
    # A Job reports its number of attempts, but not what ended its pod.
    cause = "" if reason else next(filter(None, map(_ended_by, pods)), "")
    message = quoted(own, TAIL) or f"the profiling Job failed: {cause or (ended.message if ended else '')}"
    last = next(filter(None, map(_last_log_lines, pods)), "")
    log = (
        f"; last lines of its log: {last}; see `kubectl logs` of the profiling pod"
        if last and last not in message
        else ""
    )
    return ProfilingFailed(reason, f"{message}{log}")


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
    # Each attempt has a different pod name, so the name is omitted.
    return f"the API server refuses the profiling pod: {quoted(note.partition(_FORBIDDEN)[2] or note, TAIL)}"


def _ended_by(pod: KubeObject) -> str:
    """The external cause of a pod's end: its node, a scheduler, or its memory limit."""
    status = pod.get("status") or {}
    disrupted = objects.condition(pod, "DisruptionTarget") or {}
    by = status if status.get("reason") else disrupted if disrupted.get("status") == "True" else {}
    if by:
        return f"its pod was terminated: {by['reason']}: {quoted(by.get('message') or '', TAIL)}".rstrip(": ")
    for entry in container_statuses(pod):
        if ((entry.get("state") or {}).get("terminated") or {}).get("reason") == "OOMKilled":
            return f"container {entry['name']} ran out of memory (OOMKilled): raise its limit with spec.overrides.profilingJob"
    return ""


def _last_log_lines(pod: KubeObject) -> str:
    for entry in (pod.get("status") or {}).get("containerStatuses", ()):
        ended = (entry.get("state") or {}).get("terminated") or {}
        if entry["name"] == names.PROFILER and ended:
            return (
                last_of(ended.get("message") or "", TAIL)
                or f"exit code {ended.get('exitCode')}, {ended.get('reason', '')}"
            )
    return ""
