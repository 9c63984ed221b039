"""Graphs whose components start from PodSnapshots, over an API server in memory: what is written, awaited and reported."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest
from dynamo_pod_builder.applying import Applier
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.reconcilers.graph import GraphReconciler
from dynamo_pod_builder.reconcilers.graph.captures import Captures
from dynamo_pod_builder.reconcilers.graph.carry_out import Executor
from dynamo_pod_builder.reconcilers.graph.grove import workloads as grove_workloads
from dynamo_pod_builder.reconcilers.graph.observe import GraphObserver
from dynamo_pod_builder.reconcilers.graph.report import GraphReport
from dynamo_pod_builder.reconcilers.pod_snapshot import PodSnapshotReconciler
from dynamo_pod_builder.reconcilers.scaling import replicas_of
from dynamo_pod_builder.registrations import Registrations
from dynamo_pod_builder.render import CheckpointDefaults
from dynamo_pod_builder.status.snapshots import CHECKPOINTS_READY
from dynamo_shared.aio import Offload
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    POD_SNAPSHOTS,
    SNAPSHOT_JOBS,
    ObjectKey,
    Resource,
    key_of,
)
from dynamo_shared.api.snapshots import OF_CANDIDATES
from dynamo_shared.kube.errors import Conflict, Forbidden, KubeError, NotFound
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.state.versions import version_of
from dynamo_watcher.trimming import trimmed_capture

from tests.building.clock import ManualClock
from tests.building.memory_kube import MemoryKube
from tests.building.objects import object_of, with_metadata
from tests.unit.announced import Announced
from tests.unit.pod_builder.indexed import NoSecrets, indexed
from tests.unit.render.building import CONFIG, component

from .building import NOW, clique, deployment, stored_graph

ON = replace(CONFIG, checkpoints=CheckpointDefaults(enabled=True, snapshots=True))
VLLM = {"command": ["python3", "-m", "dynamo.vllm"], "args": ["--model", "m"]}
KEY = ObjectKey("ns", "graph")
WAIT: dict[str, Any] = {"startupPolicy": "WaitForCheckpoint"}


def worker(main: KubeObject = VLLM, name: str = "One", replicas: int = 2, **checkpoint: Any) -> KubeObject:
    return component(name, main=main, replicas=replicas, experimental={"checkpoint": {"enabled": True, **checkpoint}})


class _Keys:
    name = "mpi-keys"


class World:
    """The graph's reconciler over an API server in memory. `snapshot` plays the Snapshot operator."""

    def __init__(self, *components: KubeObject, there: KubeObject | None = None, **config: Any) -> None:
        self.kube, self.cache, self.announced, self.clock = MemoryKube(), indexed(), Announced(), ManualClock()
        self.kube.put(stored_graph(*components))
        if there is not None:
            self.kube.put(there)
        self.config = replace(ON, **config)
        kube, cache = cast("Any", self.kube), self.cache
        applier = Applier(kube, cache)
        self.reconciler = GraphReconciler(
            GraphObserver(cache, lambda: self.config, lambda: NOW, cast("Any", NoSecrets()), None, Registrations(kube)),  # type: ignore[arg-type]
            Executor(applier, cast("Any", _Keys()), self.announced),
            GraphReport(StatusWriter(kube, cache, self.clock), self.announced, PodEvents(kube)),
            applier,
            Offload(above=10**9, at_once=1),
            Captures(kube, cache),
        )
        self.reconcile()

    def reconcile(self) -> None:
        """Until all is written, also what a status holds back."""
        for _ in range(2):
            self.publish()
            asyncio.run(self.reconciler.reconcile(KEY))
            self.publish()
            owners = PodSnapshotReconciler(self.cache, cast("Any", self.kube))
            for each in self.kube.stored(POD_SNAPSHOTS):
                asyncio.run(owners.reconcile(key_of(each)))
            self.clock.now += 60

    def publish(self) -> None:
        """As the watcher does, which leaves out what no one reads."""
        self.kube.publish(self.cache)
        for resource in (SNAPSHOT_JOBS, POD_SNAPSHOTS):
            for each in self.kube.stored(resource):
                self.cache.take(resource, key_of(each), trimmed_capture(each), version_of(each))

    def change(self, *components: KubeObject) -> None:
        graph = self.graph
        self.kube.put({**graph, "spec": {**graph["spec"], "components": list(components)}})
        self.reconcile()

    @property
    def graph(self) -> KubeObject:
        return self.kube.stored(DYNAMO_GRAPH_DEPLOYMENTS)[0]

    @property
    def jobs(self) -> list[KubeObject]:
        return list(self.kube.stored(SNAPSHOT_JOBS))

    @property
    def worker(self) -> KubeObject:
        """The component deployment of the worker's newest generation."""
        return self.kube.stored(DYNAMO_COMPONENT_DEPLOYMENTS)[-1]

    @property
    def pinned(self) -> dict[str, str]:
        template = self.worker["spec"]["podTemplate"]
        return {
            k.removeprefix("nvidia.com/dynamo-"): v for k, v in objects.annotations(template).items() if "-restore" in k
        }

    @property
    def condition(self) -> tuple[str, str, str]:
        entry = objects.condition(self.graph, CHECKPOINTS_READY) or {}
        return entry.get("status", ""), entry.get("reason", ""), entry.get("message", "")

    @property
    def ready(self) -> tuple[str, str, str]:
        entry = objects.condition(self.graph, "Ready") or {}
        return self.graph["status"]["state"], entry["reason"], entry["message"]

    def job_says(self, type_: str, **status: Any) -> None:
        entry = {"type": type_, "status": "True", "reason": "Said", "message": "as a test says"}
        self.kube.put({**self.jobs[-1], "status": {"conditions": [entry], **status}})
        self.reconcile()

    def remove(self, resource: Resource, obj: KubeObject) -> None:
        key = ObjectKey("ns", objects.name(obj))
        self.kube.remove(resource, key)
        self.cache.remove(resource, key, objects.uid(obj))

    def play_grove(self) -> None:
        """Grove's cliques, of which every pod serves."""
        for clique_set in self.kube.stored(POD_CLIQUE_SETS):
            for each in grove_workloads(clique_set):
                own = clique(each.name, each.replicas)
                owner = {**POD_CLIQUE_SETS.type_meta, "name": objects.name(clique_set), "uid": objects.uid(clique_set)}
                labels = {"nvidia.com/dynamo-component": each.component}
                metadata = {**own["metadata"], "labels": labels, "ownerReferences": [{**owner, "controller": True}]}
                self.kube.put({**own, "metadata": metadata})
        self.reconcile()

    def play_workloads(self) -> None:
        """The Deployments of component deployments, of which every pod serves."""
        for each in self.kube.stored(DYNAMO_COMPONENT_DEPLOYMENTS):
            run = deployment(objects.name(each), objects.replicas(each))
            self.kube.put(with_metadata(run, ownerReferences=[_owner(each)]))
            self.kube.put({**each, "status": {"observedGeneration": objects.generation(each)}})
        self.reconcile()

    @property
    def pods_of_worker(self) -> tuple[int, dict[str, str]]:
        """How many pods there are to be of the worker, and what they are marked with."""
        marked: KubeObject
        if sets := self.kube.stored(POD_CLIQUE_SETS):
            marked = next(each for each in sets[0]["spec"]["template"]["cliques"] if each["name"] == "one")
            (own,) = (each for each in self.kube.stored(POD_CLIQUES) if objects.name(each).endswith("-one"))
            replicas = own["spec"]["replicas"]
        else:
            replicas, marked = self.worker["spec"]["replicas"], self.worker["spec"]["podTemplate"]["metadata"]
        return replicas, {key: value for key, value in marked["annotations"].items() if key in OF_CANDIDATES}

    def taken(self, job: KubeObject) -> KubeObject:
        """The PodSnapshot that a job has taken."""
        metadata = job["spec"]["podSnapshotTemplate"]["metadata"]
        return self.kube.put(snapshot(f"snap-{len(self.kube.stored(POD_SNAPSHOTS))}", **metadata))

    def capture(self) -> None:
        """The SnapshotJob completes, with its PodSnapshot."""
        taken = self.taken(self.jobs[-1])
        self.job_says("Completed", podSnapshotName=objects.name(taken), podSnapshotUID=objects.uid(taken))


