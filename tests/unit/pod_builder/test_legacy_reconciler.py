"""Kinds from before graphs render a graph of their own, and are ready when it is."""

from typing import Any

import pytest
from dynamo_pod_builder.artifact_images import (
    Waiting,
    answer_of,
    artifact_of,
    lacks_image,
    request_for,
    request_key,
    route,
)
from dynamo_pod_builder.errors import NameTaken
from dynamo_pod_builder.events import legacy_held_up
from dynamo_pod_builder.reconcilers.legacy import LegacyReconciler, graph_of, status_of, successor_of
from dynamo_pod_builder.reconcilers.requeue import RETRY_REFUSED, RETRY_WEBHOOK
from dynamo_pod_builder.status.component import Failure
from dynamo_shared.api import objects
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_NIM_DEPLOYMENTS,
    DYNAMO_NIM_REQUESTS,
    ObjectKey,
)
from dynamo_shared.kube.errors import Invalid, WebhookUnavailable
from dynamo_shared.runtime.facts import Fact
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.cache import ObjectCache
from dynamo_shared.wire.specifications.legacy import LegacyDeploymentData

from tests.building.objects import stored_object, with_metadata
from tests.building.recorded_offload import RecordedOffload
from tests.unit.announced import Announced
from tests.unit.render.building import component_children, graph_children, of_kind
from tests.unit.routed import tasks_of
from tests.unit.written import Written

from .graph.building import NOW, stored
from .graph.test_carry_out import Ledger
from .indexed import indexed, routes_of

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
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "a"}
    return stored_object(NIM, KEY.name, uid="nim-uid", generation=2, annotations=annotations, spec={**SPEC, **spec})


def rendered(**spec: Any) -> list[KubeObject]:
    """All objects that it renders, level by level."""
    graph = stored(graph_of(NIM, nim(**spec)))
    children = graph_children(graph)
    (component,) = of_kind(children, "DynamoComponentDeployment")
    return [*children, *component_children(component)]


def test_the_graph_is_owned_by_the_legacy_object_and_has_its_name() -> None:
    metadata = graph_of(NIM, nim())["metadata"]
    assert (metadata["namespace"], metadata["name"]) == KEY
    assert metadata["annotations"] == {"team": "a"}
    owner = objects.controller_of({"metadata": metadata})
    assert owner is not None
    assert (owner["kind"], owner["uid"]) == ("DynamoNimDeployment", "nim-uid")


def test_a_legacy_object_renders_its_graph_and_workloads() -> None:
    result = rendered(
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
        of_kind(result, kind) for kind in ("Deployment", "Service", "Ingress", "PersistentVolumeClaim")
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
    result = rendered(replicas=3, autoscaling={"enabled": True, "minReplicas": 1, "maxReplicas": 4})
    assert of_kind(result, "DynamoGraphDeploymentScalingAdapter")
    assert "replicas" not in graph_of(NIM, nim(autoscaling={"enabled": True}))["spec"]["components"][0]


@pytest.mark.parametrize("spec", [None, {"dynamoNim": "a"}])
def test_an_invalid_spec_is_rejected(spec: KubeObject | None) -> None:
    with pytest.raises(InvalidManifest, match=r"spec.*required, and missing"):
        graph_of(NIM, {**nim(), "spec": spec})


def graph_with(*conditions: KubeObject, generation: int = 1) -> KubeObject:
    graph = with_metadata(stored(graph_of(NIM, nim())), generation=generation)
    return {**graph, "status": {"state": "successful", "observedGeneration": 1, "conditions": list(conditions)}}


READY = {"type": "Ready", "status": "True", "reason": "AllReady", "message": "all serve"}
NOT_READY = {"type": "Ready", "status": "False", "reason": "NotDeployable", "message": "name the image"}


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (graph_with(READY), ("True", "AllReady", "all serve")),
        (graph_with(NOT_READY), ("False", "NotDeployable", "name the image")),
        (graph_with(), ("False", "GraphPending", "its DynamoGraphDeployment has no status yet")),
        (
            graph_with(READY, generation=2),
            ("False", "GraphPending", "the latest change of its DynamoGraphDeployment has not been acted on yet"),
        ),
    ],
    ids=["ready", "not ready", "new", "ready before its last change"],
)
def test_a_legacy_object_is_ready_when_its_graph_is(graph: KubeObject, said: tuple[str, str, str]) -> None:
    (entry,) = status_of(NIM, nim(), graph, None, NOW)["conditions"]
    assert (entry["status"], entry["reason"], entry["message"]) == said
    assert (entry["type"], entry["observedGeneration"]) == ("Ready", 2)


