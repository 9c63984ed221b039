"""A graph that starts from PodSnapshots: its reconciler with an in-memory API server, and the Snapshot operator."""

import asyncio
from dataclasses import replace
from typing import Any, cast

from dynamo_pod_builder.applier import Applier
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.reconcilers.graph import GraphReconciler
from dynamo_pod_builder.reconcilers.graph.captures import Captures
from dynamo_pod_builder.reconcilers.graph.carry_out import Executor
from dynamo_pod_builder.reconcilers.graph.grove import workloads as grove_workloads
from dynamo_pod_builder.reconcilers.graph.observe import GraphObserver
from dynamo_pod_builder.reconcilers.graph.report import GraphReport
from dynamo_pod_builder.reconcilers.pod_snapshot import PodSnapshotReconciler
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
    """The graph's reconciler with an in-memory API server, on which methods act as other controllers do."""

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
        """Reconcile until everything is written, including what a status delays."""
        for _ in range(2):
            self.publish()
            asyncio.run(self.reconciler.reconcile(KEY))
            self.publish()
            owners = PodSnapshotReconciler(self.cache, cast("Any", self.kube))
            for each in self.kube.stored(POD_SNAPSHOTS):
                asyncio.run(owners.reconcile(key_of(each)))
            self.clock.now += 60

    def publish(self) -> None:
        """Publish as the watcher does, without the fields that no one reads."""
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
        """The component deployment of the newest worker generation."""
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

    @property
    def compatibility_hash(self) -> str:
        """The hash that a pod must have in common with the captured one."""
        metadata = self.jobs[0]["spec"]["podSnapshotTemplate"]["metadata"]
        return str(metadata["annotations"]["nvidia.com/dynamo-snapshot-compatibility-hash"])

    def job_says(self, type_: str, **status: Any) -> None:
        entry = {"type": type_, "status": "True", "reason": "Said", "message": "as a test says"}
        self.kube.put({**self.jobs[-1], "status": {"conditions": [entry], **status}})
        self.reconcile()

    def remove(self, resource: Resource, obj: KubeObject) -> None:
        key = ObjectKey("ns", objects.name(obj))
        self.kube.remove(resource, key)
        self.cache.remove(resource, key, objects.uid(obj))

    def play_grove(self) -> None:
        """Create Grove's cliques, whose pods all serve."""
        for clique_set in self.kube.stored(POD_CLIQUE_SETS):
            for each in grove_workloads(clique_set):
                own = clique(each.name, each.replicas)
                owner = {**POD_CLIQUE_SETS.type_meta, "name": objects.name(clique_set), "uid": objects.uid(clique_set)}
                labels = {"nvidia.com/dynamo-component": each.component}
                metadata = {**own["metadata"], "labels": labels, "ownerReferences": [{**owner, "controller": True}]}
                self.kube.put({**own, "metadata": metadata})
        self.reconcile()

    def play_workloads(self) -> None:
        """Create the Deployments of the component deployments, whose pods all serve."""
        for each in self.kube.stored(DYNAMO_COMPONENT_DEPLOYMENTS):
            run = deployment(objects.name(each), objects.replicas(each))
            self.kube.put(with_metadata(run, ownerReferences=[owner_of(each)]))
            self.kube.put({**each, "status": {"observedGeneration": objects.generation(each)}})
        self.reconcile()

    @property
    def pods_of_worker(self) -> tuple[int, dict[str, str]]:
        """The desired number of worker pods, and their checkpoint annotations."""
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
        """Complete the SnapshotJob with its PodSnapshot."""
        taken = self.taken(self.jobs[-1])
        self.job_says("Completed", podSnapshotName=objects.name(taken), podSnapshotUID=objects.uid(taken))


def snapshot(name: str, *, ready: bool = True, **metadata: Any) -> KubeObject:
    spec = {"source": {"podRef": {"name": "p", "containers": ["main"]}}}
    status = {"boundSnapshotContentName": "content", "conditions": [{"type": "Ready", "status": str(ready)}]}
    return object_of(POD_SNAPSHOTS, name, uid=f"uid-of-{name}", spec=spec, status=status, **metadata)


def owner_of(component_: KubeObject) -> KubeObject:
    """The owner reference to a component deployment."""
    name = objects.name(component_)
    return {**DYNAMO_COMPONENT_DEPLOYMENTS.type_meta, "name": name, "uid": objects.uid(component_), "controller": True}