def snapshot(name: str, *, ready: bool = True, **metadata: Any) -> KubeObject:
    spec = {"source": {"podRef": {"name": "p", "containers": ["main"]}}}
    status = {"boundSnapshotContentName": "content", "conditions": [{"type": "Ready", "status": str(ready)}]}
    return object_of(POD_SNAPSHOTS, name, uid=f"uid-of-{name}", spec=spec, status=status, **metadata)


def test_a_graph_has_its_engine_captured_and_its_pods_marked_from_the_first_on() -> None:
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


def test_when_it_is_captured_no_pod_is_replaced() -> None:
    world = World(worker())
    before = world.worker
    world.job_says("Captured")
    assert "(Said: as a test says)" in world.condition[2]
    world.capture()
    assert world.worker == before
    assert world.condition == (
        "True",
        "CheckpointsReady",
        "One: pods that are created from now on start from PodSnapshot snap-0",
    )
    assert world.graph["status"]["checkpoints"] == {"One": {"checkpointName": "snap-0", "ready": True}}
    assert any("Normal CheckpointsReady" in line for line in world.announced.lines)
    writes = list(world.kube.writes)
    world.reconcile()
    assert world.kube.writes == writes, "there is nothing left to do"


@pytest.mark.parametrize("adapted", [False, True])
def test_pods_that_wait_for_it_do_not_start_before(*, adapted: bool) -> None:
    waiting = {**worker(**WAIT), **({"scalingAdapter": {}} if adapted else {})}
    world = World(waiting)
    assert world.worker["spec"]["replicas"] == 0
    assert world.ready == ("pending", "waiting_for_checkpoint", "Waiting for checkpoints: One")
    world.reconcile()
    assert world.worker["spec"]["replicas"] == 0
    assert replicas_of(world.cache, world.worker) is None, "the short way from an adapter waits, too"
    world.capture()
    assert world.worker["spec"]["replicas"] == 2
    assert world.ready[1] != "waiting_for_checkpoint"
    assert replicas_of(world.cache, world.worker) is None, "it may be lost again"