def pipeline(services: KubeObject | None) -> KubeObject:
    spec = {"dynamoNim": "frontend:v1", "envs": [{"name": "A", "value": "all"}], "services": services}
    return {**nim(), "kind": "DynamoDeployment", "spec": spec}


def test_a_deployment_renders_one_graph_with_its_services() -> None:
    graph = graph_of(DYNAMO_DEPLOYMENTS, pipeline({"Frontend": {"replicas": 1}, "Router": {"replicas": 0}}))
    frontend, router = graph["spec"]["components"]
    assert (frontend["name"], router["name"], router["replicas"]) == ("Frontend", "Router", 0)
    assert all(
        each["podTemplate"]["spec"]["containers"][0]["env"] == [{"name": "A", "value": "all"}]
        for each in (frontend, router)
    )
    assert graph["metadata"]["ownerReferences"][0]["kind"] == "DynamoDeployment"


@pytest.mark.parametrize("services", [None, {}], ids=["none", "empty"])
def test_a_deployment_must_name_its_services(services: KubeObject | None) -> None:
    with pytest.raises(InvalidManifest, match=r"spec\.services: list the services of the artifact"):
        graph_of(DYNAMO_DEPLOYMENTS, pipeline(services))


@pytest.mark.parametrize(
    ("graph", "failure", "state"),
    [
        (graph_with(READY), None, "successful"),
        (graph_with(READY, generation=2), None, "pending"),
        ({**graph_with(), "status": {}}, None, "initializing"),
        (None, Failure("InvalidSpec", "no"), "failed"),
    ],
    ids=["runs", "changed", "new", "refused"],
)
def test_the_state_of_a_deployment_is_that_of_its_graph(
    graph: KubeObject | None, failure: Failure | None, state: str
) -> None:
    status = status_of(DYNAMO_DEPLOYMENTS, pipeline({}), graph, failure, NOW)
    assert status["state"] == state
    assert status["conditions"][0]["status"] == str(state == "successful")


@pytest.mark.parametrize(
    ("written", "artifact", "name"),
    [
        ("frontend:v1", "frontend:v1", "frontend--v1"),
        ("frontend--v1", "frontend:v1", "frontend--v1"),
        ("my--model--v1", "my--model:v1", "my--model--v1"),
        ("frontend", "frontend", "frontend"),
        ("frontend:V_1", "frontend:V_1", "image-21a514e7c91598fa"),
        (None, "", "image-e3b0c44298fc1c14"),
    ],
)
def test_the_image_request_of_an_artifact_has_the_artifacts_name(written: str | None, artifact: str, name: str) -> None:
    result = nim(dynamoNim=written)
    assert (artifact_of(result), request_key(result)) == (artifact, ObjectKey("ns", name))
    request = request_for(NIM, result)
    assert request["spec"] == {"bentoTag": artifact}
    assert request["metadata"]["ownerReferences"][0]["uid"] == "nim-uid"


BARE: KubeObject = {"extraPodSpec": {"nodeSelector": {"zone": "a"}}}


