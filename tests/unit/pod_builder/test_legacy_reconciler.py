"""Kinds before graphs become a graph of their own, through the renderer of graphs, and are ready as that is."""

from __future__ import annotations

from typing import Any

import pytest
from dynamo_pod_builder.errors import NameTaken
from dynamo_pod_builder.reconcilers.legacy import LegacyReconciler, graph_of, status_of
from dynamo_pod_builder.routing import BuilderConcern, BuilderTask, tasks_for
from dynamo_pod_builder.status.component import Failure
from dynamo_shared.aio import Offload
from dynamo_shared.api import objects, resources
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_NIM_DEPLOYMENTS, ObjectKey
from dynamo_shared.bus.cache import ObjectCache

from tests.unit.render.building import component_children, graph_children, of_kind

from .graph.building import NOW, stored
from .graph.test_carry_out import Ledger
from .test_component_reconciler import Writer

NIM = DYNAMO_NIM_DEPLOYMENTS
KEY = ObjectKey("ns", "worker-1")
SPEC: KubeObject = {
    "dynamoNamespace": "dynamo",
    "dynamoNim": "frontend--v1",
    "dynamoTag": "graphs.disagg:Worker",
    "serviceName": "Worker",
    "extraPodSpec": {"mainContainer": {"image": "img:1"}},
}
CLAIM = {"create": True, "size": "1Gi", "storageClass": "fast", "volumeAccessMode": "ReadWriteOnce", "mountPoint": "/m"}
PROBE = {"httpGet": {"path": "/healthz", "port": 3000}}


def nim(**spec: Any) -> KubeObject:
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoNimDeployment",
        "metadata": {
            "name": KEY.name,
            "namespace": KEY.namespace,
            "uid": "nim-uid",
            "generation": 2,
            "resourceVersion": "1",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "a"},
        },
        "spec": {**SPEC, **spec},
    }


def rendered(**spec: Any) -> list[KubeObject]:
    """All objects that it becomes, level after level."""
    graph = stored(graph_of(NIM, nim(**spec)))
    children = graph_children(graph)
    (component,) = of_kind(children, "DynamoComponentDeployment")
    return [*children, *component_children(component)]


def test_the_graph_belongs_to_it_and_has_its_name() -> None:
    metadata = graph_of(NIM, nim())["metadata"]
    assert (metadata["namespace"], metadata["name"]) == KEY
    assert metadata["annotations"] == {"team": "a"}
    owner = objects.controller_of({"metadata": metadata})
    assert owner is not None
    assert (owner["kind"], owner["uid"]) == ("DynamoNimDeployment", "nim-uid")


def test_what_it_becomes() -> None:
    found = rendered(
        serviceName="Frontend",
        replicas=2,
        envs=[{"name": "A", "value": "b"}],
        envFromSecret="keys",
        labels={"l": "1"},
        annotations={"a": "1"},
        resources={"limits": {"gpu": "1"}},
        livenessProbe=PROBE,
        readinessProbe=PROBE,
        ingress={"enabled": True, "host": "chat", "hostSuffix": "example.com"},
        pvc=CLAIM,
    )
    (deployment,), (service,), (ingress,), (claim,) = (
        of_kind(found, kind) for kind in ("Deployment", "Service", "Ingress", "PersistentVolumeClaim")
    )
    template = deployment["spec"]["template"]
    (main,) = template["spec"]["containers"]
    assert deployment["spec"]["replicas"] == 2
    assert main["args"] == ["cd src && uv run dynamo serve --service-name Frontend graphs.disagg:Worker"]
    assert (
        main["env"].count({"name": "A", "value": "b"})
        == main["env"].count({"name": "DYN_NAMESPACE", "value": "dynamo"})
        == 1
    )
    assert main["envFrom"] == [{"secretRef": {"name": "keys"}}]
    assert main["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert (main["livenessProbe"], main["readinessProbe"]) == (PROBE, PROBE)
    assert {"name": "frontend", "mountPath": "/m"} in main["volumeMounts"]
    assert template["metadata"]["labels"].items() >= {"l": "1"}.items()
    assert template["metadata"]["annotations"].items() >= {"a": "1"}.items()
    assert service["spec"]["ports"][0]["port"] == 8000
    assert ingress["spec"]["rules"][0]["host"] == "chat.example.com"
    assert claim["spec"]["storageClassName"] == "fast"


def test_an_autoscaler_owns_its_replicas() -> None:
    found = rendered(replicas=3, autoscaling={"enabled": True, "minReplicas": 1, "maxReplicas": 4})
    assert of_kind(found, "DynamoGraphDeploymentScalingAdapter")
    assert "replicas" not in graph_of(NIM, nim(autoscaling={"enabled": True}))["spec"]["components"][0]


@pytest.mark.parametrize("spec", [None, {"dynamoNim": "a"}])
def test_what_is_not_valid_is_refused(spec: KubeObject | None) -> None:
    with pytest.raises(InvalidManifest, match=r"spec.*required, and missing"):
        graph_of(NIM, {**nim(), "spec": spec})


def graph_with(*conditions: KubeObject) -> KubeObject:
    return {**stored(graph_of(NIM, nim())), "status": {"conditions": list(conditions)}}


READY = {"type": "Ready", "status": "True", "reason": "AllReady", "message": "all serve"}
NOT_READY = {"type": "Ready", "status": "False", "reason": "NotDeployable", "message": "name the image"}


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (graph_with(READY), ("True", "AllReady", "all serve")),
        (graph_with(NOT_READY), ("False", "NotDeployable", "name the image")),
        (graph_with(), ("False", "GraphPending", "the status of its DynamoGraphDeployment is not written yet")),
    ],
    ids=["ready", "not ready", "new"],
)
def test_it_is_ready_as_its_graph_is(graph: KubeObject, said: tuple[str, str, str]) -> None:
    (entry,) = status_of(NIM, nim(), graph, None, NOW)["conditions"]
    assert (entry["status"], entry["reason"], entry["message"]) == said
    assert (entry["type"], entry["observedGeneration"]) == ("Ready", 2)