def test_on_grove_no_pod_starts_before_it_either() -> None:
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
        {**deployment(old, 2), "metadata": {**deployment(old)["metadata"], "ownerReferences": [_owner(world.worker)]}}
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


def test_the_old_generation_follows_the_autoscaler_while_it_is_held() -> None:
    """It kept the number that it had when the worker was changed, however long the checkpoint took, or for good if none came."""
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
def test_pods_that_serve_are_kept_whatever_their_checkpoint_comes_to(*, grove: bool) -> None:
    """They were scaled to 0 where their checkpoint was lost, or where their author had new ones wait for the first time."""
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


def test_pods_are_not_replaced_where_the_snapshot_operator_is_removed() -> None:
    world = World(worker())
    world.capture()
    before = world.worker
    world.config = replace(world.config, checkpoints=CheckpointDefaults(enabled=True))
    world.reconcile()
    assert world.condition[1] == "SnapshotNotInstalled"
    assert world.worker == before


def test_workers_of_a_generation_wait_together_for_the_checkpoint_of_one() -> None:
    """Prefill workers took over before there was a decode worker for them: those of before were left without."""
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
                world.kube.put(with_metadata(run, ownerReferences=[_owner(each)]))

    play()
    world.change(*again)
    play()
    world.reconcile()
    play()
    world.reconcile()
    by_name = {objects.name(each): each["spec"]["replicas"] for each in world.kube.stored(DYNAMO_COMPONENT_DEPLOYMENTS)}
    assert {name: by_name.pop(name) for name in old} == dict.fromkeys(old, 2)
    assert list(by_name.values()) == [0, 0]


