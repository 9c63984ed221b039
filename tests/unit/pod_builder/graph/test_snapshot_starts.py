"""Pods that start from PodSnapshots: which wait, which serve meanwhile, and what the graph reports."""

from dataclasses import replace

import pytest
from dynamo_pod_builder.reconcilers.scaling import replicas_of
from dynamo_pod_builder.render import CheckpointDefaults
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, POD_CLIQUE_SETS, POD_SNAPSHOTS, SNAPSHOT_JOBS

from tests.building.objects import with_metadata
from tests.unit.render.building import component

from .building import deployment
from .snapshot_world import VLLM, WAIT, World, owner_of, snapshot, worker

STARTUP = "nvidia.com/dynamo-checkpoint-startup-policy"


def test_a_completed_capture_replaces_no_pod() -> None:
    world = World(worker())
    before = world.worker
    world.job_says("Captured")
    assert "(Said: as a test says)" in world.condition[2]
    world.capture()
    assert world.worker == before
    assert world.condition == ("True", "CheckpointsReady", "One: new pods start from PodSnapshot snap-0")
    assert world.graph["status"]["checkpoints"] == {"One": {"checkpointName": "snap-0", "ready": True}}
    assert any("Normal CheckpointsReady" in line for line in world.announced.lines)
    writes = list(world.kube.writes)
    world.reconcile()
    assert world.kube.writes == writes, "there is nothing left to do"


@pytest.mark.parametrize("adapted", [False, True])
def test_pods_that_wait_for_their_checkpoint_do_not_start_before_it_is_ready(*, adapted: bool) -> None:
    waiting = {**worker(**WAIT), **({"scalingAdapter": {}} if adapted else {})}
    world = World(waiting)
    policies = (objects.annotations(each.worker["spec"]["podTemplate"])[STARTUP] for each in (World(worker()), world))
    assert list(policies) == ["Immediate", "WaitForCheckpoint"]
    assert world.worker["spec"]["replicas"] == 0
    assert world.ready == ("pending", "waiting_for_checkpoint", "Waiting for checkpoints: One")
    world.reconcile()
    assert world.worker["spec"]["replicas"] == 0
    assert replicas_of(world.cache, world.worker) is None, "the short way from an adapter waits, too"
    world.capture()
    assert world.worker["spec"]["replicas"] == 2
    assert world.ready[1] != "waiting_for_checkpoint"
    assert replicas_of(world.cache, world.worker) is None, "it may be lost again"


def test_pods_on_grove_do_not_start_before_their_checkpoint_is_ready() -> None:
    world = World(component("Front", "frontend"), worker(**WAIT), grove=True)
    (clique_set,) = world.kube.stored(POD_CLIQUE_SETS)
    clique = next(each for each in clique_set["spec"]["template"]["cliques"] if each["name"] == "one")
    assert clique["annotations"]["nvidia.com/dynamo-restore-snapshot-job-uid"] == objects.uid(world.jobs[0])
    assert world.ready[1] == "waiting_for_checkpoint"


def test_the_old_generation_serves_until_the_new_one_has_its_checkpoint() -> None:
    world = World(worker(**WAIT))
    world.capture()
    old = objects.name(world.worker)
    world.kube.put(
        {**deployment(old, 2), "metadata": {**deployment(old)["metadata"], "ownerReferences": [owner_of(world.worker)]}}
    )
    world.change(worker({**VLLM, "image": "img:2"}, **WAIT))
    by_name = {objects.name(each): each["spec"]["replicas"] for each in world.kube.stored(DYNAMO_COMPONENT_DEPLOYMENTS)}
    assert by_name.pop(old) == 2
    assert list(by_name.values()) == [0]
    assert len(world.jobs) == 2, "that of before serves a way back"
    world.capture()
    by_name = {objects.name(each): each["spec"]["replicas"] for each in world.kube.stored(DYNAMO_COMPONENT_DEPLOYMENTS)}
    assert by_name.pop(old) == 2
    assert list(by_name.values()) == [1], "the rolling update goes on"


def test_the_old_generation_follows_the_autoscaler_while_the_new_one_waits() -> None:
    """It kept the number from before the change until the checkpoint was ready, or for good if it never was."""
    world = World(worker(**WAIT))
    world.capture()
    old = objects.name(world.worker)
    changed = {**VLLM, "image": "img:2"}

    def old_and_new(replicas: int) -> list[int]:
        world.play_workloads()
        world.change(worker(changed, replicas=replicas, **WAIT))
        there = world.kube.stored(DYNAMO_COMPONENT_DEPLOYMENTS)
        return sorted((objects.replicas(each) for each in there), key=lambda count: -count)

    assert [old_and_new(replicas) for replicas in (2, 5, 3, 0, 4)] == [[2, 0], [5, 0], [3, 0], [0, 0], [4, 0]]
    assert world.kube.stored(DYNAMO_COMPONENT_DEPLOYMENTS)[0]["metadata"]["name"] == old
    assert world.ready[1] == "waiting_for_checkpoint"