def test_services_without_an_image_run_the_built_one() -> None:
    written = pipeline(
        {"Frontend": {}, "Router": {"extraPodSpec": {"mainContainer": {"image": "own"}}}, "Worker": BARE}
    )
    components = graph_of(DYNAMO_DEPLOYMENTS, written, "built@sha256:1")["spec"]["components"]
    pods = {each["name"]: each["podTemplate"]["spec"] for each in components}
    images = {name: pod["containers"][0]["image"] for name, pod in pods.items()}
    assert images == {"Frontend": "built@sha256:1", "Router": "own", "Worker": "built@sha256:1"}
    assert pods["Worker"]["nodeSelector"] == {"zone": "a"}


def test_a_service_without_a_command_starts_as_its_artifact_defines() -> None:
    file = {"name": "DYNAMO_CONFIG_PATH", "value": "/etc/my config"}
    own = {"extraPodSpec": {"mainContainer": {"command": ["own"]}}}
    written = pipeline({"Frontend": {"envs": [file]}, "Router": own})
    components = graph_of(DYNAMO_DEPLOYMENTS, written, "built")["spec"]["components"]
    frontend, router = (each["podTemplate"]["spec"]["containers"][0] for each in components)
    assert frontend["command"] == ["sh", "-c"]
    assert frontend["args"] == [
        "cd src && uv run dynamo serve --service-name Frontend \"$(sed -n 's/^service: *//p' ../bento.yaml)\" -f '/etc/my config'"
    ]
    assert (router["command"], "args" in router) == (["own"], False)


def test_no_image_is_requested_if_all_services_name_one() -> None:
    own = {"extraPodSpec": {"mainContainer": {"image": "own"}}}
    assert not lacks_image(successor_of(DYNAMO_DEPLOYMENTS, pipeline({"Frontend": own})))
    assert lacks_image(successor_of(DYNAMO_DEPLOYMENTS, pipeline({"Frontend": own, "Worker": BARE})))


def request(phase: str = "", *, reason: str = "Built", message: str = "said", **fields: Any) -> KubeObject:
    """The DynamoNimRequest of frontend:v1 in a phase."""
    made = request_for(DYNAMO_DEPLOYMENTS, pipeline({}))
    made["metadata"] |= {"uid": "request-uid", "generation": 1, "resourceVersion": "1"}
    if phase:
        ready = {"type": "Ready", "status": str(phase == "Ready"), "reason": reason, "message": message}
        made["status"] = {"phase": phase, "observedGeneration": 1, "conditions": [ready], **fields}
    return made


IMAGE = "registry/yatai-bentos:yatai.frontend.v1@sha256:1"
WAITS = "waiting for the image of frontend:v1"
REQUEST = "DynamoNimRequest frontend--v1"
UNPROCESSED = f"no image-builder has processed {REQUEST} yet"
OF_OTHER = f"{REQUEST} requests the image of other:v1, not of frontend:v1"
OWN_IMAGE = "name an image for each service in extraPodSpec.mainContainer.image"


@pytest.mark.parametrize(
    ("observed", "answer"),
    [
        (None, Waiting("ImagePending", f"{WAITS}: DynamoNimRequest frontend--v1 is being created")),
        (request(), Waiting("ImagePending", f"{WAITS}: {UNPROCESSED}; install one, or {OWN_IMAGE}")),
        (request("Pending", message="the store is away"), Waiting("ImagePending", f"{WAITS}: the store is away")),
        (request("Building", message="Job j"), Waiting("ImageBuilding", f"{WAITS}, which is being built: Job j")),
        (request("Ready", imageRef=IMAGE), IMAGE),
        (
            request("Failed", reason="PushFailed", message="unauthorized"),
            Failure(
                "ImageFailed", f"the image of frontend:v1 is not built: {REQUEST} reports PushFailed: unauthorized"
            ),
        ),
        (
            {**request("Ready", imageRef=IMAGE), "spec": {"bentoTag": "other:v1"}},
            Failure("NameTaken", f"{OF_OTHER}: delete it, or {OWN_IMAGE}"),
        ),
    ],
    ids=["no request", "unanswered", "pending", "building", "ready", "failed", "of another artifact"],
)
def test_the_answer_of_an_image_request(observed: KubeObject | None, answer: object) -> None:
    assert answer_of("frontend:v1", "frontend--v1", observed) == answer