def _owner(component_: KubeObject) -> KubeObject:
    name = objects.name(component_)
    return {**DYNAMO_COMPONENT_DEPLOYMENTS.type_meta, "name": name, "uid": objects.uid(component_), "controller": True}


def test_a_capture_that_failed_is_reported_and_stops_only_those_that_wait() -> None:
    world = World(worker())
    before = world.worker
    world.job_says("Failed")
    assert world.worker == before, "the annotations stay: no pod is replaced"
    assert world.condition[1] == "CheckpointFailed"
    assert "failed: Said: as a test says; to have it taken again, delete it" in world.condition[2]
    assert world.graph["status"]["state"] == "pending"
    assert any(line.startswith("Warning CheckpointFailed") for line in world.announced.lines)
    world = World(worker(**WAIT))
    world.job_says("Failed")
    assert world.worker["spec"]["replicas"] == 0
    assert world.ready[:2] == ("failed", "failed_to_reconcile_the_resources")
    assert "as a test says" in world.ready[2]


def test_without_the_snapshot_operator_the_condition_says_so_and_pods_start() -> None:
    world = World(worker(), checkpoints=CheckpointDefaults(enabled=True))
    assert world.jobs == []
    assert world.condition[:2] == ("False", "SnapshotNotInstalled")
    assert "install NVIDIA's Snapshot operator" in world.condition[2]
    assert (world.worker["spec"]["replicas"], world.pinned) == (2, {})
    assert world.graph["status"]["state"] == "pending"


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
    world = World(worker(targetContainerName="saver"))
    assert "targetContainerName: is saver, which there is not" in world.condition[2]


def test_a_job_without_metadata_for_its_pod_snapshot_is_of_an_early_operator() -> None:
    world = World(worker())
    job = world.jobs[0]
    template = {"targetContainers": job["spec"]["podSnapshotTemplate"]["targetContainers"]}
    world.kube.put({**job, "spec": {**job["spec"], "podSnapshotTemplate": template}})
    world.reconcile()
    assert world.condition[1] == "CheckpointUnusable"
    assert "install a later Snapshot operator" in world.condition[2]


def test_a_mount_without_a_name_is_left_to_the_api_server_to_refuse() -> None:
    main = {"name": "main", "volumeMounts": [{"mountPath": "/models"}]}
    world = World(worker(job={"podTemplate": {"spec": {"containers": [main]}}}))
    assert world.jobs[0]["spec"]["podTemplate"]["spec"]["containers"][0]["volumeMounts"][-1] == {"mountPath": "/models"}


def test_a_refused_job_is_a_failure_and_the_graph_is_written() -> None:
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


def test_what_goes_with_the_graph_and_what_stays() -> None:
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


def test_what_is_captured_late_goes_with_the_graph_too() -> None:
    """Its files stayed without end: nothing names a graph that is another one by then, or gone."""
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
def test_what_may_not_name_its_graph_is_not_tried_without_end(error: KubeError) -> None:
    world = World(worker())
    (job,) = world.jobs
    world.change(component("One", main=VLLM))
    world.kube.refusals["patch PodSnapshot snap-0"] = error
    world.taken(job)
    world.reconcile()
    assert _owners(world) == [[]]


def test_what_has_changed_meanwhile_is_tried_again() -> None:
    """Its operator writes the status right after it: of that alone no event asks for another try."""
    world = World(worker())
    (job,) = world.jobs
    world.change(component("One", main=VLLM))
    world.kube.refusals["patch PodSnapshot snap-0"] = Conflict(409, "Conflict", "changed")
    world.taken(job)
    with pytest.raises(Conflict):
        world.reconcile()


def test_a_label_that_names_another_graph_makes_no_one_write_without_end() -> None:
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
def test_what_does_not_say_that_it_goes_with_a_graph_stays(changed: KubeObject) -> None:
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