@pytest.mark.parametrize("grove", [False, True])
def test_serving_pods_are_kept_whatever_happens_to_their_checkpoint(*, grove: bool) -> None:
    """They were scaled to 0 when their checkpoint was lost, or when new pods had to wait for the first time."""
    kept = worker(**WAIT)
    world = World(component("Front", "frontend"), kept, grove=grove)
    world.capture()
    world.play_grove()
    before = world.pods_of_worker
    assert before[0] == 2
    job, taken = world.jobs[0], world.kube.stored(POD_SNAPSHOTS)[0]
    world.remove(POD_SNAPSHOTS, taken)
    world.reconcile()
    assert world.condition[1] == "CheckpointUnusable"
    assert world.ready[0] == ("successful" if grove else "failed"), "Deployments have not made them yet"
    world.play_workloads()
    assert world.ready[0] == "successful", "all of them serve"
    assert world.condition[0] == "False"
    assert world.pods_of_worker == before
    world.change(component("Front", "frontend"), {**kept, "replicas": 3})
    assert world.pods_of_worker == before, "no other pod starts"
    assert world.ready[0] == "failed", "new pods cannot start"
    world.remove(SNAPSHOT_JOBS, job)
    world.reconcile()
    assert world.jobs[0]["metadata"]["uid"] == world.jobs[-1]["metadata"]["uid"]
    assert world.pods_of_worker == before
    world.config = replace(world.config, checkpoints=CheckpointDefaults(enabled=True))
    world.reconcile()
    assert world.condition[1] == "SnapshotNotInstalled"
    assert world.pods_of_worker == before, "Snapshot's operator is gone, and they serve"
    world.change(component("Front", "frontend"), {**kept, "replicas": 1})
    assert world.pods_of_worker == (1, before[1])


def test_pods_are_not_replaced_if_the_snapshot_operator_is_removed() -> None:
    world = World(worker())
    world.capture()
    before = world.worker
    world.config = replace(world.config, checkpoints=CheckpointDefaults(enabled=True))
    world.reconcile()
    assert world.condition[1] == "SnapshotNotInstalled"
    assert world.worker == before


def test_workers_of_a_generation_wait_together_for_the_checkpoint_of_one() -> None:
    """Prefill workers took over before they had a decode worker, and old decode workers had no counterpart left."""
    world = World(worker(name="Decode", **WAIT), component("Prefill", "prefill", main=VLLM, replicas=2))
    world.capture()
    old = {objects.name(each): each for each in world.kube.stored(DYNAMO_COMPONENT_DEPLOYMENTS)}
    changed = {**VLLM, "image": "img:2"}
    again = [worker(changed, "Decode", **WAIT), component("Prefill", "prefill", main=changed, replicas=2)]

    def play(*names: str) -> None:
        for each in world.kube.stored(DYNAMO_COMPONENT_DEPLOYMENTS):
            if objects.name(each) in names or each["spec"]["replicas"]:
                count = each["spec"]["replicas"]
                run = deployment(objects.name(each), count, ready=count)
                world.kube.put(with_metadata(run, ownerReferences=[owner_of(each)]))

    play()
    world.change(*again)
    play()
    world.reconcile()
    play()
    world.reconcile()
    by_name = {objects.name(each): each["spec"]["replicas"] for each in world.kube.stored(DYNAMO_COMPONENT_DEPLOYMENTS)}
    assert {name: by_name.pop(name) for name in old} == dict.fromkeys(old, 2)
    assert list(by_name.values()) == [0, 0]


def test_a_failed_capture_is_reported_and_stops_only_waiting_pods() -> None:
    world = World(worker())
    before = world.worker
    world.job_says("Failed")
    assert world.worker == before, "the annotations stay: no pod is replaced"
    assert world.condition[1] == "CheckpointFailed"
    assert "failed: Said: as a test says; delete it to capture the engine again" in world.condition[2]
    assert world.graph["status"]["state"] == "pending"
    assert any(line.startswith("Warning CheckpointFailed") for line in world.announced.lines)
    world = World(worker(**WAIT))
    world.job_says("Failed")
    assert world.worker["spec"]["replicas"] == 0
    assert world.ready[:2] == ("failed", "failed_to_reconcile_the_resources")
    assert "as a test says" in world.ready[2]