def pipeline(services: KubeObject | None) -> KubeObject:
    spec = {"dynamoNim": "frontend:v1", "envs": [{"name": "A", "value": "all"}], "services": services}
    return {**nim(), "kind": "DynamoDeployment", "spec": spec}


def test_a_deployment_becomes_one_graph_of_its_services() -> None:
    graph = graph_of(DYNAMO_DEPLOYMENTS, pipeline({"Frontend": {"replicas": 1}, "Router": {"replicas": 0}}))
    frontend, router = graph["spec"]["components"]
    assert (frontend["name"], router["name"], router["replicas"]) == ("Frontend", "Router", 0)
    assert all(
        each["podTemplate"]["spec"]["containers"][0]["env"] == [{"name": "A", "value": "all"}]
        for each in (frontend, router)
    )
    assert graph["metadata"]["ownerReferences"][0]["kind"] == "DynamoDeployment"


@pytest.mark.parametrize("services", [None, {}], ids=["none", "empty"])
def test_a_deployment_names_its_services(services: KubeObject | None) -> None:
    with pytest.raises(InvalidManifest, match=r"spec\.services: name the services of the artifact"):
        graph_of(DYNAMO_DEPLOYMENTS, pipeline(services))


@pytest.mark.parametrize(
    ("graph", "failure", "state"),
    [
        ({"status": {"state": "successful", "conditions": [READY]}}, None, "successful"),
        ({"status": {}}, None, "initializing"),
        (None, Failure("InvalidSpec", "no"), "failed"),
    ],
    ids=["runs", "new", "refused"],
)
def test_the_state_of_a_deployment_is_its_graphs(graph: KubeObject | None, failure: Failure | None, state: str) -> None:
    status = status_of(DYNAMO_DEPLOYMENTS, pipeline({}), graph, failure, NOW)
    assert status["state"] == state
    assert status["conditions"][0]["status"] == str(state == "successful")


class World:
    def __init__(self, *found: KubeObject, **refusals: Exception) -> None:
        self.cache, self.applier, self.writer = ObjectCache(), Ledger(**refusals), Writer()
        for each in found:
            self.cache.put(resources.of(each), each)
        applier: Any = self.applier
        writer: Any = self.writer
        self.reconciler = LegacyReconciler(NIM, self.cache, applier, writer, lambda: NOW, Offload(above=0, at_once=1))

    async def reconcile(self) -> tuple[list[str], list[KubeObject]]:
        self.result = await self.reconciler.reconcile(KEY)
        return self.applier.lines, self.writer.statuses


async def test_its_graph_is_written_and_reported() -> None:
    lines, (status,) = await World(nim()).reconcile()
    assert lines == ["ensure DynamoGraphDeployment worker-1"]
    assert status["conditions"][0]["reason"] == "GraphPending"


@pytest.mark.parametrize(
    "found", [(), ({**nim(), "metadata": {**nim()["metadata"], "deletionTimestamp": "now"}},)], ids=["gone", "going"]
)
async def test_without_it_nothing_is_written(found: tuple[KubeObject, ...]) -> None:
    assert await World(*found).reconcile() == ([], [])


async def test_one_that_the_api_server_does_not_have_gets_no_graph() -> None:
    world = World(nim())
    world.applier.gone.add(KEY.name)
    assert await world.reconcile() == ([], [])


async def test_a_graph_of_somebody_elses_stays_and_is_reported() -> None:
    theirs = stored({**graph_of(NIM, nim()), "metadata": {"name": KEY.name, "namespace": KEY.namespace}})
    world = World(nim(), theirs, **{KEY.name: NameTaken(DYNAMO_GRAPH_DEPLOYMENTS, theirs)})
    _, (status,) = await world.reconcile()
    assert (status["conditions"][0]["status"], status["conditions"][0]["reason"]) == ("False", "NameTaken")
    assert world.writer.urgent
    assert world.result.requeue_after is not None


def woken(resource: Any, old: KubeObject | None, new: KubeObject | None) -> list[BuilderTask]:
    return list(tasks_for(resource, KEY, old, new, lambda _: ""))


def test_it_is_reconciled_when_it_or_its_graph_changes() -> None:
    of_it = BuilderTask(BuilderConcern.LEGACY_SERVICE, KEY)
    assert woken(NIM, None, nim()) == [of_it]
    assert of_it in woken(DYNAMO_GRAPH_DEPLOYMENTS, graph_with(), None)
    assert woken(DYNAMO_GRAPH_DEPLOYMENTS, graph_with(), graph_with(READY)) == [of_it]
    without = graph_with(READY)
    del without["metadata"]["ownerReferences"]
    assert of_it not in woken(DYNAMO_GRAPH_DEPLOYMENTS, None, without)


def test_its_own_status_wakes_nobody() -> None:
    assert woken(NIM, nim(), {**nim(), "status": {"conditions": [READY]}}) == []
