"""ComponentReconciler: what a component deployment renders, and what is reported about it."""

import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from dynamo_pod_builder import events
from dynamo_pod_builder.applier import SetBack
from dynamo_pod_builder.errors import NameTaken, PredecessorRemains
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.reconcilers.component import ComponentInputs, ComponentReconciler, planned
from dynamo_pod_builder.reconcilers.requeue import LACKING_INTERVAL, OBSERVED_WITHIN
from dynamo_pod_builder.render import CheckpointDefaults, RenderConfig
from dynamo_pod_builder.status.component import failure_of
from dynamo_shared.api import objects
from dynamo_shared.api.conditions import timestamp
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.labels import GRAPH_DEPLOYMENT_NAME, RESTORE_TARGET
from dynamo_shared.api.resources import (
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    LEADER_WORKER_SETS,
    SERVICES,
    ObjectKey,
    controller_reference,
)
from dynamo_shared.kube.errors import Forbidden, WebhookUnavailable
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.status_writer import SETTLE

from tests.building.clock import ManualClock
from tests.building.objects import object_of, with_metadata
from tests.building.recorded_offload import RecordedOffload
from tests.unit.announced import Announced
from tests.unit.render.building import CONFIG, component, component_deployments, graph
from tests.unit.written import Written

from .graph.building import NOW, deployment, stored, stored_graph
from .graph.test_carry_out import Keys, Ledger
from .indexed import NoSecrets, indexed

ON = replace(CONFIG, checkpoints=CheckpointDefaults(enabled=True))
AUTO: dict[str, Any] = {"checkpoint": {"mode": "Auto", "identity": {"model": "m", "backendFramework": "vllm"}}}
ITSELF: dict[str, Any] = {"checkpoint": {"enabled": True, "startupPolicy": "WaitForCheckpoint"}}
ENGINE = {"command": ["python3", "-m", "dynamo.vllm"], "args": ["--model", "m"]}


def dcd(*, alone: bool = False, **fields: Any) -> KubeObject:
    (result,) = component_deployments(graph(component("One", **{"replicas": 1, **fields})), ON).values()
    result = stored(result)
    if alone:
        del result["metadata"]["ownerReferences"]
    return result


def owned_by_others(of: KubeObject) -> KubeObject:
    owner = {"apiVersion": "apps.example.com/v1", "kind": "Chat", "name": "chat", "uid": "1", "controller": True}
    return {**of, "metadata": {**of["metadata"], "ownerReferences": [owner]}}


@pytest.mark.parametrize(
    ("of", "replicas", "kinds", "number"),
    [
        pytest.param(dcd(), None, ["Deployment", "Service"], 1, id="its own number"),
        pytest.param(dcd(), 3, ["Deployment", "Service"], 3, id="the adapter's number"),
        pytest.param(dcd(), 0, ["Deployment", "Service"], 0, id="none"),
    ],
)
def test_a_component_renders_its_workload(of, replicas, kinds, number):
    plan = planned(ComponentInputs(of, CONFIG, replicas=replicas))
    assert [each["kind"] for each in plan.children] == kinds
    assert plan.children[0]["spec"]["replicas"] == number
    assert plan.failure is None


def test_a_component_without_a_number_leaves_it_to_others():
    of = dcd(alone=True)
    spec = {name: value for name, value in of["spec"].items() if name != "replicas"}
    assert "replicas" not in planned(ComponentInputs({**of, "spec": spec}, CONFIG)).children[0]["spec"]


@pytest.mark.parametrize(
    ("of", "config", "checkpoints"),
    [
        pytest.param(dcd(alone=True), ON, 0, id="asks for none"),
        pytest.param(dcd(alone=True, experimental=AUTO, main=ENGINE), ON, 1, id="of its identity"),
        pytest.param(owned_by_others(dcd(experimental=AUTO, main=ENGINE)), ON, 1, id="of one that others own"),
        pytest.param(dcd(experimental=AUTO, main=ENGINE), ON, 0, id="its graph has it created"),
        pytest.param(dcd(alone=True, experimental=ITSELF, main=ENGINE), ON, 0, id="of itself, which only graphs take"),
    ],
)
def test_a_checkpoint_is_created_only_if_the_component_requests_one_itself(of, config, checkpoints):
    plan = planned(ComponentInputs(of, config))
    assert (plan.failure, plan.held, len(plan.checkpoints)) == (None, None, checkpoints)


