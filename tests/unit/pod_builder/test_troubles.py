"""Problems of pods as tables: the texts of kubelet and scheduler on the left, the platform's on the right."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dynamo_pod_builder.status.pods import Rank, Trouble, recheck_after, summary, trouble_of, troubles
from dynamo_pod_builder.status.start_events import explained

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def status(name: str = "main", *, ready: bool = False, restarts: int = 0, started: bool = True, **states: Any) -> Any:
    """A container's status: its state (`waiting`, `running`, `terminated`), and `last`, how it ended before."""
    last = states.pop("last", None)
    results = {"name": name, "ready": ready, "restartCount": restarts, "started": started, "state": states}
    return {**results, "lastState": {"terminated": last}} if last else results


def pod(name: str = "a", *, containers=(), init=(), conditions=(), spec=None, **fields: Any) -> dict[str, Any]:
    written = {"name": "main", "image": "nvcr.io/x/y:1", "resources": {"limits": {"memory": "16Gi"}}}
    return {
        "metadata": {"name": name, "namespace": "ns", **fields.pop("metadata", {})},
        "spec": {
            "containers": [{**written, **(spec or {})}],
            "initContainers": [{"name": "fetch", "image": "busybox"}],
        },
        "status": {
            "phase": "Pending",
            "containerStatuses": list(containers),
            "initContainerStatuses": list(init),
            "conditions": list(conditions),
            **fields,
        },
    }


def crashed(code: int = 1, reason: str = "Error", message: str = "") -> dict[str, Any]:
    return {"exitCode": code, "reason": reason, "message": message}


def waiting(reason: str, message: str = "", name: str = "main", **fields: Any) -> dict[str, Any]:
    """The status of a waiting container."""
    return status(name, waiting={"reason": reason, **({"message": message} if message else {})}, **fields)


def waits(reason: str, message: str = "", *conditions: Any, **fields: Any) -> dict[str, Any]:
    """A pod whose container waits."""
    return pod(containers=[waiting(reason, message, **fields)], conditions=conditions)


def runs(seconds: float, *conditions: Any, spec: Any = None, **fields: Any) -> dict[str, Any]:
    """A pod whose container has been running for that time."""
    return pod(containers=[status(running={"startedAt": ago(seconds)}, **fields)], conditions=conditions, spec=spec)


def unready(seconds: float) -> dict[str, Any]:
    return {"type": "Ready", "status": "False", "lastTransitionTime": ago(seconds)}


CRASHES = "CrashLoopBackOff"
STARTUP: dict[str, Any] = {"startupProbe": {}}
READINESS: dict[str, Any] = {"readinessProbe": {}}
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(240)}
NOT_SET_UP = {"type": "PodReadyToStartContainers", "status": "False"}
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: 0/2 nodes are available.",
}
NOT_CLAIMED = {**UNSCHEDULABLE, "message": "0/2 nodes: no new claims to deallocate, preemption: 0/2 nodes."}
NO_PYTHON = 'exec: "pyton": not found'
BACK_OFF = 'Back-off pulling image "nvcr.io/x/y:1": ErrImagePull: 401 Unauthorized'
NO_SECRET = 'secret "hf-token" not found'
NOT_PARSED = "couldn't parse image name"
CANNOT_PULL = "ImagePullBackOff: container main cannot pull nvcr.io/x/y:1: 401 Unauthorized"
OOM = "OOMKilled: container main was killed: it used more memory than its limit of 16Gi"
LOW = "The node was low on resource: memory."