def test_an_answer_for_an_earlier_spec_is_ignored() -> None:
    result = request("Ready", imageRef=IMAGE)
    result["metadata"]["generation"] = 2
    assert isinstance(answer_of("frontend:v1", "frontend--v1", result), Waiting)


class World:
    def __init__(self, *observed: KubeObject, of: Any = NIM, **refusals: Exception) -> None:
        self.cache, self.applier, self.writer = indexed(*observed), Ledger(**refusals), Written()
        self.announced = Announced()
        applier: Any = self.applier
        large = RecordedOffload()
        self.reconciler = LegacyReconciler(of, self.cache, applier, self.writer, self.announced, lambda: NOW, large)

    async def reconcile(self) -> tuple[list[str], list[KubeObject]]:
        self.result = await self.reconciler.reconcile(KEY)
        return self.applier.lines, self.writer.statuses


WITHOUT_IMAGE = pipeline({"Frontend": {"replicas": 1}})


@pytest.mark.parametrize(
    ("observed", "lines", "state", "reason"),
    [
        ((), ["create DynamoNimRequest frontend--v1"], "pending", "ImagePending"),
        ((request("Building"),), [], "pending", "ImageBuilding"),
        (
            (request("Ready", imageRef=IMAGE),),
            ["ensure DynamoGraphDeployment worker-1"],
            "initializing",
            "GraphPending",
        ),
        ((request("Failed"),), [], "failed", "ImageFailed"),
    ],
    ids=["new", "building", "built", "failed"],
)
async def test_a_deployment_runs_the_image_of_its_artifact_when_it_is_built(
    observed: tuple[KubeObject, ...], lines: list[str], state: str, reason: str
) -> None:
    world = World(WITHOUT_IMAGE, *observed, of=DYNAMO_DEPLOYMENTS)
    written, (status,) = await world.reconcile()
    assert (written, status["state"], status["conditions"][0]["reason"]) == (lines, state, reason)
    assert [fact.reason for fact in world.announced.facts] == ([] if reason == "GraphPending" else [reason])


async def test_a_deleted_deployment_requests_no_image() -> None:
    graph = stored(graph_of(DYNAMO_DEPLOYMENTS, WITHOUT_IMAGE, IMAGE))
    world = World(WITHOUT_IMAGE, graph, of=DYNAMO_DEPLOYMENTS)
    world.applier.gone.add(KEY.name)
    assert (await world.reconcile())[0] == []


async def test_a_changed_artifact_keeps_the_running_image_until_the_new_one_is_built() -> None:
    runs = stored(graph_of(DYNAMO_DEPLOYMENTS, WITHOUT_IMAGE, IMAGE))
    changed = {**WITHOUT_IMAGE, "spec": {**WITHOUT_IMAGE["spec"], "dynamoNim": "frontend:v2"}}
    world = World(changed, runs, request("Ready", imageRef=IMAGE), of=DYNAMO_DEPLOYMENTS)
    assert (await world.reconcile())[0] == ["create DynamoNimRequest frontend--v2"]


def test_an_image_request_reconciles_all_objects_that_run_its_image() -> None:
    other = {**nim(dynamoNim="other--v1"), "metadata": {**nim()["metadata"], "name": "other"}}
    cache = indexed(nim(), WITHOUT_IMAGE, other)
    key = ObjectKey("ns", "frontend--v1")
    woken = tasks_of([route(cache)], DYNAMO_NIM_REQUESTS, key, None, {})
    assert set(woken) == {Task.of(DYNAMO_NIM_DEPLOYMENTS, KEY), Task.of(DYNAMO_DEPLOYMENTS, KEY)}
    assert tasks_of([route(cache)], DYNAMO_GRAPH_DEPLOYMENTS, key, None, {}) == []


async def test_the_graph_is_written_and_reported() -> None:
    lines, (status,) = await World(nim()).reconcile()
    assert lines == ["ensure DynamoGraphDeployment worker-1"]
    assert status["conditions"][0]["reason"] == "GraphPending"