@pytest.mark.parametrize(("running", "replicas"), [(0, 0), (1, 1), (2, 2), (5, 2)])
def test_waiting_for_a_checkpoint_starts_no_pod_and_ends_none(running, replicas):
    waiting = {"checkpoint": {**AUTO["checkpoint"], "startupPolicy": "WaitForCheckpoint"}}
    of = dcd(alone=True, experimental=waiting, main=ENGINE, replicas=2)
    plan = planned(ComponentInputs(of, ON, running=running))
    assert plan.children[0]["spec"]["replicas"] == replicas
    assert (plan.held is None) == (replicas == 2), "with all of its pods, it waits for nothing"
    if plan.held is not None:
        assert plan.held.message.startswith("no further pod starts before DynamoCheckpoint checkpoint-")
        assert plan.held.message.endswith(" is ready"), "it has not failed"


@pytest.mark.parametrize(
    ("spec", "metadata", "reason"),
    [
        ({"type": "nonsense"}, {}, "InvalidSpec"),
        ({"multinode": {"nodeCount": 2}}, {}, "NotDeployable"),
        ({"type": "worker", "experimental": {"gpuMemoryService": {"mode": "IntraPod"}}}, {}, "NotDeployable"),
        ({"type": "frontend", "experimental": AUTO}, {}, "NotDeployable"),
        ({}, {"name": "a" * 64}, "NotDeployable"),
    ],
    ids=["type", "no orchestrator", "no claims of GPUs", "a checkpoint without a model", "too long for a Service"],
)
def test_a_component_that_cannot_be_rendered_is_a_failure(spec, metadata, reason):
    of = with_metadata(dcd(alone=True), **metadata)
    plan = planned(ComponentInputs({**of, "spec": {**of["spec"], **spec}}, ON))
    assert plan.failure is not None
    assert (plan.failure.reason, plan.children) == (reason, ())


def test_a_component_that_lost_the_label_of_its_graph_makes_the_same_pods():
    of = dcd()
    unlabelled = with_metadata(of, labels={k: v for k, v in objects.labels(of).items() if k != GRAPH_DEPLOYMENT_NAME})
    assert planned(ComponentInputs(unlabelled, ON)).children == planned(ComponentInputs(of, ON)).children


@pytest.mark.parametrize(("backend", "accounts"), [("kubernetes", 1), ("etcd", 0)])
def test_a_component_without_a_graph_has_an_account_for_discovery_in_kubernetes(backend, accounts):
    alone = with_metadata(dcd(alone=True), labels={})
    plan = planned(ComponentInputs(alone, replace(ON, discovery_backend=backend)))
    assert [each["kind"] for each in plan.children].count("ServiceAccount") == accounts


class Applier(Ledger):
    async def remove_reference_finalizer(self, _resource: object, obj: KubeObject) -> None:
        self.lines.append(f"let go {objects.name(obj)}")


class World:
    def __init__(self, *observed: KubeObject, config: RenderConfig = CONFIG, **refusals: Exception) -> None:
        self.cache = indexed(*observed)
        self.applier, self.writer, self.announced = Applier(**refusals), Written(), Announced()
        self.keys, self.large = Keys(), RecordedOffload()
        self.reconciler = ComponentReconciler(
            self.cache,
            self.applier,  # type: ignore[arg-type]
            self.writer,
            self.announced,
            lambda: config,
            lambda: NOW,
            NoSecrets(),  # type: ignore[arg-type]
            PodEvents(None),  # type: ignore[arg-type]
            self.large,
            self.keys,  # type: ignore[arg-type]
        )

    async def reconcile(self, of: KubeObject) -> Result:
        return await self.reconciler.reconcile(ObjectKey("ns", objects.name(of)))

    @property
    def available(self) -> tuple[str, str]:
        result = self.writer.statuses[-1]["conditions"][0]
        return result["status"], result["reason"]


ONE = dcd()
NAME = objects.name(ONE)


def workload() -> KubeObject:
    (result,) = (each for each in planned(ComponentInputs(ONE, CONFIG)).children if each["kind"] == "Deployment")
    serving = deployment(NAME)
    return {**serving, "metadata": {**serving["metadata"], **stored(result)["metadata"]}}