@pytest.mark.parametrize(
    ("observed", "says"),
    [
        (waits("ErrImagePull", "401 Unauthorized"), CANNOT_PULL),
        (waits("ImagePullBackOff", BACK_OFF), CANNOT_PULL),
        (
            waits("InvalidImageName", NOT_PARSED),
            f"InvalidImageName: container main cannot pull nvcr.io/x/y:1: {NOT_PARSED}",
        ),
        (waits("CreateContainerConfigError", NO_SECRET), f"CreateContainerConfigError: container main: {NO_SECRET}"),
        (waits("CreateContainerError"), "CreateContainerError: container main: CreateContainerError"),
        (
            pod(init=[waiting(CRASHES, name="fetch", last=crashed(2, message="no such bucket"))]),
            "InitContainerFailed: init container fetch exited with code 2: no such bucket",
        ),
        (
            pod(init=[waiting("ImagePullBackOff", "not found", "fetch")]),
            "ImagePullBackOff: init container fetch cannot pull busybox: not found",
        ),
        (waits(CRASHES, last=crashed(137, "OOMKilled"), restarts=4), OOM),
        (
            waits(CRASHES, last=crashed(1, message="CUDA error\n  no device")),
            f"{CRASHES}: container main exited with code 1: CUDA error no device",
        ),
        (
            runs(5, last=crashed(139), restarts=3),
            f"{CRASHES}: container main exited with code 139, killed by signal 11",
        ),
        (waits(CRASHES, last=crashed(0, "Completed")), f"{CRASHES}: container main exited with code 0"),
        (runs(5, last=crashed(), restarts=1), "ContainerCrashed: container main exited with code 1"),
        (waits("RunContainerError", NO_PYTHON), f"{CRASHES}: container main does not start: {NO_PYTHON}"),
        (
            waits(CRASHES, last=crashed(128, "StartError", NO_PYTHON)),
            f"{CRASHES}: container main does not start: {NO_PYTHON}",
        ),
        (pod(conditions=[UNSCHEDULABLE]), "Unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu."),
        (pod(conditions=[NOT_CLAIMED]), "Unschedulable: 0/2 nodes: no new claims to deallocate"),
        (pod(phase="Failed", reason="Evicted", message=LOW), f"Evicted: {LOW}"),
        (pod(phase="Failed"), "PodFailed: its containers have ended"),
        (
            waits("ContainerCreating", "", SCHEDULED, NOT_SET_UP),
            "PodNotStarted: its volumes, network or devices are not ready 3 minutes after it was scheduled",
        ),
        (
            runs(700, started=False, spec=STARTUP),
            "StartupProbeFailing: container main runs, but its startup probe has not succeeded for more than 10 minutes",
        ),
        (
            runs(9000, unready(650), spec=READINESS),
            "ReadinessProbeFailing: container main runs, but its readiness probe has not succeeded for more than 10 minutes",
        ),
    ],
)
def test_a_problem_has_a_reason_and_a_message(observed, says) -> None:
    (only,) = troubles([observed], NOW)
    assert (only.pod, f"{only.reason}: {only.message}") == ("a", says)


def test_a_sidecar_that_does_not_become_ready_is_a_problem() -> None:
    running = {"startedAt": ago(9000)}
    sidecar = runs(9000, unready(650), ready=True)
    sidecar["status"]["initContainerStatuses"] = [status("runtime", running=running, started=True)]
    sidecar["spec"]["initContainers"].append({"name": "runtime", "restartPolicy": "Always", **READINESS})
    (only,) = troubles([sidecar], NOW)
    assert (only.reason, only.message.split(" runs")[0]) == ("ReadinessProbeFailing", "container runtime")


READY = {"type": "Ready", "status": "True"}
BROKEN = [waiting("ImagePullBackOff", "not found")]


@pytest.mark.parametrize(
    "observed",
    [
        pod(),
        waits("ContainerCreating"),
        runs(5, READY, ready=True, restarts=9),
        # One of two containers serves again and the pod is ready: the former problem no longer counts.
        runs(5, READY, last=crashed(), restarts=2),
        # A finalizer keeps it; without a node, none has to end it.
        pod(containers=BROKEN, metadata={"deletionTimestamp": ago(900)}),
        pod(phase="Succeeded", containers=[status(terminated=crashed(0, "Completed"))]),
        pod(init=[status("fetch", ready=True, terminated=crashed(0, "Completed"))]),
        pod(init=[status("fetch", running={"startedAt": ago(9000)})]),
        # An incomplete gang is held back by its own scheduler.
        pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
        runs(500, started=False, spec=STARTUP),
        # It ran long since its last end and has just become unready: the first minutes of its probe.
        runs(90000, unready(20), last=crashed(), restarts=5, spec=READINESS),
    ],
)
def test_normal_progress_and_past_problems_are_not_problems(observed) -> None:
    assert troubles([observed], NOW) == []


def test_the_message_does_not_change_with_each_attempt() -> None:
    lost = "dial tcp 10.0.0.5:{}->10.0.0.9:443: i/o timeout"
    first, later = lost.format(41234), f'Back-off pulling image "x": ErrImagePull: {lost.format(50001)}'
    assert trouble_of(waits("ErrImagePull", first), NOW) == trouble_of(waits("ImagePullBackOff", later), NOW)

    def crashing(restarts: int, time: str) -> Trouble | None:
        last = crashed(1, message=f"{time} ERROR no GPU available")
        message = f"back-off {restarts}m restarting failed container"
        return trouble_of(waits(CRASHES, message, last=last, restarts=restarts), NOW)

    assert crashing(3, "2026-01-02 03:04:05,123") == crashing(9, "2026-01-02 04:10:00,007")
    running = runs(1, last=crashed(1, message="04:10:00 ERROR no GPU available"), restarts=10)
    assert crashing(3, "03:04:05") == trouble_of(running, NOW)


