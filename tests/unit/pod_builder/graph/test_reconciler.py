"""GraphReconciler as a whole: a graph, its cache and the writes, without a server."""

import copy
from collections.abc import Collection
from datetime import datetime
from typing import Any

import pytest
from dynamo_pod_builder.applier import ChildChange, Ensured
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.reconcilers.graph import GraphReconciler
from dynamo_pod_builder.reconcilers.graph.captures import Captures
from dynamo_pod_builder.reconcilers.graph.carry_out import Executor
from dynamo_pod_builder.reconcilers.graph.observe import GraphObserver
from dynamo_pod_builder.reconcilers.graph.report import GraphReport
from dynamo_pod_builder.reconcilers.requeue import OBSERVED_WITHIN, RETRY_REFUSED
from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey, Resource
from dynamo_shared.kube.errors import Forbidden
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.status_writer import SETTLE
from dynamo_shared.state.cache import ObjectCache

from tests.building.objects import object_of
from tests.building.recorded_offload import RecordedOffload
from tests.unit.announced import Announced
from tests.unit.pod_builder.indexed import indexed
from tests.unit.render.building import CONFIG, component, component_children, graph_children, of_kind
from tests.unit.written import Written

from .building import NOW, deployment, stored, stored_graph
from .test_carry_out import Keys, Ledger

KEY = ObjectKey("ns", "graph")


class Applier(Ledger):
    """Treats the cached objects as correct; with `changing`, as changed by this write."""

    def __init__(self, cache: ObjectCache) -> None:
        super().__init__()
        self.cache = cache
        self.changing = False
        self.newer: list[KubeObject] = []
        """Objects that the API server has in newer versions."""

    async def ensure(self, child: KubeObject, family: Collection[str] = ()) -> Ensured:
        created = await super().ensure(child, family)
        there = self.cache.get(resources.of(child), resources.key_of(child))
        if there is None:
            return created
        if not self.changing:
            return Ensured(ChildChange.UNCHANGED, there)
        return Ensured(ChildChange.UPDATED, {**there, "metadata": {**there["metadata"], "generation": 2}})

    async def is_outdated(self, observed: KubeObject) -> bool:
        name = observed["metadata"]["name"]
        self.lines.append(f"reread {observed['kind']} {name}")
        return any(self.cache.put(resources.of(each), each) for each in self.newer if objects.name(each) == name)

    async def remove_reference_finalizer(self, _resource: Resource, obj: KubeObject) -> None:
        self.lines.append(f"let go {obj['kind']} {obj['metadata']['name']}")


class NoRegistrations:
    """No pod registers with Dynamo in Kubernetes."""

    async def of(self, _groups: object) -> dict[str, datetime]:
        return {}


class World:
    """The reconciler with its doubles."""

    def __init__(self, *stored_objects: KubeObject) -> None:
        self.cache = indexed(*stored_objects)
        self.applier, self.writer, self.announced = Applier(self.cache), Written(), Announced()
        self.large = RecordedOffload()
        self.reconciler = GraphReconciler(
            GraphObserver(self.cache, lambda: CONFIG, lambda: NOW, None, None, NoRegistrations()),  # type: ignore[arg-type]
            Executor(self.applier, Keys(), self.announced),  # type: ignore[arg-type]
            GraphReport(self.writer, self.announced, PodEvents(None)),  # type: ignore[arg-type]
            self.applier,  # type: ignore[arg-type]
            # Plan in a thread, whatever the size of the graph.
            self.large,
            Captures(None, self.cache),  # type: ignore[arg-type]
        )

    async def reconcile(self) -> Result:
        return await self.reconciler.reconcile(KEY)