async def test_requested_gpus_are_reported():
    of = copy.deepcopy(ONE)
    of["spec"]["podTemplate"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "4"}}
    world = World(of, workload())
    await world.reconcile(of)
    counted = world.writer.statuses[-1]["component"]
    assert (counted["gpusPerEngine"], counted["gpusPerReplica"]) == (4, 4)
    assert world.large.lanes == ["ns"]


async def test_a_missing_component_changes_nothing():
    world = World()
    assert await world.reconcile(ONE) == Result()
    assert (world.applier.lines, world.writer.statuses) == ([], [])


async def test_leftovers_of_a_predecessor_are_awaited_without_a_warning():
    """A user deleted and applied it again, and the garbage collector has not deleted the leftovers yet."""
    owner = {"kind": "DynamoComponentDeployment", "name": NAME, "uid": "old", "controller": True}
    left = {"metadata": {"name": NAME, "ownerReferences": [owner]}}
    refusals: dict[str, Any] = {NAME: PredecessorRemains(SERVICES, left)}
    world = World(ONE, **refusals)
    assert await world.reconcile(ONE) == Result(requeue_after=60.0)
    assert world.available == ("False", "PredecessorRemains")
    assert not world.announced.facts


async def test_a_component_without_a_graph_reports_a_name_that_an_object_without_an_owner_has():
    of, taken = dcd(alone=True), NameTaken(SERVICES, {"metadata": {"name": NAME}})
    refusals: dict[str, Any] = {NAME: taken}
    world = World(of, **refusals)
    await world.reconcile(of)
    assert world.available == ("False", "NameTaken")


@pytest.mark.parametrize(
    ("of", "warnings"),
    [
        pytest.param(dcd(alone=True), ["Warning WebhookUnavailable"], id="alone"),
        pytest.param(dcd(), [], id="its graph reports it"),
    ],
)
async def test_an_unreachable_webhook_is_reported_and_retried_soon(of, warnings):
    refusals: dict[str, Any] = {NAME: WebhookUnavailable(500, "InternalError", "failed calling webhook")}
    world = World(of, **refusals)
    assert await world.reconcile(of) == Result(requeue_after=10.0)
    assert world.available == ("False", "WebhookUnavailable")
    assert failure_of({**of, "status": world.writer.statuses[-1]}) is not None
    assert [" ".join(line.split()[:2]) for line in world.announced.lines] == warnings


@pytest.mark.parametrize(
    ("alone", "owners"), [(True, [NAME]), (False, [])], ids=["alone", "of a graph, which has them made"]
)
async def test_a_multi_node_component_without_a_graph_gets_its_ssh_keys(alone, owners):
    of = wide("dynamo.trtllm", alone=alone)
    of = {**of, "apiVersion": "nvidia.com/v1beta1", "metadata": {**of["metadata"], "name": NAME}}
    world = World(of, config=replace(GROUPS, ssh_secret=Keys.name))
    await world.reconcile(of)
    assert f"ensure LeaderWorkerSet {NAME}" in world.applier.lines
    assert world.keys.owners == owners


async def test_a_component_without_a_graph_gets_its_checkpoint_and_starts_from_it():
    of = dcd(alone=True, experimental=AUTO, main=ENGINE)
    config = replace(CONFIG, checkpoints=CheckpointDefaults(enabled=True, claim="claim", base_path="/checkpoints"))
    world = World(of, config=config)
    await world.reconcile(of)
    (line,) = (each for each in world.applier.lines if each.startswith("create DynamoCheckpoint checkpoint-"))
    assert not restores(world)
    name = line.split()[-1]
    metadata = {"name": name, "namespace": "ns", "uid": "c", "resourceVersion": "1"}
    status = {"phase": "Ready", "jobName": f"checkpoint-job-{name.removeprefix('checkpoint-')}-1"}
    taken = {"metadata": metadata, "spec": {"identity": AUTO["checkpoint"]["identity"]}, "status": status}
    world.cache.put(DYNAMO_CHECKPOINTS, taken)
    await world.reconcile(of)
    assert restores(world)