def test_texts_of_others_are_bounded_and_keep_the_end_of_a_log() -> None:
    long = "x" * 5000 + " ValueError: the model does not fit"
    result = trouble_of(waits(CRASHES, last=crashed(1, message=long)))
    assert result is not None
    assert len(result.message) < 500
    assert result.message.endswith("ValueError: the model does not fit")


def test_the_most_severe_problem_of_a_pod_is_reported() -> None:
    aside = waiting("ImagePullBackOff", "not found", "aside")
    result = trouble_of(pod(containers=[aside, waiting(CRASHES, last=crashed())]))
    assert result is not None
    assert result.message.startswith("container aside cannot pull")


def trouble(name: str, message: str = "out of luck") -> Trouble:
    return Trouble(Rank.CRASH, "CrashLoopBackOff", name, message)


@pytest.mark.parametrize(
    ("observed", "says"),
    [
        ([], ""),
        ([trouble("a")], "pod a: out of luck"),
        ([trouble("a"), trouble("b")], "pods a, b: out of luck"),
        ([trouble(name) for name in "abcde"], "pods a, b, c and 2 more: out of luck"),
        ([trouble("a"), trouble("b", "no disk")], "pod a: out of luck; pod b: no disk"),
        (
            [*(trouble(name) for name in "abc"), trouble("d", "no disk"), trouble("e", "no net")],
            "pods a, b, c: out of luck; and 2 more pods",
        ),
        (
            [trouble("a"), trouble("b", "no disk"), trouble("c", "no net"), trouble("d", "no way")],
            "pod a: out of luck; pod b: no disk; pod c: no net; and 1 more pod",
        ),
    ],
)
def test_at_most_three_pods_are_named(observed, says) -> None:
    assert summary(observed) == says


def test_the_order_of_pods_does_not_matter() -> None:
    crash = waits(CRASHES, last=crashed())
    pull, place = pod("c", containers=BROKEN), pod("b", conditions=[UNSCHEDULABLE])
    assert [each.pod for each in troubles([crash, place, pull], NOW)] == ["c", "a", "b"]
    assert troubles([pull, place, crash], NOW) == troubles([crash, place, pull], NOW)


def test_a_slow_start_is_checked_again_when_it_becomes_a_problem() -> None:
    starting = runs(500, started=False, spec=STARTUP)
    mounting = pod("b", conditions=[SCHEDULED | {"lastTransitionTime": ago(60)}, NOT_SET_UP])
    assert recheck_after([starting], NOW) == 100
    assert recheck_after([starting, mounting], NOW) == 120 - 20
    assert recheck_after([mounting], NOW) == 120
    assert recheck_after([pod()], NOW) == 600
    assert recheck_after([pod(conditions=[READY])], NOW) is None
    assert recheck_after([], NOW) is None
    # The next reconcile reports it as a problem.
    assert troubles([starting], NOW + timedelta(seconds=100)) != []


GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
GATES = {"schedulingGates": [{"name": "example.com/a"}, {"name": "b"}]}
NOT_CONSIDERED = "no scheduler has considered it 3 minutes after it was created; its schedulerName is"


@pytest.mark.parametrize(
    ("conditions", "spec", "message"),
    [
        ([], {"schedulerName": "kai-scheduler"}, f"{NOT_CONSIDERED} kai-scheduler"),
        ([], {}, f"{NOT_CONSIDERED} default-scheduler"),
        ([GATED], GATES, "its scheduling gates remain 3 minutes after it was created: example.com/a, b"),
    ],
)
def test_a_pod_that_no_scheduler_considers_becomes_a_problem_after_a_while(
    conditions: Any, spec: Any, message: str
) -> None:
    waiting = pod(conditions=conditions, metadata={"creationTimestamp": ago(60)})
    waiting["spec"] |= spec
    assert trouble_of(waiting, NOW) is None
    assert recheck_after([waiting], NOW) == 120
    assert trouble_of(waiting, NOW + timedelta(seconds=120)) == Trouble(Rank.NOT_STARTED, "PodNotStarted", "a", message)
    # The scheduler's own message has precedence, and a pod with a node is no longer the scheduler's concern.
    waiting["spec"]["nodeName"] = "node"
    assert trouble_of(waiting, NOW + timedelta(seconds=120)) is None


