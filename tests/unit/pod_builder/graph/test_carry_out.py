"""The writes of a plan, their order, and the state that is known afterwards."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder.applier import ChildChange, Ensured, SetBack
from dynamo_pod_builder.errors import NameTaken
from dynamo_pod_builder.reconcilers.graph.carry_out import CarryOutResult, Executor
from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.graph.plan import Plan, Rollout
from dynamo_pod_builder.status.component import Failure
from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.kube.errors import Forbidden, Unavailable, WebhookUnavailable

from tests.unit.announced import Announced

from .building import clique, deployment, desiring, observed, stored

OWNER = {"kind": "DynamoGraphDeployment", "name": "graph", "uid": "graph-uid", "controller": True}


class Ledger:
    """An Applier that only records its calls, and answers like the API server."""

    def __init__(self, **refusals: Exception) -> None:
        self.lines: list[str] = []
        self.refusals = refusals
        self.families: list[Collection[str]] = []
        self.written: list[KubeObject] = []
        self.gone: set[str] = set()
        """Names of owners that the API server does not have."""
        self.asked: list[str] = []
        self.rivals: dict[str, SetBack] = {}
        """What another client gave to objects, by their kinds and names."""

    async def exists(self, owner: KubeObject) -> bool:
        name = owner["metadata"]["name"]
        self.asked.append(name)
        return name not in self.gone

    async def as_stored(self, desired: KubeObject) -> KubeObject:
        return desired

    async def ensure(self, child: KubeObject, family: Collection[str] = ()) -> Ensured:
        name = child["metadata"]["name"]
        self._note(f"ensure {child['kind']} {name}", name)
        self.written.append(child)
        self.families.append(family)
        if (rival := self.rivals.get(f"{child['kind']} {name}")) is not None:
            return Ensured(ChildChange.UPDATED, stored(child), rival)
        return Ensured(ChildChange.CREATED, stored(child))

    async def patch_replicas(self, _resource: object, obj: KubeObject, replicas: int) -> Ensured:
        name = obj["metadata"]["name"]
        self._note(f"scale {obj['kind']} {name} to {replicas}", name)
        changed = {**obj, "spec": {**obj["spec"], "replicas": replicas}}
        return Ensured(ChildChange.UPDATED, {**changed, "metadata": {**obj["metadata"], "generation": 2}})

    async def scale(self, resource: object, obj: KubeObject, replicas: int) -> Ensured:
        if obj["spec"]["replicas"] == replicas:
            return Ensured(ChildChange.UNCHANGED, obj)
        ensured = await self.patch_replicas(resource, obj, replicas)
        return replace(ensured, set_back=self.rivals.get(f"{obj['kind']} {obj['metadata']['name']}"))

    async def annotate(self, _resource: object, obj: KubeObject, annotations: dict[str, str | None]) -> KubeObject:
        line = f"annotate {obj['kind']} {obj['metadata']['name']}"
        self._note(line, line)
        self.annotations = annotations
        return {**obj, "metadata": {**obj["metadata"], "annotations": annotations, "resourceVersion": "annotated"}}

    async def delete(self, _resource: object, obj: KubeObject) -> None:
        self._note(f"delete {obj['kind']} {obj['metadata']['name']}", obj["metadata"]["name"])

    async def remove(self, _owner: object, obj: KubeObject) -> bool:
        await self.delete(None, obj)
        return True

    async def create_once(self, _resource: object, obj: KubeObject) -> bool:
        self._note(f"create {obj['kind']} {obj['metadata']['name']}", obj["metadata"]["name"])
        return True

    def _note(self, line: str, name: str) -> None:
        if name in self.refusals:
            raise self.refusals[name]
        self.lines.append(line)


class Keys:
    name = "mpi-keys"

    def __init__(self) -> None:
        self.owners: list[str] = []

    async def ensure(self, owner: KubeObject) -> None:
        self.owners.append(owner["metadata"]["name"])


def child(kind: str, name: str, api_version: str = "nvidia.com/v1beta1", **fields: Any) -> KubeObject:
    labels = {"nvidia.com/dynamo-component": name}
    metadata = {"name": name, "namespace": "ns", "ownerReferences": [OWNER], "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}, **fields}


FRONT, WORKER, OLD = (child("DynamoComponentDeployment", name) for name in ("front", "worker", "old"))
ACCOUNT, CONFIG_MAP = child("ServiceAccount", "account", "v1"), child("ConfigMap", "map", "v1")
CLAIMS = child("ResourceClaimTemplate", "claims", "resource.k8s.io/v1")
VOLUME = child("PersistentVolumeClaim", "models", "v1")
CHECKPOINT = child("DynamoCheckpoint", "checkpoint", "nvidia.com/v1alpha1")
CLIQUE = {"name": "a", "labels": {"nvidia.com/dynamo-component": "A"}, "spec": {"replicas": 2, "podSpec": {}}}
EMPTY = {**CLIQUE, "spec": {"replicas": 0, "podSpec": {}}}
SET, EMPTY_SET = (
    child("PodCliqueSet", "graph", "grove.io/v1alpha1", spec={"template": {"cliques": [each]}})
    for each in (CLIQUE, EMPTY)
)


ENSURE_FRONT, ENSURE_SET = "ensure DynamoComponentDeployment front", "ensure PodCliqueSet graph"


async def carried_out(plan: Plan, world: Observed, ledger: Ledger) -> tuple[CarryOutResult, list[str]]:
    announced = Announced()
    keys = Keys()
    outcome = await Executor(ledger, keys, announced).carry_out(plan, world)  # type: ignore[arg-type]
    assert not keys.owners, "no component needs SSH keys"
    return outcome, announced.lines


A_CLIQUE, BOTH = clique("graph-0-a"), clique("graph-0-a", 2)
STARTED = Rollout(drain=[(stored(OLD), 1)], kept=["uid-of-old"], components=["w"], started=True)
ENDED = Rollout(components=["w"], completed=True)
TO_GROVE = desiring(SET, outgoing=[stored(FRONT)])
#: A plan, the observed objects, and the writes in order. `Created` and `Deleted` Events name the objects of these
#: writes.
WRITES = {
    "not rendered: nothing": (Plan(failure=Failure("InvalidSpec", "x")), observed(), []),
    "what pods are made by comes first": (
        desiring(FRONT, CONFIG_MAP, CLAIMS, ACCOUNT),
        observed(),
        [
            *("ensure ResourceClaimTemplate claims", "ensure ServiceAccount account"),
            *("ensure DynamoComponentDeployment front", "ensure ConfigMap map"),
        ],
    ),
    "leftovers that serve are scaled and kept, others are deleted": (
        desiring(FRONT, rollout=STARTED),
        observed(stored(OLD), stored(CONFIG_MAP)),
        [ENSURE_FRONT, "scale DynamoComponentDeployment old to 1", "delete ConfigMap map"],
    ),
    "a volume claim no longer named stays": (desiring(FRONT), observed(stored(FRONT), stored(VOLUME)), [ENSURE_FRONT]),
    "checkpoints come last": (
        desiring(FRONT, rollout=ENDED, checkpoints=[CHECKPOINT]),
        observed(stored(OLD)),
        [ENSURE_FRONT, "delete DynamoComponentDeployment old", "create DynamoCheckpoint checkpoint"],
    ),
    "Grove leaves replicas to others": (
        desiring(SET),
        observed(stored(SET), cliques=[A_CLIQUE]),
        [ENSURE_SET, "scale PodClique graph-0-a to 2"],
    ),
    "what has no replicas is scaled once it is there": (
        desiring(EMPTY_SET),
        observed(stored(SET), cliques=[BOTH]),
        [ENSURE_SET, "scale PodClique graph-0-a to 0"],
    ),
    "the other way stays until this one serves": (
        TO_GROVE,
        observed(stored(SET), stored(FRONT), cliques=[clique("graph-0-a", 2, ready=1)]),
        [ENSURE_SET],
    ),
    "and goes then": (
        TO_GROVE,
        observed(stored(SET), stored(FRONT), cliques=[BOTH]),
        [ENSURE_SET, "delete DynamoComponentDeployment front"],
    ),
}


@pytest.mark.parametrize(("plan", "world", "writes"), WRITES.values(), ids=WRITES)
async def test_writes_and_events(plan, world, writes):
    ledger = Ledger()
    outcome, lines = await carried_out(plan, world, ledger)
    assert ledger.lines == writes
    assert lines == [line for step in ("ensure", "delete", "create") if (line := reported(step, writes))]
    assert outcome.failure == plan.failure
    assert all(set(family) == {each["metadata"]["uid"] for each in plan.outgoing} for family in ledger.families)


def reported(step: str, writes: list[str]) -> str:
    """The Event that reports all writes of a step."""
    done = [line.removeprefix(f"{step} ") for line in writes if line.startswith(step)]
    verb = "Deleted Delete: Deleted" if step == "delete" else "Created Create: Created"
    return f"Normal {verb} {', '.join(done)}" if done else ""


def former(child: KubeObject) -> KubeObject:
    """The object before its deletion: still observed, but no longer stored."""
    there = stored(child)
    return {**there, "metadata": {**there["metadata"], "uid": "former"}}


FORMER = {
    "set": (TO_GROVE, observed(former(SET), stored(FRONT), cliques=[BOTH]), [ENSURE_SET]),
    "set without replicas": (
        desiring(EMPTY_SET, outgoing=[stored(FRONT)]),
        observed(former(SET), stored(FRONT), cliques=[BOTH]),
        [ENSURE_SET],
    ),
    "component deployment": (
        desiring(FRONT, outgoing=[stored(SET)]),
        observed(former(FRONT), stored(SET), workloads={"front": deployment("front")}),
        [ENSURE_FRONT],
    ),
}


@pytest.mark.parametrize(("plan", "world", "writes"), FORMER.values(), ids=FORMER)
async def test_workloads_of_a_deleted_object_do_not_serve_for_its_successor_of_the_same_name(plan, world, writes):
    ledger = Ledger()
    await carried_out(plan, world, ledger)
    assert ledger.lines == writes, "the other way is all that serves"


SERVICE = child("Service", "model", "v1")
SERVICE["metadata"]["labels"] = {"nvidia.com/dynamo-base-model-hash": "x"}


def taken(kind: str) -> NameTaken:
    owner = {"kind": kind, "name": "other", "uid": "other", "controller": True}
    return NameTaken(resources.SERVICES, {"metadata": {"name": "front", "ownerReferences": [owner]}})


ROUTE, FORMER_ROUTE = (child("HTTPRoute", name, "gateway.networking.k8s.io/v1") for name in ("route", "former-route"))


async def test_a_rejected_route_stops_neither_a_roll_out_nor_checkpoints():
    """Old workers kept their GPUs, and components that waited for their checkpoint never started."""
    ledger = Ledger(route=Forbidden(403, "Forbidden", "no right"))
    plan = desiring(FRONT, ROUTE, rollout=STARTED, checkpoints=[CHECKPOINT])
    drained = child("DynamoComponentDeployment", "drained")
    outcome, _ = await carried_out(plan, observed(stored(OLD), stored(drained), stored(FORMER_ROUTE)), ledger)
    assert ledger.lines == [
        ENSURE_FRONT,
        "scale DynamoComponentDeployment old to 1",
        "delete DynamoComponentDeployment drained",
        "create DynamoCheckpoint checkpoint",
    ], "the former route stays until the new one exists"
    assert (outcome.failure, outcome.complete) == (Failure("RefusedByApiServer", "403 Forbidden: no right"), True)


async def test_a_rejected_change_of_old_workers_does_not_block_the_others():
    others = child("DynamoComponentDeployment", "others")
    ledger = Ledger(old=Forbidden(403, "Forbidden", "no right"))
    rollout = replace(STARTED, drain=[(stored(OLD), 1), (stored(others), 1)], kept=["uid-of-old", "uid-of-others"])
    outcome, _ = await carried_out(desiring(FRONT, rollout=rollout), observed(stored(OLD), stored(others)), ledger)
    assert ledger.lines == [ENSURE_FRONT, "scale DynamoComponentDeployment others to 1"]
    assert outcome.failure is not None


async def test_a_rejection_ends_the_writes_and_earlier_writes_are_reported():
    ledger = Ledger(front=Forbidden(403, "Forbidden", "quota"))
    plan = desiring(ACCOUNT, FRONT, CONFIG_MAP, checkpoints=[CHECKPOINT])
    outcome, lines = await carried_out(plan, observed(stored(OLD)), ledger)
    assert ledger.lines == ["ensure ServiceAccount account", "ensure ConfigMap map"], "nothing is deleted, nor begun"
    assert outcome.failure == Failure("RefusedByApiServer", "403 Forbidden: quota")
    assert not outcome.complete
    assert lines == ["Normal Created Create: Created ServiceAccount account, ConfigMap map"]


async def test_replicas_set_by_another_client_are_reported_on_the_graph():
    ledger = Ledger()
    ledger.rivals = {"DynamoComponentDeployment front": SetBack("kubectl", 3)}
    scaled = {**FRONT, "spec": {"replicas": 1}}
    _, lines = await carried_out(desiring(scaled), observed(stored(scaled)), ledger)
    assert [line.partition(":")[0] for line in lines] == ["Normal Updated Update", "Warning ReplicasSetBack Scale"]


async def test_replicas_of_cliques_set_by_another_client_are_reported():
    ledger = Ledger()
    ledger.rivals = {"PodClique graph-0-a": SetBack("keda-operator", 1)}
    _, (_, line) = await carried_out(desiring(SET), observed(stored(SET), cliques=[clique("graph-0-a")]), ledger)
    assert line.startswith(
        "Warning ReplicasSetBack Scale: keda-operator scaled PodClique graph-0-a to 1 replica; the platform reset it to 2, "
    )
    assert line.endswith(
        "set `scalingAdapter: {}` for component A, and scale DynamoGraphDeploymentScalingAdapter graph-a"
    )


async def test_pods_on_grove_get_their_ssh_keys():
    pod = {"volumes": [{"name": "mpi-keys", "secret": {"secretName": "mpi-keys"}}]}
    cliques = [{**CLIQUE, "spec": {"replicas": 2, "podSpec": pod}}]
    pod_clique_set, keys = {**SET, "spec": {"template": {"cliques": cliques}}}, Keys()
    await Executor(Ledger(), keys, Announced()).carry_out(desiring(pod_clique_set), observed())  # type: ignore[arg-type]
    assert keys.owners == ["graph"]


async def test_a_taken_name_is_a_failure():
    outcome, _ = await carried_out(desiring(FRONT), observed(), Ledger(front=taken("Node")))
    assert outcome.failure is not None
    assert outcome.failure.reason == "NameTaken"


async def test_an_error_that_a_retry_may_fix_is_raised_after_the_events_are_published():
    announced, ledger = Announced(), Ledger(front=Unavailable(503, "", "away"))
    with pytest.raises(Unavailable):
        await Executor(ledger, Keys(), announced).carry_out(desiring(ACCOUNT, FRONT), observed())  # type: ignore[arg-type]
    assert announced.lines == ["Normal Created Create: Created ServiceAccount account"]


async def test_an_object_that_may_not_be_deleted_does_not_block_others():
    world = observed(stored(OLD), stored(CONFIG_MAP), stored(ACCOUNT))
    outcome, lines = await carried_out(
        desiring(FRONT), world, Ledger(map=Forbidden(403, "Forbidden", "it is protected"))
    )
    assert outcome.failure == Failure("RefusedByApiServer", "403 Forbidden: it is protected")
    assert lines[-1] == "Normal Deleted Delete: Deleted DynamoComponentDeployment old, ServiceAccount account"


async def test_an_unreachable_webhook_is_reported_and_does_not_block_other_objects():
    away = WebhookUnavailable(500, "InternalError", 'failed calling webhook "a.b": EOF')
    ledger = Ledger(front=away)
    outcome, _ = await carried_out(desiring(FRONT, WORKER), observed(), ledger)
    assert outcome.failure == Failure("WebhookUnavailable", str(away))
    assert "ensure DynamoComponentDeployment worker" in ledger.lines


async def test_a_rejected_object_does_not_hide_an_error_that_a_retry_may_fix():
    ledger = Ledger(front=Forbidden(403, "Forbidden", "quota"), worker=Unavailable(503, "", "away"))
    with pytest.raises(Unavailable):
        await Executor(ledger, Keys(), Announced()).carry_out(desiring(FRONT, WORKER), observed())  # type: ignore[arg-type]


async def test_all_rejected_objects_are_reported():
    ledger = Ledger(front=Forbidden(403, "Forbidden", "quota"), worker=Forbidden(403, "Forbidden", "policy"))
    outcome, _ = await carried_out(desiring(FRONT, WORKER), observed(), ledger)
    assert outcome.failure == Failure("RefusedByApiServer", "403 Forbidden: quota; 403 Forbidden: policy")


async def test_a_rejected_checkpoint_is_a_failure_but_the_graph_is_written():
    ledger = Ledger(checkpoint=Forbidden(403, "Forbidden", "no"))
    outcome, _ = await carried_out(desiring(FRONT, checkpoints=[CHECKPOINT]), observed(), ledger)
    assert (outcome.failure, outcome.complete) == (Failure("RefusedByApiServer", "403 Forbidden: no"), True)


async def test_a_rejected_checkpoint_does_not_block_another():
    ledger = Ledger(checkpoint=Forbidden(403, "Forbidden", "no"))
    other = child("DynamoCheckpoint", "other", "nvidia.com/v1alpha1")
    _, lines = await carried_out(desiring(FRONT, checkpoints=[CHECKPOINT, other]), observed(), ledger)
    assert lines[-1] == "Normal Created Create: Created DynamoCheckpoint other"


async def test_written_objects_are_observed_afterwards():
    ledger = Ledger()
    world = observed(stored(OLD), stored(CONFIG_MAP), stored(SET), cliques=[clique("graph-0-a")])
    outcome, _ = await carried_out(desiring(SET, FRONT), world, ledger)
    after = outcome.observed
    assert list(after.components) == ["front"]
    assert [each["metadata"]["name"] for each in after.sets] == ["graph"]
    (scaled,) = after.cliques.values()
    assert (scaled["spec"]["replicas"], scaled["metadata"]["generation"]) == (2, 2)
    assert list(world.components) == ["old"], "what was observed stays as it is"


@pytest.mark.parametrize(
    ("metadata", "stays"),
    [({}, False), ({"finalizers": ["x/y"]}, True), ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, True)],
)
async def test_a_deleted_object_with_finalizers_stays_observed(metadata, stays):
    old = stored(OLD)
    old["metadata"] |= metadata
    outcome, _ = await carried_out(desiring(FRONT), observed(old), Ledger())
    assert ("old" in outcome.observed.components) == stays


async def test_an_object_that_is_being_deleted_is_not_reported_as_deleted_again():
    """A finalizer of another program may hold it for hours, and each status of a workload reconciles the graph."""
    old = stored(OLD)
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ledger = Ledger()
    _, lines = await carried_out(desiring(FRONT), observed(stored(FRONT), old), ledger)
    assert ledger.lines == ["ensure DynamoComponentDeployment front"]
    assert lines == ["Normal Created Create: Created DynamoComponentDeployment front"]


def test_an_object_that_was_handed_over_is_no_longer_a_child():
    service = stored(child("Service", "front", "v1"))
    handed = {**service, "metadata": {**service["metadata"], "ownerReferences": [{**OWNER, "uid": "component"}]}}
    world = observed(service)
    assert list(world.after([service]).children) == [("services", "front")]
    assert list(world.after([handed]).children) == []