def test_a_missing_snapshot_operator_is_reported_and_pods_start() -> None:
    world = World(worker(), checkpoints=CheckpointDefaults(enabled=True))
    assert world.jobs == []
    assert world.condition[:2] == ("False", "SnapshotNotInstalled")
    assert "install NVIDIA's Snapshot operator" in world.condition[2]
    assert (world.worker["spec"]["replicas"], world.pinned) == (2, {})
    assert world.graph["status"]["state"] == "pending"


@pytest.mark.parametrize(
    ("now", "reason", "message"),
    [
        (None, "CheckpointUnusable", "its PodSnapshot no longer exists: delete the SnapshotJob"),
        (
            {"metadata": {**snapshot("snap-0")["metadata"], "uid": "other"}},
            "CheckpointUnusable",
            "its PodSnapshot no longer exists",
        ),
        ({"status": {}}, "CheckpointPending", "PodSnapshot snap-0 is not ready yet"),
        ({"spec": {}}, "CheckpointUnusable", "PodSnapshot snap-0 must name exactly one container"),
    ],
)
def test_a_snapshot_that_cannot_be_used_any_more_is_reported(now, reason, message) -> None:
    world = World(worker())
    world.capture()
    before, (taken,) = world.worker, world.kube.stored(POD_SNAPSHOTS)
    if now is None:
        world.remove(POD_SNAPSHOTS, taken)
    else:
        world.kube.put({**taken, **now})
    world.reconcile()
    assert world.condition[1] == reason
    assert message in world.condition[2]
    assert world.worker == before


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("nvidia.com/dynamo-checkpoint-owner-uid", "exists, and was not created for this graph: delete it"),
        ("podSnapshotTemplate", "has no metadata for its PodSnapshot: install a later Snapshot operator"),
    ],
)
def test_a_snapshot_job_of_another_or_without_metadata_captures_nothing(label, message) -> None:
    world = World(worker())
    (job,) = world.jobs
    if label in job["spec"]:
        world.kube.put({**job, "spec": {**job["spec"], label: {"targetContainers": ["main"]}}})
    else:
        world.kube.put(with_metadata(job, annotations={**objects.annotations(job), label: "another"}))
    world.reconcile()
    assert world.condition[1] == "CheckpointUnusable"
    assert message in world.condition[2]


def _named(**own: str) -> KubeObject:
    given = {"snapshot-compatibility-version": "v2", "snapshot-gms-mode": "disabled", **own}
    return snapshot("mine", annotations={f"nvidia.com/dynamo-{name}": value for name, value in given.items()})


def test_a_component_that_names_a_snapshot_starts_from_it() -> None:
    fits = _named(**{"snapshot-compatibility-hash": World(worker()).compatibility_hash})
    world = World(worker(checkpointRef="mine"), there=fits)
    assert world.jobs == []
    assert world.pinned.pop("restore-snapshot-compatibility-hash")
    assert (
        world.pinned.items()
        >= {
            "restore-source-kind": "PodSnapshot",
            "restore-snapshot-uid": "uid-of-mine",
            "restore-snapshot-content": "content",
            "restore-snapshot-version": "v2",
            "restore-snapshot-gms-mode": "disabled",
        }.items()
    )
    assert world.condition[:2] == ("True", "CheckpointsReady")
    assert world.graph["status"]["checkpoints"] == {"One": {"checkpointName": "mine", "ready": True}}
    pending = World(worker(checkpointRef="mine", **WAIT), there={**fits, "status": {}})
    assert (pending.pinned, pending.worker["spec"]["replicas"]) == ({}, 0)
    assert pending.ready[2] == "Waiting for checkpoints: One (mine)"


@pytest.mark.parametrize(
    ("there", "reason", "message", "state"),
    [
        (None, "CheckpointMissing", "neither a PodSnapshot nor a DynamoCheckpoint mine", "pending"),
        (_named(), "CheckpointUnusable", "differs from this component's pods", "failed"),
    ],
)
def test_an_unusable_named_snapshot_is_reported(there, reason, message, state) -> None:
    world = World(worker(checkpointRef="mine"), there=there)
    assert world.condition[1] == reason
    assert message in world.condition[2]
    assert (world.pinned, world.worker["spec"]["replicas"]) == ({}, 2)
    assert World(worker(checkpointRef="mine", **WAIT), there=there).ready[0] == state


def test_a_graph_without_checkpoints_has_no_such_condition() -> None:
    world = World(component("One"))
    assert world.condition == ("", "", "")
    assert "checkpoints" not in world.graph["status"]