async def test_a_rejected_object_blocks_no_other():
    """Without its checkpoint, a component that waits for it never started."""
    of, refusal = dcd(alone=True, experimental=AUTO, main=ENGINE), Forbidden(403, "Forbidden", "no right")
    owner = controller_reference(DYNAMO_COMPONENT_DEPLOYMENTS, objects.name(of), objects.uid(of))
    leftover = object_of(SERVICES, "former", uid="former", ownerReferences=[owner])
    world = World(of, leftover, config=ON, **{objects.name(of): refusal})
    assert await world.reconcile(of) == Result(requeue_after=60.0)
    assert world.applier.lines[-1].startswith("create DynamoCheckpoint checkpoint-"), "the leftover stays"
    assert world.available == ("False", "RefusedByApiServer")


def restores(world: World) -> bool:
    """Whether the last written pods start from a checkpoint."""
    written = [each for each in world.applier.written if each["kind"] == "Deployment"]
    return RESTORE_TARGET in written[-1]["spec"]["template"]["metadata"]["labels"]


GROUPS = replace(CONFIG, leader_worker_sets=True)


def wide(program: str = "dynamo.vllm", *, alone: bool = False) -> KubeObject:
    """A component whose replicas span two nodes."""
    engine = {"command": ["python3", "-m", program], "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    result = dcd(alone=alone, main=engine)
    return {**result, "spec": {**result["spec"], "multinode": {"nodeCount": 2}}}


def group_of(of: KubeObject) -> KubeObject:
    """The rendered LeaderWorkerSet of a component."""
    (result,) = (each for each in planned(ComponentInputs(of, GROUPS)).children if each["kind"] == "LeaderWorkerSet")
    return result


async def as_stored(desired: KubeObject) -> KubeObject:
    """What the API server would store of a group: its controller's default."""
    return {**desired, "spec": {**desired["spec"], "networkConfig": {"subdomainPolicy": "Shared"}}}


async def written_group(world: World, of: KubeObject, monkeypatch: pytest.MonkeyPatch) -> KubeObject:
    """The LeaderWorkerSet that a reconcile writes."""
    monkeypatch.setattr(world.applier, "as_stored", as_stored)
    await world.reconcile(of)
    (result,) = (each for each in world.applier.written if each["kind"] == "LeaderWorkerSet")
    return result


async def test_groups_are_written_in_the_form_that_their_controller_needs(monkeypatch):
    written = await written_group(World(wide(), config=GROUPS), wide(), monkeypatch)
    assert written["spec"]["networkConfig"] == {"subdomainPolicy": "UniquePerReplica"}


@pytest.mark.parametrize(
    ("there", "written", "deleted"),
    [
        pytest.param(["-0"], "-0", [], id="the operator's goes on"),
        pytest.param(["", "-0"], "", ["-0"], id="our own goes on"),
        pytest.param([], "", [], id="a new one"),
    ],
)
async def test_groups_of_the_reference_operator_from_1_3_on_keep_their_name_and_their_pods(
    there: list[str], written: str, deleted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names them after the component deployment and 0: with another name all pods would be deleted at once."""
    made = group_of(wide())
    name = objects.name(made)
    sets = [stored({**made, "metadata": {**made["metadata"], "name": f"{name}{each}"}}) for each in there]
    world = World(wide(), *sets, config=GROUPS)
    events_of_pods = PodEvents(EventServer(), ManualClock())  # type: ignore[arg-type]
    world.reconciler = replace(world.reconciler, pod_events=events_of_pods)
    one = await written_group(world, wide(), monkeypatch)
    assert objects.name(one) == f"{name}{written}"
    # No Service of the component has that name, and another policy would replace its pods.
    assert ("networkConfig" in one["spec"]) is (written == "")
    gone = [line.split()[-1] for line in world.applier.lines if line.startswith("delete LeaderWorkerSet")]
    assert gone == [f"{name}{each}" for each in deleted]


class EventServer:
    """An API server with an Event about a StatefulSet."""

    def __init__(self, *events: KubeObject) -> None:
        self.events, self.asked = list(events), list[str]()

    async def list(self, _resource: object, _namespace: str, *, field_selector: str, most: int) -> Any:
        self.asked.append(field_selector)
        return self.events


async def test_rejected_pods_of_groups_are_reported():
    note = (
        'Create Pod g-0-1 in StatefulSet g-0 failed error: pods "g-0-1" is forbidden: exceeded quota: few, '
        "requested: pods=1, used: pods=1, limited: pods=1"
    )
    of, made = wide(), group_of(wide())
    world = World(of, {**stored(made), "status": {"replicas": 1, "updatedReplicas": 1}}, config=GROUPS)
    clock = ManualClock()
    server = EventServer(
        {"reason": "FailedCreate", "note": note, "deprecatedLastTimestamp": "2026-01-01T00:00:02Z"},
        {"reason": "FailedCreate", "note": "an earlier one", "deprecatedLastTimestamp": "2026-01-01T00:00:01Z"},
    )
    world.reconciler = replace(world.reconciler, pod_events=PodEvents(server, clock))  # type: ignore[arg-type]
    assert await world.reconcile(of) == Result(requeue_after=15.0)
    assert world.available == ("False", "QuotaExceeded")
    assert f"pod of {objects.name(of)}: exceeded quota: few" in world.writer.statuses[-1]["conditions"][0]["message"]
    assert server.asked == [f"regarding.kind=StatefulSet,regarding.name={objects.name(of)},type=Warning"]
    # Its graph asks moments later, and gets the same answer.
    assert await world.reconciler.pod_events.explain("ns", [], stored(made), objects.name(of))
    assert len(server.asked) == 1
    clock.now += LACKING_INTERVAL
    # A newer object of the same name: the rejection of its predecessor is not its problem.
    again = {**stored(made, created="2026-01-01T00:00:03Z"), "status": {"replicas": 1}}
    again["metadata"] |= {"uid": "another", "resourceVersion": "2"}
    world.cache.put(LEADER_WORKER_SETS, again)
    await world.reconcile(of)
    assert len(server.asked) == 2
    assert world.available == ("False", "LeaderWorkerSetNotReady")


@pytest.mark.parametrize(
    ("of", "about"), [(ONE, "graph"), (dcd(alone=True), NAME)], ids=["of a graph, which users read", "alone"]
)
async def test_replicas_set_by_another_client_are_reported_on_the_object_that_has_the_number(of, about):
    world = World(stored_graph(component("One")), of, workload())
    world.applier.rivals = {f"Deployment {NAME}": SetBack("kubectl", 3)}
    await world.reconcile(of)
    reported = zip(world.announced.about, (fact.reason for fact in world.announced.facts), strict=True)
    assert next(reported) == (about, "ReplicasSetBack")


async def test_a_component_that_is_being_deleted_only_loses_its_finalizer():
    world = World({**ONE, "metadata": {**ONE["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    await world.reconcile(ONE)
    assert (world.applier.lines, world.writer.statuses) == ([f"let go {NAME}"], [])


async def test_a_component_that_only_state_has_gets_no_children():
    world = World(ONE)
    world.applier.gone = {NAME}
    assert await world.reconcile(ONE) == Result()
    assert (world.applier.lines, world.writer.statuses) == ([], [])


async def test_the_api_server_is_not_asked_for_a_component_of_a_known_graph():
    world = World(stored_graph(component("One")), ONE)
    await world.reconcile(ONE)
    assert world.applier.asked == []
    assert world.writer.statuses


def left_over() -> KubeObject:
    service = {**workload(), "apiVersion": "v1", "kind": "Service"}
    return {**service, "metadata": {**service["metadata"], "name": "left-over"}}


async def test_a_child_that_may_not_be_deleted_is_reported():
    refusal: dict[str, Any] = {"left-over": Forbidden(403, "Forbidden", "it is protected")}
    world = World(ONE, workload(), left_over(), **refusal)
    assert await world.reconcile(ONE) == Result(requeue_after=60.0)
    assert world.available == ("False", "RefusedByApiServer")


async def test_the_workload_is_reported_and_children_that_are_no_longer_desired_are_deleted():
    world = World(ONE, workload(), left_over())
    assert await world.reconcile(ONE) == Result()
    assert world.applier.lines == [f"ensure Deployment {NAME}", f"ensure Service {NAME}", "delete Service left-over"]
    assert world.available == ("True", "DeploymentReady")
    assert world.writer.urgent == [False]


@pytest.mark.parametrize(
    ("status", "observed", "settle"),
    [
        pytest.param({}, 1, SETTLE, id="observed"),
        pytest.param({}, 0, OBSERVED_WITHIN, id="its controller is busy"),
        pytest.param({"observedGeneration": 1}, 0, OBSERVED_WITHIN, id="and nothing else is new"),
        pytest.param({"observedGeneration": 0}, 0, SETTLE, id="a change of the spec was acted on"),
    ],
)
async def test_the_status_waits_until_the_controller_has_observed_the_workload(status, observed, settle):
    there = workload()
    there["status"] = {**there["status"], "observedGeneration": observed}
    world = World({**ONE, "status": status}, there)
    await world.reconcile(ONE)
    assert world.writer.settle == settle


def taken(kind: str, uid: str) -> NameTaken:
    owner = {"kind": kind, "name": "other", "uid": uid, "controller": True}
    return NameTaken(SERVICES, {"metadata": {"name": NAME, "ownerReferences": [owner]}})


@pytest.mark.parametrize(
    ("refusal", "reason", "requeue"),
    [
        pytest.param(Forbidden(403, "Forbidden", "quota"), "RefusedByApiServer", 60.0, id="refused"),
        pytest.param(taken("Node", "n"), "NameTaken", 5.0, id="another's"),
        pytest.param(
            taken("DynamoGraphDeployment", "graph-uid"), "DeploymentReady", None, id="its graph's: that hands it over"
        ),
    ],
)
async def test_rejections_are_reported_and_retried(refusal, reason, requeue):
    world = World(ONE, workload(), **{NAME: refusal})
    assert await world.reconcile(ONE) == Result(requeue_after=requeue)
    assert world.available[1] == reason
    assert world.writer.urgent == [requeue is not None]
    assert [fact.reason for fact in world.announced.facts] == ([reason] if requeue else [])


async def test_a_name_that_stays_taken_is_retried_less_and_less_often():
    since = timestamp(NOW - timedelta(seconds=20))
    refused = {"type": "Available", "status": "False", "reason": "NameTaken", "lastTransitionTime": since}
    of = {**ONE, "status": {"conditions": [refused]}}
    refusals: dict[str, Any] = {NAME: taken("Node", "n")}
    world = World(of, workload(), **refusals)
    assert await world.reconcile(of) == Result(requeue_after=20.0)


ALONE = dcd(alone=True)


def reported(world: World) -> list[tuple[str | None, str]]:
    return [(fact.event, fact.reason) for fact in world.announced.facts]


async def test_events_of_a_component_without_a_graph_are_published_once():
    status: KubeObject = {}
    serving = (workload(),)
    for generation, there, event in (
        (1, (), "progressing"),
        (1, (), None),
        (1, serving, "ready"),
        (1, serving, None),
        (2, serving, "ready"),
    ):
        world = World(with_metadata({**ALONE, "status": status}, generation=generation), *there)
        await world.reconcile(ALONE)
        assert reported(world) == ([(event, "")] if event else [])
        status = world.writer.statuses[-1]
    world.reconciler.gone(ALONE)
    assert reported(world)[1:] == [("deleted", "")]


@pytest.mark.parametrize(
    ("of", "expected"),
    [(ALONE, [("failed", "RefusedByApiServer")]), (ONE, [(None, "RefusedByApiServer")])],
    ids=["alone", "of a graph, which reports it to programs"],
)
async def test_a_failed_event_is_published_only_for_a_component_without_a_graph(of, expected):
    refusals: dict[str, Any] = {NAME: Forbidden(403, "Forbidden", "quota")}
    world = World(of, **refusals)
    await world.reconcile(of)
    assert reported(world) == expected


async def test_no_event_is_published_for_a_deleted_component_of_a_graph():
    world = World(ONE)
    await world.reconcile(ONE)
    world.reconciler.gone(ONE)
    assert reported(world) == []


async def test_a_pod_that_does_not_start_is_a_warning_on_a_component_without_a_graph():
    status = {"conditions": [{"type": "Available", "status": "False", "reason": "ImagePullBackOff", "message": "no"}]}
    fact = events.component_changed(ALONE, status)
    assert (fact.event, fact.reason, fact.type, fact.message) == ("progressing", "ImagePullBackOff", "Warning", "no")