def test_a_job_that_someone_else_created_under_its_name_is_in_the_way() -> None:
    name = objects.name(World(worker()).jobs[0])
    world = World(
        worker(), there={**SNAPSHOT_JOBS.type_meta, "metadata": {"name": name, "namespace": "ns"}, "spec": {}}
    )
    assert world.ready[0] == "failed"
    assert f"a SnapshotJob named '{name}' exists already and has no known owner" in world.ready[2]
    assert world.worker["spec"]["replicas"] == 2
    assert "labels" not in world.jobs[0]["metadata"], "it stays as it is"


def test_a_job_that_lost_its_label_gets_it_again() -> None:
    world = World(worker())
    (job,) = world.jobs
    before = world.worker
    bare = with_metadata(job, labels={})
    again = World(worker(), there=bare)
    assert objects.labels(again.jobs[0])["nvidia.com/dynamo-graph-deployment-name"] == "graph"
    assert again.worker["spec"] == before["spec"]
    assert again.condition[1] == "CheckpointPending"


def test_one_job_that_is_refused_keeps_no_other_from_its_component() -> None:
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


@pytest.mark.parametrize("spec", [None, {}, {"podSnapshotTemplate": 5}, {"podSnapshotTemplate": {"metadata": []}}])
def test_a_job_of_odd_content_is_a_condition(spec: Any) -> None:
    world = World(worker())
    world.kube.put({**world.jobs[0], "spec": spec})
    world.reconcile()
    assert world.condition[1] == "CheckpointUnusable"


def test_what_is_gone_is_taken_again_when_its_job_is_deleted() -> None:
    world = World(worker())
    world.capture()
    world.kube.remove(POD_SNAPSHOTS, ObjectKey("ns", "snap-0"))
    world.cache.remove(POD_SNAPSHOTS, ObjectKey("ns", "snap-0"), "uid-of-snap-0")
    before = world.worker
    world.reconcile()
    assert world.condition[1] == "CheckpointUnusable"
    assert "its PodSnapshot is gone: delete the SnapshotJob" in world.condition[2]
    assert world.worker == before


def test_the_user_changes_the_captured_pod() -> None:
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


def _hash(world: World) -> str:
    metadata = world.jobs[0]["spec"]["podSnapshotTemplate"]["metadata"]
    return str(metadata["annotations"]["nvidia.com/dynamo-snapshot-compatibility-hash"])


def _named(**own: str) -> KubeObject:
    given = {"snapshot-compatibility-version": "v2", "snapshot-gms-mode": "disabled", **own}
    return snapshot("mine", annotations={f"nvidia.com/dynamo-{name}": value for name, value in given.items()})


def test_a_component_that_names_a_snapshot_starts_from_it() -> None:
    fits = _named(**{"snapshot-compatibility-hash": _hash(World(worker()))})
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


def test_the_same_engine_in_another_graph_has_the_same_hash() -> None:
    one = World(worker())
    other = World()
    graph = stored_graph(worker(name="Two", replicas=5), name="other", labels={"team": "x"})
    graph["metadata"]["uid"] = "another-uid"
    other.kube.objects.clear()
    other.kube.put(with_metadata(graph, name="graph"))
    other.reconcile()
    assert _hash(one) == _hash(other)
    assert objects.name(one.jobs[0]) != objects.name(other.jobs[0])
    assert _hash(World(worker({**VLLM, "image": "img:2"}))) != _hash(one)


@pytest.mark.parametrize(
    ("there", "reason", "message"),
    [
        (None, "CheckpointMissing", "neither a PodSnapshot nor a DynamoCheckpoint mine"),
        (_named(), "CheckpointUnusable", "differs from this component's in what must be the same"),
    ],
)
def test_a_snapshot_that_is_named_and_does_not_do(there, reason, message) -> None:
    world = World(worker(checkpointRef="mine"), there=there)
    assert world.condition[1] == reason
    assert message in world.condition[2]
    assert (world.pinned, world.worker["spec"]["replicas"]) == ({}, 2)


def test_a_graph_without_checkpoints_has_no_such_condition() -> None:
    world = World(component("One"))
    assert world.condition == ("", "", "")
    assert "checkpoints" not in world.graph["status"]