GRAPH = stored_graph(component("Front", "frontend"), component("One"))
SIDECAR: KubeObject = {"name": "other", "image": "img:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}


def owned(graph: KubeObject) -> list[KubeObject]:
    """All objects of a graph in order, with Deployments that serve."""
    results = [stored(child) for child in graph_children(graph)]
    components = of_kind(results, "DynamoComponentDeployment")
    for each in components:
        each["status"] = {"observedGeneration": 1}
        results.append(workload_of(each))
    return results


def workload_of(dcd: KubeObject, ready: int = 1) -> KubeObject:
    """The Deployment of a component deployment, with so many serving pods."""
    (workload,) = of_kind(component_children(dcd), "Deployment")
    serving = deployment(objects.name(dcd), ready=ready)
    return {**serving, "metadata": {**serving["metadata"], **stored(workload)["metadata"]}}


@pytest.mark.parametrize(
    ("generation", "observed", "settle", "heeds_progress"),
    [
        pytest.param(1, 1, SETTLE, True, id="observed"),
        pytest.param(1, 0, OBSERVED_WITHIN, False, id="its controller is busy"),
        pytest.param(2, 0, SETTLE, True, id="a change of the spec was acted on"),
    ],
)
async def test_the_status_waits_until_controllers_have_observed_the_workloads(
    generation, observed, settle, heeds_progress
):
    graph = {**GRAPH, "status": {"observedGeneration": 1}}
    graph["metadata"] = {**graph["metadata"], "generation": generation}
    there = owned(GRAPH)
    first = next(each for each in there if each["kind"] == "Deployment")
    first["status"] = {**first["status"], "observedGeneration": observed}
    world = World(graph, *there)
    await world.reconcile()
    assert (world.writer.settle, world.writer.heeds_progress) == (settle, heeds_progress)


async def test_a_missing_graph_changes_nothing():
    world = World()
    assert await world.reconcile() == Result()
    assert (world.applier.lines, world.writer.statuses, world.announced.events) == ([], [], [])


async def test_a_graph_that_is_being_deleted_only_loses_its_finalizer():
    metadata = {**GRAPH["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    world = World({**GRAPH, "metadata": metadata})
    assert await world.reconcile() == Result()
    assert world.applier.lines == ["let go DynamoGraphDeployment graph"]
    assert world.writer.statuses == []


async def test_a_graph_that_only_state_has_gets_no_children_and_no_status():
    world = World(GRAPH)
    world.applier.gone = {"graph"}
    assert await world.reconcile() == Result()
    assert (world.applier.lines, world.writer.statuses, world.announced.events) == ([], [], [])


async def test_nothing_is_done_about_a_graph_that_is_deleted_while_it_is_planned(monkeypatch):
    """It was reported as created after its deletion, and that stayed in memory. A large graph takes seconds."""
    world = World(GRAPH)

    async def deleted_meanwhile(graph: KubeObject) -> bool:
        return world.cache.remove(DYNAMO_GRAPH_DEPLOYMENTS, KEY, objects.uid(graph))

    monkeypatch.setattr(world.applier, "exists", deleted_meanwhile)
    assert await world.reconcile() == Result()
    assert (world.applier.lines, world.writer.statuses, world.announced.events) == ([], [], [])
    assert not world.reconciler.report._new


async def test_the_api_server_is_asked_for_a_graph_only_before_its_first_child():
    world = World(GRAPH, *owned(GRAPH))
    await world.reconcile()
    assert world.applier.asked == []


async def test_a_new_graph_is_written_and_reported_as_pending():
    world = World(GRAPH)
    assert await world.reconcile() == Result()
    assert [line.rpartition(" ")[0] for line in world.applier.lines].count("ensure DynamoComponentDeployment") == 2
    (status,) = world.writer.statuses
    assert (status["state"], status["observedGeneration"]) == ("pending", 1)
    assert world.writer.urgent == [True]
    assert world.announced.events == ["created", "progressing"]
    assert world.large.lanes == ["ns"], "large graphs of another namespace do not wait for those of this one"


async def test_a_graph_that_serves_is_successful():
    world = World(GRAPH, *owned(GRAPH))
    assert await world.reconcile() == Result()
    (status,) = world.writer.statuses
    assert status["state"] == "successful", status["conditions"]
    assert status["components"].keys() == {"Front", "One"}
    assert "Normal Ready Reconcile: All components serve" in world.announced.lines


async def test_gpus_of_engines_and_replicas_are_reported_as_planners_of_dynamo_1_6_read_them():
    """A planner in a graph's own pods does nothing if the status lacks them or has those of another generation."""
    wide = component("One", main={"resources": {"limits": {"nvidia.com/gpu": "4"}}}, sidecars=[SIDECAR])
    claims = {"containers": [{"name": "main", "image": "img:1", "resources": {"claims": [{"name": "x"}]}}]}
    unknown = component("Two", pod={**claims, "resourceClaims": [{"name": "x", "resourceClaimTemplateName": "gone"}]})
    graph = stored_graph(component("Front", "frontend"), wide, unknown)
    world = World(graph, *owned(graph))
    await world.reconcile()
    (status,) = world.writer.statuses
    shapes = {
        name: (each.get("gpusPerEngine"), each.get("gpusPerReplica")) for name, each in status["components"].items()
    }
    assert shapes == {"Front": (0, 0), "One": (4, 5), "Two": (None, None)}
    assert status["observedGeneration"] == objects.generation(graph)


async def test_a_change_that_its_controller_has_not_acted_on_is_not_a_success():
    """The objects written in this reconcile count, not their former state."""
    world = World(GRAPH, *owned(GRAPH))
    world.applier.changing = True
    await world.reconcile()
    (status,) = world.writer.statuses
    assert status["state"] == "pending"
    assert "its controller has not acted on the latest change yet" in status["conditions"][0]["message"]


async def test_a_graph_that_cannot_be_rendered_stays_failed_until_it_or_the_cluster_changes():
    world = World(stored_graph(status={"observedGeneration": 1, "state": "pending"}))
    assert await world.reconcile() == Result()
    assert world.applier.lines == []
    (status,) = world.writer.statuses
    assert (status["state"], world.writer.urgent) == ("failed", [True])
    assert world.announced.events == ["failed"]


@pytest.mark.parametrize("status", [{"observedGeneration": 1, "state": "pending"}])
async def test_a_status_that_only_reports_progress_may_wait(status):
    world = World({**GRAPH, "status": status})
    await world.reconcile()
    assert world.writer.urgent == [False]
    assert "created" not in world.announced.events


async def test_a_graph_without_a_spec_fails_with_a_message():
    """Its schema does not require one."""
    world = World({name: value for name, value in GRAPH.items() if name != "spec"})
    await world.reconcile()
    assert objects.condition({"status": world.writer.statuses[0]}, "Ready")["message"] == (  # type: ignore[index]
        "NotDeployable: spec.components: names no component; add at least one"
    )


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        (resources.DYNAMO_COMPONENT_DEPLOYMENTS, {}),
        (resources.POD_CLIQUE_SETS, {"spec": {"template": {"cliques": [{"name": "x", "spec": {}}]}}}),
        (
            resources.POD_CLIQUE_SETS,
            {
                "spec": {
                    "template": {
                        "cliques": [{"name": "x", "spec": {}}],
                        "podCliqueScalingGroups": [{"name": "g", "cliqueNames": ["x"]}],
                    }
                }
            },
        ),
    ],
    ids=["component deployment", "set", "set with a group"],
)
async def test_a_nearly_empty_child_is_deleted(resource, spec):
    """A user can store one that names the graph as its controller. It blocked the graph without end."""
    owner = resources.controller_reference(DYNAMO_GRAPH_DEPLOYMENTS, "graph", "graph-uid")
    graph = stored_graph(component("One"))
    metadata: dict[str, Any] = {
        "uid": "forged",
        "resourceVersion": "1",
        "ownerReferences": [owner],
        "finalizers": ["x/y"],
    }
    world = World(graph, *owned(graph), object_of(resource, "forged", **metadata, **spec))
    await world.reconcile()
    assert world.applier.lines[-1] == f"delete {resource.kind} forged"
    assert world.writer.statuses[0]["state"] == "successful"


async def test_a_planner_component_gets_the_serving_generation():
    """It receives messages of engines in that generation's Dynamo namespace only."""
    graph = stored_graph(component("Plan", "planner"), component("One"))
    world = World(graph, *owned(graph))
    await world.reconcile()
    assert world.applier.lines[-1] == "annotate DynamoGraphDeployment graph"
    assert world.applier.annotations.keys() == {"nvidia.com/current-worker-hash", "nvidia.com/current-worker-hash-v2"}
    annotated = {**graph, "metadata": {**graph["metadata"], "annotations": world.applier.annotations}}
    again = World(annotated, *owned(graph))
    await again.reconcile()
    assert not [line for line in again.applier.lines if line.startswith("annotate")]


async def test_the_status_is_written_on_the_version_that_has_the_new_annotations():
    """A status on the version before them would be rejected, and written only by the next reconcile."""
    graph = stored_graph(component("Plan", "planner"), component("One"))
    world = World(graph, *owned(graph))
    await world.reconcile()
    assert [each["metadata"]["resourceVersion"] for each in world.writer.objects] == ["annotated"]


async def test_a_rejected_annotation_for_the_planner_is_reported_once_and_retried():
    """The graph serves, but its planner receives no message of an engine."""
    graph = stored_graph(component("Plan", "planner"), component("One"))
    refused: Exception = Forbidden(403, "Forbidden", "policy says no")
    reported: list[str] = []
    for refusals in ({"annotate DynamoGraphDeployment graph": refused}, {}):
        for _ in range(2):
            world = World(graph, *owned(graph))
            world.applier.refusals = refusals
            result = await world.reconcile()
            (status,) = world.writer.statuses
            graph = {**graph, "status": status}
            reported += [line for line in world.announced.lines if " Plan: " in line]
            conditions = {each["type"]: each for each in status["conditions"]}
            assert (status["state"], conditions.keys() >= {"PlannerInformed"}) == ("successful", bool(refusals))
            assert result == Result(RETRY_REFUSED if refusals else None)
    (line,) = reported
    assert line.startswith(
        "Warning RefusedByApiServer Plan: the planner among the components cannot know which engines"
    )
    assert line.endswith("policy says no")


@pytest.mark.parametrize("serves_again", [False, True])
async def test_old_workers_make_way_only_if_the_api_server_does_not_see_them_serve(serves_again):
    """While NATS is away, STATE stands still, and the minute without a ready pod ends all the same."""
    graph = stored_graph(component("Decode", "decode"))
    (new,) = of_kind([stored(child) for child in graph_children(graph)], "DynamoComponentDeployment")
    old = copy.deepcopy(new)
    old["metadata"] |= {"name": "graph-decode-old", "uid": "uid-of-graph-decode-old"}
    old["metadata"]["labels"][labels.WORKER_HASH] = "old"
    waiting, failing = workload_of(new, 0), workload_of(old, 0)
    refused = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: gpus"}
    waiting["status"]["conditions"].append(refused)
    world = World(graph, *(child for child in owned(graph) if child["kind"] != "Deployment"), old, waiting, failing)
    if serves_again:
        serving = workload_of(old)
        world.applier.newer.append({**serving, "metadata": {**serving["metadata"], "resourceVersion": "2"}})
    await world.reconcile()
    assert "reread Deployment graph-decode-old" in world.applier.lines
    drained = "scale DynamoComponentDeployment graph-decode-old to 0" in world.applier.lines
    assert drained is not serves_again