def test_an_evicted_pod_is_ignored_when_another_has_replaced_it() -> None:
    evicted = pod("a", phase="Failed", reason="Evicted", metadata={"creationTimestamp": ago(100)})
    successor = pod("b", metadata={"creationTimestamp": ago(50)})
    elder = pod("c", conditions=[SCHEDULED], metadata={"creationTimestamp": ago(200)})
    assert [each.reason for each in troubles([evicted], NOW)] == ["Evicted"]
    assert [each.reason for each in troubles([evicted, elder], NOW)] == ["Evicted"]
    assert troubles([evicted, successor], NOW) == []


NO_START = Trouble(Rank.NOT_STARTED, "PodNotStarted", "a", "it waits")
SETUP = 'MountVolume.SetUp failed for volume "v": configmap "c" not found'
NO_TEMPLATE = 'resourceclaimtemplate "eight" not found'


def event(reason: str, note: str, type_: str = "Warning") -> dict[str, Any]:
    return {"reason": reason, "note": note, "type": type_}


MOUNT, IN_ALL = event("FailedMount", SETUP), event("FailedMount", "Unable to attach or mount volumes: timed out")
ATTACH, SANDBOX = event("FailedAttachVolume", "attached elsewhere"), event("FailedCreatePodSandBox", "no IP left")


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([], "PodNotStarted: it waits"),
        ([event("FailedResourceClaimCreation", NO_TEMPLATE)], f"PodNotStarted: it waits: {NO_TEMPLATE}"),
        ([MOUNT], f"VolumeNotMounted: it waits: {SETUP}"),
        # The summary and the cause alternate.
        ([IN_ALL, MOUNT], f"VolumeNotMounted: it waits: {SETUP}"),
        ([IN_ALL, event("FailedMapVolume", "no device")], "VolumeNotMounted: it waits: no device"),
        ([SANDBOX, ATTACH], "VolumeNotMounted: it waits: attached elsewhere"),
        ([SANDBOX], "PodNotStarted: it waits: no IP left"),
        ([event("Unhealthy", "probe failed"), event("Scheduled", "ok", "Normal")], "PodNotStarted: it waits"),
    ],
)
def test_events_explain_what_a_pod_that_does_not_start_waits_for(events, says) -> None:
    result = explained(NO_START, events)
    assert (result.pod, f"{result.reason}: {result.message}") == ("a", says)
    assert explained(NO_START, list(reversed(events))) == result


#: A pod as the node controller leaves it: the kubelet's statuses of its containers stay, and there is no reason.
CUT_OFF = [
    {"type": "Ready", "status": "False", "lastTransitionTime": ago(30)},
    {"type": "ContainersReady", "status": "True", "lastTransitionTime": ago(900)},
]


def on_node(name: str, *, since: float = 0, conditions: Any = (), ended_by: float | None = None) -> dict[str, Any]:
    deletion = {} if ended_by is None else {"deletionTimestamp": ago(ended_by)}
    metadata = {"creationTimestamp": ago(since), **deletion}
    cut_off = pod(name, metadata=metadata, conditions=conditions, phase="Running", containers=[status(running={})])
    return {**cut_off, "spec": {**cut_off["spec"], "nodeName": "gpu-7"}}


def test_a_pod_on_a_lost_node_names_the_node() -> None:
    lost = on_node("old", since=900, conditions=CUT_OFF)
    lost["status"]["containerStatuses"][0]["ready"] = True
    (trouble,) = troubles([lost], NOW)
    assert (trouble.reason, trouble.rank) == ("NodeLost", Rank.ENDED)
    assert trouble.message.startswith("its node gpu-7 no longer reports")
    gated = [{**CUT_OFF[0], "reason": "ReadinessGatesNotReady"}, CUT_OFF[1]]
    assert troubles([on_node("gated", conditions=gated)], NOW) == []


def test_a_pod_that_its_lost_node_does_not_end_names_the_node_until_it_is_replaced() -> None:
    """Kubernetes deletes pods of a lost node after five minutes, and keeps them until the node confirms it."""
    ending, stuck = on_node("a", since=900, ended_by=10), on_node("a", since=900, ended_by=90)
    assert troubles([ending], NOW) == []
    assert recheck_after([ending], NOW) == 50
    assert [(each.reason, "gpu-7" in each.message) for each in troubles([stuck], NOW)] == [("NodeLost", True)]
    kept = {**stuck, "status": {**stuck["status"], "phase": "Failed"}}
    assert troubles([kept], NOW) == [], "its node has ended it, and a finalizer keeps it"
    assert trouble_of(stuck) is None, "it depends on the time"
    assert recheck_after([stuck], NOW) is None
    assert troubles([stuck, on_node("b", since=20)], NOW) == []
    (lost,) = troubles([on_node("a", since=900, conditions=CUT_OFF, ended_by=-20)], NOW)
    assert lost.reason == "NodeLost"
