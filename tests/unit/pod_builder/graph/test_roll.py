"""Step `roll`: the component deployments that a rolling update scales, including old generations from before hashes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from dynamo_pod_builder.reconcilers.graph.carry_out import CarryOutResult
from dynamo_pod_builder.reconcilers.graph.plan import Plan, Rollout
from dynamo_pod_builder.reconcilers.graph.report import conclude
from dynamo_pod_builder.reconcilers.graph.serving import RECHECK, UNRESPONSIVE_AFTER
from dynamo_pod_builder.reconcilers.graph.steps.rollout import roll
from dynamo_pod_builder.status.graph import graph_status
from dynamo_pod_builder.status.pods import END_WITHIN
from dynamo_shared.api.conditions import timestamp
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels

from .building import NOW as MOMENT
from .building import deployment, desiring, observed, stored, stored_graph
from .workers import component

NOW, BEFORE = "2026-01-02T03:04:05Z", "2026-01-01T00:00:00Z"
BEFORE_NOW = "2026-01-02T03:03:05Z"
RUNNING = {"phase": "InProgress", "startTime": BEFORE}
OVER = {"phase": "Completed", "startTime": BEFORE, "endTime": BEFORE, "updatedComponents": ["Worker"]}


NEW, OLD, FRONT = component("g-new", "new"), component("g-old", "old"), component("g-front", None, component="Front")


def rolled(
    desired: list[KubeObject], there: dict[str, tuple[KubeObject, int]], previous: dict[str, Any] | None = None
) -> Plan:
    """The plan of `roll`. `there` are the existing component deployments, with their numbers of serving pods."""
    graph = stored_graph(status={"rollingUpdate": previous} if previous else {})
    workloads = {name: deployment(name, dcd["spec"]["replicas"], ready) for name, (dcd, ready) in there.items()}
    children = [stored(dcd) for dcd, _ in there.values()]
    return roll(desiring(*desired), observed(*children, of=graph, workloads=workloads))


def moves(plan: Plan) -> tuple[dict[str, int], dict[str, int]]:
    """Replicas of the desired component deployments, and of the old ones."""
    return (
        {each["metadata"]["name"]: each["spec"]["replicas"] for each in plan.desired},
        {each["metadata"]["name"]: replicas for each, replicas in plan.rollout.drain},
    )


TWO = component("g-new", "new", 2)
TWO_OLD = component("g-old", "old", 2)
PREFILL, DECODE = component("p-new", "new", component="P"), component("d-new", "new", component="D")
OLD_PREFILL, OLD_DECODE = component("p-old", "old", component="P"), component("d-old", "old", component="D")
RECREATED = component("g-new", "new", 2, strategy="Recreate")


GONE = component("g-gone", None, component="Gone")
PAIR = {"p-old": (OLD_PREFILL, 1), "d-old": (OLD_DECODE, 1)}
#: What is desired and what exists; then replicas of the desired and of the old component deployments.
REPLICAS = {
    "nothing there": ([NEW], {}, {"g-new": 1}, {}),
    "only the desired one": ([NEW], {"g-new": (NEW, 1)}, {"g-new": 1}, {}),
    "one more before one less": ([NEW], {"g-old": (OLD, 1)}, {"g-new": 1}, {}),
    "the new one serves": ([NEW], {"g-new": (NEW, 1), "g-old": (OLD, 1)}, {"g-new": 1}, {"g-old": 0}),
    "the new one does not serve yet": ([NEW], {"g-new": (NEW, 0), "g-old": (OLD, 1)}, {"g-new": 1}, {}),
    "an old one that does not serve waits for the new one, too": ([NEW], {"g-old": (OLD, 0)}, {"g-new": 1}, {}),
    "by one": ([TWO], {"g-new": (component("g-new", "new", 1), 1), "g-old": (TWO_OLD, 2)}, {"g-new": 1}, {"g-old": 1}),
    "a prefill worker serves nothing without a decode worker": (
        [PREFILL, DECODE],
        {"p-new": (PREFILL, 1), "d-new": (DECODE, 0), **PAIR},
        {"p-new": 1, "d-new": 1},
        {},
    ),
    "both serve": (
        [PREFILL, DECODE],
        {"p-new": (PREFILL, 1), "d-new": (DECODE, 1), **PAIR},
        {"p-new": 1, "d-new": 1},
        {"p-old": 0, "d-old": 0},
    ),
    "Recreate: the old ones first": ([RECREATED], {"g-old": (TWO_OLD, 2)}, {"g-new": 0}, {"g-old": 0}),
    "Recreate: then the new ones": ([RECREATED], {"g-old": (component("g-old", "old", 0), 0)}, {"g-new": 2}, {}),
    "other": ([FRONT, NEW], {"g-gone": (GONE, 1)}, {"g-front": 1, "g-new": 1}, {}),
}


@pytest.mark.parametrize(("desired", "there", "replicas", "drain"), REPLICAS.values(), ids=REPLICAS)
def test_replicas_of_each_generation(desired, there, replicas, drain):
    assert moves(rolled(desired, there)) == (replicas, drain)


def test_an_update_reports_the_pods_that_it_waits_for():
    """They are ready but have not registered, and the pods that they replace have."""

    def pods(*names: str) -> list[KubeObject]:
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": BEFORE_NOW}]
        of_pod = {"spec": {"containers": [{"name": "main"}]}, "status": {"conditions": conditions}}
        enabled = {labels.DISCOVERY_ENABLED: "true"}
        return [{"metadata": {"name": name, "uid": name, "labels": enabled}, **of_pod} for name in names]

    four, old = component("g-new", "new", 4), component("g-old", "old", 4)
    world = observed(
        stored(four),
        stored(old),
        of=stored_graph(status={"rollingUpdate": RUNNING}),
        workloads={"g-new": deployment("g-new", 4), "g-old": deployment("g-old", 4)},
        pods={"g-new": pods("a", "b", "c", "d"), "g-old": pods("old")},
        registered={"old": MOMENT},
    )
    plan = roll(desiring(four), world)
    assert moves(plan) == ({"g-new": 4}, {"g-old": 3}), "what the margins allow, and no more"
    assert plan.rollout.again == RECHECK
    words = "Worker: a, b, c and 1 more ready, but not registered with Dynamo: no DynamoWorkerMetadata of that name"
    assert plan.rollout.waits == (words,)
    status = graph_status(world.graph, conclude(plan, CarryOutResult(world)), MOMENT)
    assert status["conditions"][0]["message"] == f"new worker pods are replacing the old ones; {words}"


BROKEN_PREFILL, BROKEN_DECODE = component("p-bad", "bad", component="P"), component("d-bad", "bad", component="D")


def test_no_component_of_an_update_that_never_served_outlives_the_serving_generation():
    """Its decode worker fails, its prefill worker is ready. Workers discover only those of their own generation."""
    there = {
        "p-old": (OLD_PREFILL, 1),
        "d-old": (OLD_DECODE, 1),
        "p-bad": (BROKEN_PREFILL, 1),
        "d-bad": (BROKEN_DECODE, 0),
    }
    assert moves(rolled([PREFILL, DECODE], there, RUNNING)) == ({"p-new": 0, "d-new": 0}, {"p-bad": 0, "d-bad": 0})


def test_one_failed_probe_of_an_old_worker_does_not_remove_its_counterpart():
    there = {"p-new": (PREFILL, 1), "d-new": (DECODE, 0), "p-old": (OLD_PREFILL, 1), "d-old": (OLD_DECODE, 0)}
    assert moves(rolled([PREFILL, DECODE], there, RUNNING)) == ({"p-new": 1, "d-new": 1}, {})


@pytest.mark.parametrize("what", ["the component deployment", "its workload"])
def test_new_workers_that_a_user_deletes_stop_counting_as_serving(what):
    """With `--cascade=foreground` they stay, and are ready, until their pods are gone."""
    new, old, workload = stored(NEW), stored(OLD), deployment("g-new")
    (new if what == "the component deployment" else workload)["metadata"]["deletionTimestamp"] = BEFORE
    workloads = {"g-new": workload, "g-old": deployment("g-old")}
    plan = roll(
        desiring(NEW), observed(new, old, of=stored_graph(status={"rollingUpdate": RUNNING}), workloads=workloads)
    )
    assert moves(plan) == ({"g-new": 1}, {})
    assert list(plan.rollout.kept) == ["uid-of-g-old"]


@pytest.mark.parametrize("failed_for", [5, 3600])
def test_a_correction_gets_the_node_of_a_worker_that_never_served(failed_for):
    """That worker has the only node, and the margins of one replica remove no old pod before a new one serves."""
    gone = component("w-bad", "bad", component="Renamed")

    def pod(type_: str, ago: float) -> KubeObject:
        condition = {"type": type_, "status": "False", "lastTransitionTime": timestamp(MOMENT - timedelta(seconds=ago))}
        return {"metadata": {"name": "p", "uid": type_}, "status": {"conditions": [condition]}}

    old = component("g-bad", "bad")
    world = observed(
        *(stored(each) for each in (NEW, old, gone)),
        workloads={name: deployment(name, ready=int(name == "w-bad")) for name in ("g-new", "g-bad", "w-bad")},
        pods={"g-new": [pod("PodScheduled", 30)], "g-bad": [pod("Ready", failed_for)]},
    )
    plan = roll(desiring(NEW), world)
    assert moves(plan) == ({"g-new": 1}, {} if failed_for == 5 else {"g-bad": 0})
    assert ("uid-of-w-bad" in plan.rollout.kept) is (failed_for == 5)


def test_of_two_partly_serving_old_generations_the_one_that_serves_more_stays():
    """A correction starts while the former update is half done. Neither may lose its only prefill worker."""
    there = {
        "p-old": (OLD_PREFILL, 1),
        "d-old": (component("d-old", "old", 3, component="D"), 3),
        "p-bad": (BROKEN_PREFILL, 1),
        "d-bad": (component("d-bad", "bad", 2, component="D"), 2),
    }
    desired = [PREFILL, component("d-new", "new", 4, component="D")]
    assert moves(rolled(desired, there, RUNNING))[1] == {"p-bad": 0, "d-bad": 0}


@pytest.mark.parametrize("failed_for", [5, 3600])
def test_of_two_old_generations_the_one_that_served_a_moment_ago_stays(failed_for):
    """Its only decode worker fails a probe just when an update that never served is corrected."""

    def failing(ago: float) -> KubeObject:
        since = timestamp(MOMENT - timedelta(seconds=ago))
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": since}
        return {"metadata": {"name": "p", "uid": f"p-{ago}"}, "status": {"conditions": [condition]}}

    world = observed(
        *(stored(each) for each in (OLD_PREFILL, OLD_DECODE)),
        *(stored(each, created="2026-01-01T00:00:05Z") for each in (BROKEN_PREFILL, BROKEN_DECODE)),
        of=stored_graph(status={"rollingUpdate": RUNNING}),
        workloads={
            "p-old": deployment("p-old"),
            "d-old": deployment("d-old", 1, 0),
            "p-bad": deployment("p-bad"),
            "d-bad": deployment("d-bad", 1, 0),
        },
        pods={"d-old": [failing(failed_for)], "d-bad": [failing(3600)]},
    )
    plan = roll(desiring(PREFILL, DECODE), world)
    assert moves(plan)[1] == ({} if failed_for == 5 else {"p-old": 0, "d-old": 0})
    assert plan.rollout.again == (UNRESPONSIVE_AFTER.seconds - 5 if failed_for == 5 else None)


@pytest.mark.parametrize(
    ("waited", "quota", "words"),
    [
        (599, "", ()),
        (600, "", ("Worker: no node has had room for new pods for 10 minutes, and the roll-out may not",)),
        (
            0,
            "exceeded quota: gpus",
            ("Worker: its namespace's quota leaves no room for new pods, and the roll-out may not",),
        ),
    ],
)
def test_an_update_without_margin_says_what_to_do(waited, quota, words):
    """Fewer than four replicas have no margin: in a full cluster the update waits until a user acts."""
    since = timestamp(MOMENT - timedelta(seconds=waited))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": since}
    pod = {"metadata": {"name": "new-1", "uid": "new-1"}, "status": {"conditions": [condition]}}
    new, old = deployment("g-new", 1, 0), deployment("g-old", 2)
    if quota:
        refused = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": quota}
        new["status"]["conditions"].append(refused)
    world = observed(
        *(stored(each) for each in (component("g-new", "new", 1), TWO_OLD)),
        workloads={"g-new": new, "g-old": old},
        pods={} if quota else {"g-new": [pod]},
    )
    rollout = roll(desiring(TWO), world).rollout
    assert [each[: len(start)] for each, start in zip(rollout.waits, words, strict=True)] == list(words)
    assert all(each.endswith("Recreate in the annotations of its pod template") for each in rollout.waits)
    assert rollout.again == (1 if waited == 599 else None)


@pytest.mark.parametrize(
    ("desired", "there", "waited", "kept"),
    [
        pytest.param([PREFILL, DECODE], {}, 0, ["uid-of-w-old"], id="nothing new serves"),
        pytest.param(
            [PREFILL, DECODE],
            {"p-new": (PREFILL, 1), "d-new": (DECODE, 0)},
            0,
            ["uid-of-w-old"],
            id="one of the new ones does not serve yet",
        ),
        pytest.param(
            [PREFILL, DECODE], {"p-new": (PREFILL, 1), "d-new": (DECODE, 0)}, 600, [], id="no node had room for long"
        ),
        pytest.param([RECREATED], {}, 0, [], id="Recreate: never side by side"),
        pytest.param([PREFILL, DECODE], {"p-new": (PREFILL, 1), "d-new": (DECODE, 1)}, 0, [], id="all new ones serve"),
    ],
)
def test_a_removed_worker_serves_until_the_new_ones_do(desired, there, waited, kept):
    """It was renamed or split: its own component has no new generation."""
    gone = component("w-old", "old", component="Other")
    since = timestamp(MOMENT - timedelta(seconds=waited))
    pod = {
        "metadata": {"name": "waits"},
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "lastTransitionTime": since}]},
    }
    present = {**there, "w-old": (gone, 1)}
    plan = roll(
        desiring(FRONT, *desired),
        observed(
            *(stored(dcd) for dcd, _ in present.values()),
            of=stored_graph(status={"rollingUpdate": RUNNING}),
            workloads={name: deployment(name, ready=ready) for name, (_, ready) in present.items()},
            pods={"d-new": [pod]} if waited else {},
        ),
    )
    assert list(plan.rollout.kept) == kept
    assert plan.rollout.completed == (bool(there) and all(ready for _, ready in there.values()))
    assert sorted(plan.rollout.components) == sorted(each["metadata"]["labels"][labels.COMPONENT] for each in desired)


@pytest.mark.parametrize(("ready_for", "kept"), [(1, ["uid-of-w-old"]), (60, [])])
def test_a_removed_worker_serves_until_frontends_have_admitted_the_new_ones(ready_for, kept):
    """No new worker replaces it directly, so the update waits for all of them."""
    gone = component("w-old", "old", component="Other")
    since = timestamp(MOMENT - timedelta(seconds=ready_for))
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
    world = observed(
        *(stored(each) for each in (NEW, gone)),
        of=stored_graph(status={"rollingUpdate": RUNNING}),
        workloads={"g-new": deployment("g-new"), "w-old": deployment("w-old")},
        pods={"g-new": [{"metadata": {"name": "new-1", "uid": "new-1"}, "status": {"conditions": conditions}}]},
    )
    rollout = roll(desiring(NEW), world).rollout
    assert (rollout.completed, list(rollout.kept)) == (not kept, kept)
    assert rollout.again == (4 if kept else None)


@pytest.mark.parametrize(
    ("phases", "replicas"),
    [
        pytest.param(["Running"], 0, id="a pod that is being deleted has its GPUs still"),
        pytest.param(["Failed", "Succeeded"], 2, id="pods that have ended have none"),
    ],
)
def test_recreate_waits_for_the_last_pod_to_end(phases, replicas):
    """A Deployment does not count pods that are being deleted."""
    drained = stored(component("g-old", "old", 0))
    pods = {"g-old": [{"metadata": {"name": phase}, "status": {"phase": phase}} for phase in phases]}
    world = observed(drained, of=stored_graph(), workloads={"g-old": deployment("g-old", 0)}, pods=pods)
    assert moves(roll(desiring(RECREATED), world)) == ({"g-new": replicas}, {})


@pytest.mark.parametrize("overdue", [-10, 3600])
def test_recreate_names_the_pod_that_a_lost_node_does_not_end(overdue):
    """Nothing else reports it: the pod is of no desired component deployment, and no longer counted."""
    ends = timestamp(MOMENT - timedelta(seconds=END_WITHIN + overdue))
    pod = {"metadata": {"name": "old-1", "deletionTimestamp": ends}, "spec": {"nodeName": "n1"}, "status": {}}
    drained, workloads = stored(component("g-old", "old", 0)), {"g-old": deployment("g-old", 0)}
    world = observed(drained, of=stored_graph(), workloads=workloads, pods={"g-old": [pod]})
    rollout = roll(desiring(RECREATED), world).rollout
    named = (
        "Worker: pod old-1: its node n1 has not terminated it in time; if the machine no longer exists, delete the Node"
    )
    assert rollout.waits == ((f"{named}, and Kubernetes replaces its pods",) if overdue > 0 else ())
    assert rollout.again == (None if overdue > 0 else 10)


WORKER = Rollout(components=["Worker"], status=RUNNING)
BEGUN = replace(WORKER, drain=[], kept=["uid-of-g-old"], status={"phase": "InProgress", "startTime": NOW}, started=True)
ENDED = replace(WORKER, status={**OVER, "endTime": NOW}, completed=True)
#: What exists, the former status of the update, and the new one.
PROGRESS = {
    "nothing to do": ({}, None, Rollout()),
    "what ended stays reported": ({"g-new": (NEW, 1)}, OVER, Rollout(status=OVER)),
    "begins": ({"g-old": (OLD, 1)}, None, BEGUN),
    "begins again": ({"g-old": (OLD, 1)}, OVER, BEGUN),
    "goes on where no beginning is reported": (
        {"g-new": (NEW, 0), "g-old": (OLD, 1)},
        {"phase": "InProgress"},
        replace(WORKER, drain=[], kept=["uid-of-g-old"], status={"phase": "InProgress", "startTime": NOW}),
    ),
    "ends where no beginning is reported": (
        {"g-new": (NEW, 1)},
        {"phase": "InProgress"},
        replace(ENDED, status={**OVER, "startTime": NOW, "endTime": NOW}),
    ),
    "goes on": ({"g-new": (NEW, 0), "g-old": (OLD, 1)}, RUNNING, replace(WORKER, drain=[], kept=["uid-of-g-old"])),
    "ends: what is left may go": ({"g-new": (NEW, 1), "g-old": (component("g-old", "old", 0), 0)}, RUNNING, ENDED),
    "the reference had only announced it": ({"g-new": (NEW, 1)}, {"phase": "Pending", "startTime": BEFORE}, ENDED),
    "the old ones were deleted meanwhile": ({"g-new": (NEW, 1)}, RUNNING, ENDED),
    "the old were deleted before the new serve": ({"g-new": (NEW, 0)}, RUNNING, replace(WORKER, drain=[], kept=[])),
}


@pytest.mark.parametrize(("there", "previous", "rollout"), PROGRESS.values(), ids=PROGRESS)
def test_the_progress_of_a_rollout(there, previous, rollout):
    plan = rolled([FRONT, NEW], {**there, "g-front": (FRONT, 1)}, previous)
    assert plan.rollout == rollout


def test_an_update_without_remaining_workers_is_over_without_an_event():
    """The graph has no workers any more, or Grove runs them."""
    plan = rolled([FRONT], {"g-front": (FRONT, 1), "g-old": (OLD, 1)}, RUNNING)
    assert plan.rollout == Rollout(components=[], status={**OVER, "endTime": NOW, "updatedComponents": []})


@pytest.mark.parametrize("left", [component("g-old", "old", 0), component("g-old", "old", 1, component="Gone")])
def test_leftovers_of_an_update_neither_start_nor_end_another_one(left):
    """The leftover waits for its finalizers; a pod of the new generation becomes unready meanwhile."""
    left = stored(left)
    left["metadata"]["deletionTimestamp"] = BEFORE
    for ready in (1, 0):
        plan = rolled([NEW], {"g-new": (NEW, ready), "g-old": (left, 0)}, OVER)
        assert plan.rollout == Rollout(status=OVER)
    plan = rolled([NEW], {"g-new": (NEW, 1), "g-old": (left, 0)}, RUNNING)
    assert plan.rollout.completed


@pytest.mark.parametrize(
    ("old", "kept"),
    [
        (OLD, ["uid-of-g-old"]),
        (component("g-old", None), ["uid-of-g-old"]),
        (component("g-old", None, component="Gone"), []),
    ],
    ids=["of another hash", "from before hashes", "no worker of this graph"],
)
def test_an_old_generation_serves_until_the_new_one_does(old, kept):
    plan = rolled([FRONT, NEW], {"g-front": (FRONT, 1), "g-old": (old, 1)})
    assert list(plan.rollout.kept) == kept
    assert plan.rollout.started == bool(kept)