@pytest.mark.parametrize("observed", [(), (with_metadata(nim(), deletionTimestamp="now"),)], ids=["gone", "going"])
async def test_a_deleted_legacy_object_writes_nothing(observed: tuple[KubeObject, ...]) -> None:
    assert await World(*observed).reconcile() == ([], [])


async def test_a_legacy_object_that_the_api_server_does_not_have_gets_no_graph() -> None:
    world = World(nim())
    world.applier.gone.add(KEY.name)
    assert await world.reconcile() == ([], [])


THEIRS = stored({**graph_of(NIM, nim()), "metadata": {"name": KEY.name, "namespace": KEY.namespace}})
NO_WEBHOOK = WebhookUnavailable(500, "InternalError", "failed calling webhook")


@pytest.mark.parametrize(
    ("refusal", "reason", "again"),
    [
        pytest.param(NameTaken(DYNAMO_GRAPH_DEPLOYMENTS, THEIRS), "NameTaken", RETRY_REFUSED, id="another owner"),
        pytest.param(NO_WEBHOOK, "WebhookUnavailable", RETRY_WEBHOOK, id="admission is away"),
    ],
)
async def test_a_rejected_graph_is_reported_and_retried_soon(refusal: Exception, reason: str, again: float) -> None:
    world = World(nim(), THEIRS, **{KEY.name: refusal})
    _, (status,) = await world.reconcile()
    assert (status["conditions"][0]["status"], status["conditions"][0]["reason"]) == ("False", reason)
    assert world.writer.urgent == [True]
    assert world.result.requeue_after == again


async def test_programs_get_the_message_of_the_condition_which_is_limited_and_has_no_secrets() -> None:
    world = World(nim(), THEIRS, **{KEY.name: Invalid(422, "Invalid", f"password=hunter2 {'x' * 2_000_000}")})
    _, (status,) = await world.reconcile()
    (fact,) = world.announced.facts
    assert isinstance(fact.data, LegacyDeploymentData)
    assert fact.data.message == status["conditions"][0]["message"]
    assert "hunter2" not in fact.data.message


def test_waiting_is_only_an_event_and_a_failure_is_also_a_cloud_event() -> None:
    waits = legacy_held_up(WITHOUT_IMAGE, "frontend:v1", Waiting("ImageBuilding", "soon"))
    assert waits == Fact("ImageBuilding", "Normal", "Wait", "soon")
    failed = legacy_held_up(WITHOUT_IMAGE, "frontend:v1", Failure("ImageFailed", "no"))
    metadata = WITHOUT_IMAGE["metadata"]
    data = LegacyDeploymentData(
        name=metadata["name"],
        namespace=metadata["namespace"],
        artifact="frontend:v1",
        reason="ImageFailed",
        message="no",
        generation=str(metadata["generation"]),
    )
    assert failed == Fact("ImageFailed", "Warning", "Reconcile", "no", "failed", data, "ImageFailed")


def woken(resource: Any, old: KubeObject | None, new: KubeObject | None) -> list[Task]:
    return tasks_of(routes_of(ObjectCache()), resource, KEY, old, new)


def test_a_legacy_object_is_reconciled_when_it_or_its_graph_changes() -> None:
    of_it = Task.of(DYNAMO_NIM_DEPLOYMENTS, KEY)
    assert woken(NIM, None, nim()) == [of_it]
    assert of_it in woken(DYNAMO_GRAPH_DEPLOYMENTS, graph_with(), None)
    assert woken(DYNAMO_GRAPH_DEPLOYMENTS, graph_with(), graph_with(READY)) == [of_it]
    without = graph_with(READY)
    del without["metadata"]["ownerReferences"]
    assert of_it not in woken(DYNAMO_GRAPH_DEPLOYMENTS, None, without)


def test_its_own_status_reconciles_nothing() -> None:
    assert woken(NIM, nim(), {**nim(), "status": {"conditions": [READY]}}) == []
