"""SnapshotJobs of graphs: what they capture, what prevents them, and which PodSnapshots are deleted with the graph."""

from typing import Any

import pytest
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    POD_SNAPSHOTS,
    SNAPSHOT_JOBS,
)
from dynamo_shared.api.snapshots import OF_CANDIDATES
from dynamo_shared.kube.errors import Conflict, Forbidden, KubeError, NotFound

from tests.building.objects import object_of, with_metadata
from tests.unit.render.building import component

from .building import stored_graph
from .snapshot_world import VLLM, WAIT, World, snapshot, worker


def test_a_new_graph_gets_a_snapshot_job_and_its_pods_are_annotated_from_the_start() -> None:
    world = World(worker())
    (job,) = world.jobs
    assert world.kube.writes[0] == f"create SnapshotJob {objects.name(job)}", "before any pod"
    assert job["metadata"]["ownerReferences"][0]["kind"] == "DynamoGraphDeployment"
    assert job["spec"]["podSnapshotTemplate"]["targetContainers"] == ["main"]
    assert job["spec"]["activeDeadlineSeconds"] == 3600
    of_pod = job["spec"]["podTemplate"]
    assert of_pod["spec"]["restartPolicy"] == "Never"
    assert [each["name"] for each in of_pod["spec"]["containers"]] == ["main"]
    assert (
        of_pod["metadata"]["labels"].items()
        >= {
            "nvidia.com/dynamo-graph-deployment-name": "graph",
            "nvidia.com/dynamo-worker-hash": objects.labels(world.worker)["nvidia.com/dynamo-worker-hash"],
        }.items()
    )
    assert "nvidia.com/dynamo-component" not in of_pod["metadata"]["labels"], "no replica of it, for no autoscaler"
    assert "DYN_NAMESPACE_WORKER_SUFFIX" not in str(of_pod["spec"]), "it is of no generation yet"
    pinned = world.pinned
    assert pinned.pop("restore-snapshot-compatibility-hash")
    assert pinned == {
        "checkpoint-restore-candidate": "true",
        "restore-source-kind": "SnapshotJob",
        "restore-snapshot-job-uid": objects.uid(job),
        "restore-target-containers": "main",
    }
    assert world.worker["spec"]["replicas"] == 2, "pods start without it"
    assert world.graph["status"]["checkpoints"] == {"One": {"checkpointName": "", "ready": False}}
    assert world.condition[:2] == ("False", "CheckpointPending")
    assert "checkpoints" in world.announced.events


def test_the_user_may_change_the_captured_pod() -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "runtimeClassName": "nvidia",
            "containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}, {"name": "saver", "image": "s"}],
            "volumes": [{"name": "x", "emptyDir": {}}],
        },
    }
    plain, changed = World(worker()).jobs[0], World(worker(job={"podTemplate": template})).jobs[0]
    pod = changed["spec"]["podTemplate"]
    assert pod["metadata"]["labels"]["a"] == "b"
    assert pod["spec"]["runtimeClassName"] == "nvidia"
    main, saver = pod["spec"]["containers"]
    assert saver == {"name": "saver", "image": "s"}
    assert main["image"] == "img:1"
    assert {"name": "A", "value": "1"} in main["env"]
    assert {"name": "x", "emptyDir": {}} in pod["spec"]["volumes"]
    assert objects.name(changed) != objects.name(plain), "what is restored is another process"
    label = World(worker(job={"podTemplate": {"metadata": {"labels": {"a": "b"}}}})).jobs[0]
    assert objects.name(label) == objects.name(plain)


def test_the_same_engine_in_another_graph_has_the_same_hash() -> None:
    one = World(worker())
    other = World()
    graph = stored_graph(worker(name="Two", replicas=5), name="other", labels={"team": "x"})
    graph["metadata"]["uid"] = "another-uid"
    other.kube.objects.clear()
    other.kube.put(with_metadata(graph, name="graph"))
    other.reconcile()
    assert one.compatibility_hash == other.compatibility_hash
    assert objects.name(one.jobs[0]) != objects.name(other.jobs[0])
    assert World(worker({**VLLM, "image": "img:2"})).compatibility_hash != one.compatibility_hash


def test_an_engine_that_cannot_be_restored_is_not_captured() -> None:
    for main, message in (
        ({"command": ["/bin/sh", "-c"], "args": ["python3 -m dynamo.vllm"]}, "container main starts no engine"),
        ({"command": ["serve"]}, "container main starts no engine"),
    ):
        world = World(worker(main))
        assert world.jobs == []
        assert world.condition[1] == "NotCapturable"
        assert message in world.condition[2]
        assert world.worker["spec"]["replicas"] == 2
        assert World(worker(main, **WAIT)).ready[0] == "failed", "it would wait without end"
    world = World(worker(targetContainerName="saver"))
    assert "targetContainerName: names saver, which does not exist" in world.condition[2]


def test_the_api_server_rejects_a_mount_without_a_name() -> None:
    main = {"name": "main", "volumeMounts": [{"mountPath": "/models"}]}
    world = World(worker(job={"podTemplate": {"spec": {"containers": [main]}}}))
    assert world.jobs[0]["spec"]["podTemplate"]["spec"]["containers"][0]["volumeMounts"][-1] == {"mountPath": "/models"}


def test_a_rejected_job_is_reported_and_the_graph_is_still_written() -> None:
    world = World()
    world.kube.put(stored_graph(worker()))
    world.reconcile()
    name = objects.name(world.jobs[0])
    other = World()
    other.kube.put(stored_graph(worker()))
    other.kube.refusals[f"create SnapshotJob {name}"] = Forbidden(403, "Forbidden", "no right to create it")
    other.reconcile()
    assert other.worker["spec"]["replicas"] == 2
    assert other.ready[0] == "failed"
    assert "no right to create it" in other.ready[2]


def test_a_rejected_job_does_not_block_the_job_of_another_component() -> None:
    two = [worker(name="One"), worker({**VLLM, "image": "img:2"}, name="Two")]
    names = {objects.labels(each)["nvidia.com/dynamo-component"]: objects.name(each) for each in World(*two).jobs}
    world = World()
    world.kube.put(stored_graph(*two))
    world.kube.refusals[f"create SnapshotJob {names['One']}"] = Forbidden(403, "Forbidden", "no right to create it")
    world.reconcile()
    assert [objects.name(each) for each in world.jobs] == [names["Two"]]
    assert "no right to create it" in world.ready[2]
    marked = {
        objects.labels(each)["nvidia.com/dynamo-component"]: bool(
            objects.annotations(each["spec"]["podTemplate"]).keys() & set(OF_CANDIDATES)
        )
        for each in world.kube.stored(DYNAMO_COMPONENT_DEPLOYMENTS)
    }
    assert marked == {"One": False, "Two": True}, "it is marked from the first on, and not replaced for that later"


def test_a_foreign_job_of_the_same_name_is_reported_and_left_alone() -> None:
    name = objects.name(World(worker()).jobs[0])
    world = World(worker(), there=object_of(SNAPSHOT_JOBS, name, spec={}))
    assert world.ready[0] == "failed"
    assert f"a SnapshotJob named '{name}' exists already and has no known owner" in world.ready[2]
    assert world.worker["spec"]["replicas"] == 2
    assert "labels" not in world.jobs[0]["metadata"], "it stays as it is"


def test_a_job_that_lost_its_label_gets_it_back() -> None:
    world = World(worker())
    (job,) = world.jobs
    before = world.worker
    bare = with_metadata(job, labels={})
    again = World(worker(), there=bare)
    assert objects.labels(again.jobs[0])["nvidia.com/dynamo-graph-deployment-name"] == "graph"
    assert again.worker["spec"] == before["spec"]
    assert again.condition[1] == "CheckpointPending"


def test_a_job_whose_snapshot_template_has_no_metadata_is_of_an_early_operator() -> None:
    world = World(worker())
    job = world.jobs[0]
    template = {"targetContainers": job["spec"]["podSnapshotTemplate"]["targetContainers"]}
    world.kube.put({**job, "spec": {**job["spec"], "podSnapshotTemplate": template}})
    world.reconcile()
    assert world.condition[1] == "CheckpointUnusable"
    assert "install a later Snapshot operator" in world.condition[2]


@pytest.mark.parametrize("spec", [None, {}, {"podSnapshotTemplate": 5}, {"podSnapshotTemplate": {"metadata": []}}])
def test_a_malformed_job_is_reported_in_the_condition(spec: Any) -> None:
    world = World(worker())
    world.kube.put({**world.jobs[0], "spec": spec})
    world.reconcile()
    assert world.condition[1] == "CheckpointUnusable"


def test_the_deletion_policy_decides_which_objects_are_deleted_with_the_graph() -> None:
    world = World(worker())
    world.capture()
    world.reconcile()
    (taken,) = world.kube.stored(POD_SNAPSHOTS)
    assert [each["uid"] for each in taken["metadata"]["ownerReferences"]] == ["graph-uid"]
    world.change(worker(deletionPolicy="Retain"))
    (taken,), (job,) = world.kube.stored(POD_SNAPSHOTS), world.jobs
    for each in (taken, job):
        assert each["metadata"]["ownerReferences"] == []
        assert objects.annotations(each)["nvidia.com/dynamo-checkpoint-deletion-policy"] == "Retain"
    world.change(worker())
    assert world.kube.stored(POD_SNAPSHOTS)[0]["metadata"]["ownerReferences"]
    assert world.jobs[0]["metadata"]["ownerReferences"][0]["controller"] is True
    retained = World(worker(deletionPolicy="Retain"))
    assert "ownerReferences" not in retained.jobs[0]["metadata"]


def _owners(world: World) -> list[list[str]]:
    return [
        [each["uid"] for each in taken["metadata"].get("ownerReferences", ())]
        for taken in world.kube.stored(POD_SNAPSHOTS)
    ]


def test_a_late_pod_snapshot_is_deleted_with_the_graph_too() -> None:
    """Its files stayed without end, because no object names a graph that was replaced or deleted."""
    world = World(worker())
    (first,) = world.jobs
    world.change(worker({**VLLM, "image": "img:2"}))
    world.taken(first)
    world.reconcile()
    assert _owners(world) == [["graph-uid"]]
    world.change(component("One", main=VLLM))
    world.taken(first)
    world.remove(DYNAMO_GRAPH_DEPLOYMENTS, world.graph)
    world.reconcile()
    assert _owners(world) == [["graph-uid"], ["graph-uid"]], "the garbage collector takes it at once"
    writes = list(world.kube.writes)
    world.reconcile()
    assert world.kube.writes == writes


@pytest.mark.parametrize("error", [Forbidden(403, "Forbidden", "no"), NotFound(404, "NotFound", "gone", {"name": "s"})])
def test_a_rejected_owner_reference_of_a_pod_snapshot_is_not_retried_without_end(error: KubeError) -> None:
    world = World(worker())
    (job,) = world.jobs
    world.change(component("One", main=VLLM))
    world.kube.refusals["patch PodSnapshot snap-0"] = error
    world.taken(job)
    world.reconcile()
    assert _owners(world) == [[]]


def test_a_conflict_on_a_pod_snapshot_is_retried() -> None:
    """Its operator writes the status right afterwards, and a status alone triggers no retry."""
    world = World(worker())
    (job,) = world.jobs
    world.change(component("One", main=VLLM))
    world.kube.refusals["patch PodSnapshot snap-0"] = Conflict(409, "Conflict", "changed")
    world.taken(job)
    with pytest.raises(Conflict):
        world.reconcile()


def test_a_label_that_names_another_graph_causes_no_repeated_writes() -> None:
    world = World(worker())
    world.capture()
    (taken,) = world.kube.stored(POD_SNAPSHOTS)
    other = {**objects.labels(taken), "nvidia.com/dynamo-graph-deployment-name": "other"}
    world.kube.put(with_metadata(taken, labels=other))
    world.reconcile()
    writes = list(world.kube.writes)
    world.reconcile()
    assert world.kube.writes == writes
    assert _owners(world) == [["graph-uid"]]


@pytest.mark.parametrize(
    "changed",
    [
        {"annotations": {"nvidia.com/dynamo-checkpoint-deletion-policy": "Retain"}},
        {"annotations": {"nvidia.com/dynamo-checkpoint-deletion-policy": ""}},
        {"annotations": {"nvidia.com/dynamo-auto-checkpoint": "false"}},
        {"annotations": {"nvidia.com/dynamo-checkpoint-owner-uid": ""}},
        {"labels": {"nvidia.com/dynamo-graph-deployment-name": ""}},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
    ],
)
def test_a_pod_snapshot_that_does_not_name_its_graph_is_left_alone(changed: KubeObject) -> None:
    world = World(worker())
    (job,) = world.jobs
    world.remove(DYNAMO_GRAPH_DEPLOYMENTS, world.graph)
    metadata = job["spec"]["podSnapshotTemplate"]["metadata"]
    mixed = {
        **metadata,
        **{key: {**metadata[key], **value} if key in metadata else value for key, value in changed.items()},
    }
    mine = {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "name": "other", "uid": "mine"}
    world.kube.put(snapshot("snap", **mixed, ownerReferences=[mine]))
    writes = list(world.kube.writes)
    world.reconcile()
    assert _owners(world) == [["mine"]]
    assert world.kube.writes == writes
