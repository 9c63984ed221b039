"""One reconcile of a graph's adapters: its reports, and that a failure of one adapter does not affect the others."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from dynamo_scaler.adapters.status import ConditionState
from dynamo_scaler.adapters.writers import WriterConflicts
from dynamo_scaler.autoscaling.autoscalers import AutoscalerState
from dynamo_scaler.metrics import AdapterMetrics
from dynamo_scaler.reconcilers.adapters import RETRY_REFUSED, AdapterReconciler
from dynamo_shared.api.conditions import find
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    PODS,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound, Unavailable
from dynamo_shared.runtime.settings.scaler import Scaler
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.state.table import ObjectTable
from prometheus_client import CollectorRegistry

from tests.building.clock import ManualClock
from tests.unit.announced import Announced
from tests.unit.scaler.harness import HarnessKube, ScalerHarness

ADAPTERS = DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
GRAPH = ObjectKey("team", "g")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class StatusKube(HarnessKube):
    """`failure` is raised by patches of graphs (`is_late`: after they were carried out), `refuses_apply` by applies.

    `meanwhile` happens during patches of graphs.
    """

    meanwhile: Callable[[], object] = staticmethod(lambda: None)
    failure: KubeError | None = None
    is_late = False
    refuses_apply: KubeError | None = None
    refused_status = ""

    async def json_patch(self, resource: Resource, key: ObjectKey, operations: Sequence[KubeObject]) -> KubeObject:
        self.meanwhile()
        if self.failure is not None:
            if self.is_late:
                await super().json_patch(resource, key, operations)
            raise self.failure
        return await super().json_patch(resource, key, operations)

    async def apply_status(self, resource: Resource, obj: KubeObject) -> KubeObject:
        if obj["metadata"]["name"] == self.refused_status:
            raise Invalid(422, "Invalid", "no such status")
        return await super().apply_status(resource, obj)

    async def apply(self, resource: Resource, obj: KubeObject) -> KubeObject:
        if self.refuses_apply is not None:
            raise self.refuses_apply
        return await super().apply(resource, obj)


class GivenAutoscalers:
    """A state of each adapter's autoscaler that the test sets."""

    def __init__(self) -> None:
        self.states: dict[str, AutoscalerState | KubeError] = {}

    async def ensure(self, _: KubeObject, adapter: KubeObject) -> AutoscalerState:
        state = self.states.get(adapter["metadata"]["name"], AutoscalerState())
        if isinstance(state, KubeError):
            raise state
        return state


class ReconcilerHarness:
    """A reconciler without servers; its graph `g` has an adapter for each component."""

    def __init__(self, **replicas: int) -> None:
        self.kube = StatusKube()
        self.kube.acts = False
        self.harness = ScalerHarness(Scaler(), self.kube)
        self.harness.graph("g", **replicas)  # type: ignore[arg-type]
        self.announced = Announced()
        self.autoscalers = GivenAutoscalers()
        self.clock = ManualClock()
        self.reconciler = AdapterReconciler(
            kube=self.kube,  # type: ignore[arg-type]
            cache=self.harness.cache,
            statuses=StatusWriter(self.kube, self.harness.cache, self.clock),  # type: ignore[arg-type]
            announcer=self.announced,
            metrics=AdapterMetrics(CollectorRegistry()),
            autoscalers=self.autoscalers,  # type: ignore[arg-type]
            turns=WriterConflicts(self.clock),
            now=lambda: NOW + timedelta(seconds=self.clock.now),
        )

    def change(self, name: str, how: Callable[[KubeObject], Any]) -> None:
        """A user changes an adapter, and the cache receives the change."""
        adapter = self.adapter(name)
        how(adapter)
        self.kube.put(adapter)
        self.harness.read()

    def adapter(self, name: str) -> KubeObject:
        return self.kube.objects[ADAPTERS.id, ObjectKey("team", name)]

    async def reconcile(self, outcome: AbstractContextManager[object] | None = None) -> float | None:
        """Reconcile once, and again when the delay that it returned is over. Returns the last delay."""
        wait = None
        for _ in range(3):
            with outcome or nullcontext():
                wait = (await self.reconciler.reconcile(GRAPH)).requeue_after
            self.clock.now += 1.0
        return wait

    def condition(self, name: str, type_: str) -> tuple[str, str] | None:
        """Status and reason."""
        entry = find(self.adapter(name).get("status", {}).get("conditions", ()), type_)
        return (entry["status"], entry["reason"]) if entry is not None else None


@pytest.mark.parametrize("message", ["a policy says no", "the policy of password=hunter2hunter2 says no"])
async def test_a_lasting_problem_is_announced_once(message: str) -> None:
    """Even if the status repeats it in other words, because the status leaves out what may be a secret."""
    harness = ReconcilerHarness(Decode=1)
    refused = ConditionState(False, "RefusedByApiServer", message)
    harness.autoscalers.states["g-decode"] = AutoscalerState(refused, 30.0)
    for replicas in (2, 3, 4):
        harness.change("g-decode", lambda adapter, n=replicas: adapter["spec"].update(replicas=n))  # type: ignore[misc]
        assert await harness.reconcile() == 30.0
    assert [fact.reason for fact in harness.announced.facts] == ["Scaled", "RefusedByApiServer", "Scaled", "Scaled"]


@pytest.mark.parametrize("state_is_behind", [False, True])
async def test_a_write_whose_answer_is_lost_is_reported_once_it_is_observed(state_is_behind: bool) -> None:
    harness = ReconcilerHarness(Decode=1)
    harness.change("g-decode", lambda adapter: adapter["spec"].update(replicas=4))
    harness.kube.failure, harness.kube.is_late = Unavailable(0, "Timeout", "no response within 10 s"), True
    with pytest.raises(Unavailable):
        await harness.reconcile()
    assert (harness.harness.replicas("g"), harness.announced.facts) == ({"Decode": 4}, [])
    harness.kube.failure = None
    if not state_is_behind:
        harness.harness.read()
    await harness.reconcile()
    assert [fact.reason for fact in harness.announced.facts] == ["Scaled"]
    assert "lastScaleTime" in harness.adapter("g-decode")["status"]


@pytest.mark.parametrize("answer_is_lost", [False, True])
async def test_nothing_is_kept_of_an_adapter_that_is_deleted_while_its_number_is_written(answer_is_lost: bool) -> None:
    """What was kept after its deletion stayed."""
    harness = ReconcilerHarness(Decode=1)
    harness.change("g-decode", lambda adapter: adapter["spec"].update(replicas=4))
    if answer_is_lost:
        harness.kube.failure = Unavailable(0, "Timeout", "no response within 10 s")
    key, uid = ObjectKey("team", "g-decode"), harness.adapter("g-decode")["metadata"]["uid"]
    harness.kube.meanwhile = lambda: harness.harness.cache.remove(ADAPTERS, key, uid)
    with suppress(Unavailable):
        await harness.reconcile()
    kept = harness.reconciler
    assert (kept._last, kept._unreported, kept._unanswered) == ({}, {}, {})


async def test_each_adapter_reports_the_problem_of_its_own_replicas() -> None:
    harness = ReconcilerHarness(Decode=4, Prefill=4)
    harness.harness.on_grove("g", Decode=3, Prefill=4)
    for name in ("g-decode", "g-prefill"):
        harness.change(name, lambda adapter: adapter["spec"].update(replicas=1))
    await harness.reconcile()
    said = [
        (find(harness.adapter(name)["status"]["conditions"], "Synced") or {})["message"]
        for name in ("g-decode", "g-prefill")
    ]
    assert ["3 of minAvailable" in said[0], "4 of minAvailable" in said[1]] == [True, True]


async def test_more_replicas_than_a_cluster_supports_do_not_reach_the_graph() -> None:
    harness = ReconcilerHarness(Decode=1, Prefill=1)
    harness.change("g-decode", lambda adapter: adapter["spec"].update(replicas=10_000_000))
    harness.change("g-prefill", lambda adapter: adapter["spec"].update(replicas=2))
    assert await harness.reconcile() == RETRY_REFUSED
    graph = harness.kube.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, GRAPH]
    assert {each["name"]: each["replicas"] for each in graph["spec"]["components"]} == {"Decode": 1, "Prefill": 2}
    entries = [find(harness.adapter(name)["status"]["conditions"], "Synced") for name in ("g-decode", "g-prefill")]
    assert [entry["message"] for entry in entries if entry] == [
        "cannot set 10000000 replicas of Decode in the graph: 10000000 replicas are more than the 150000 pods that "
        "Kubernetes supports in a cluster: write a smaller number",
        "the graph has the adapter's 2 replicas of Prefill",
    ]
    harness.change("g-decode", lambda adapter: adapter["spec"].update(replicas=20_000_000))
    await harness.reconcile()
    assert [fact.reason for fact in harness.announced.facts].count("UpdateFailed") == 2, "another number is news"


def pod(name: str, phase: str = "Running", component: str = "Decode", **conditions: Any) -> KubeObject:
    own = {labels.GRAPH_DEPLOYMENT_NAME: "g", labels.COMPONENT: component, labels.ROLE: "leader"}
    status = {"phase": phase, "conditions": [conditions] if conditions else []}
    return {**PODS.type_meta, "metadata": {"name": name, "namespace": "team", "labels": own}, "status": status}


def reads_of_pods(harness: ReconcilerHarness, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the pods that are read from now on."""
    read: list[str] = []
    get = ObjectTable.get

    def recorded(table: ObjectTable, key: ObjectKey) -> KubeObject | None:
        if (obj := get(table, key)) is not None and obj["kind"] == PODS.kind:
            read.append(key.name)
        return obj

    monkeypatch.setattr(ObjectTable, "get", recorded)
    return read


async def test_pods_of_replicas_with_one_pod_are_counted_without_reading_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph may have ten thousand pods: reading them took most of a second, in which nothing else ran."""
    harness = ReconcilerHarness(Decode=1)
    for name, phase in (("a", "Running"), ("b", "Pending"), ("c", "Failed")):
        harness.kube.put(pod(name, phase))
    harness.harness.read()
    read = reads_of_pods(harness, monkeypatch)
    await harness.reconcile()
    assert (harness.adapter("g-decode")["status"]["replicas"], read) == (2, [])


async def test_pods_of_replicas_with_several_pods_are_read_once_for_all_adapters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Users may create thousands of adapters."""
    harness = ReconcilerHarness(Decode=1)
    harness.harness.change("g", lambda graph: graph["spec"]["components"][0].update(multinode={"nodeCount": 2}))
    harness.kube.put(pod("a"))
    for number in range(3):
        other = {**harness.adapter("g-decode"), "metadata": {"name": f"other-{number}", "namespace": "team"}}
        harness.kube.put(other)
    harness.harness.read()
    read = reads_of_pods(harness, monkeypatch)
    await harness.reconciler.reconcile(GRAPH)
    assert (harness.adapter("g-decode")["status"]["replicas"], read) == (1, ["a"])
    assert [harness.condition(f"other-{number}", "Synced") for number in range(3)] == [("False", "NotOwner")] * 3


async def test_a_decision_reads_only_the_first_pod_that_waits_for_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ReconcilerHarness(Decode=1, Prefill=1)
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no GPU"}
    for name, conditions in (("runs", {}), ("w2", waits), ("w1", waits), ("gated", {**waits, "reason": "Gated"})):
        harness.kube.put(pod(name, **conditions))
    harness.kube.put(pod("w0", "Failed", **waits))
    harness.harness.read()
    read = reads_of_pods(harness, monkeypatch)
    answer = await harness.harness.scaling.carry_out(harness.harness.ask("g", Prefill=2))
    assert "2 pods wait for a node (w1, w2): no GPU" in answer.message
    assert read == ["w1"]


async def test_a_problem_that_returns_is_announced_again() -> None:
    harness = ReconcilerHarness(Decode=1)
    refused = ConditionState(False, "RefusedByApiServer", "a policy says no")
    harness.autoscalers.states["g-decode"] = AutoscalerState(refused, 30.0)
    await harness.reconcile()
    harness.autoscalers.states["g-decode"] = AutoscalerState(
        ConditionState(True, "HorizontalPodAutoscaler", "it is there")
    )
    await harness.reconcile()
    assert harness.condition("g-decode", "Autoscaling") == ("True", "HorizontalPodAutoscaler")
    harness.autoscalers.states["g-decode"] = AutoscalerState(refused, 30.0)
    await harness.reconcile()
    assert [fact.reason for fact in harness.announced.facts] == ["RefusedByApiServer", "RefusedByApiServer"]


async def test_a_message_that_another_program_rewords_is_announced_once() -> None:
    """An HPA names another pod each time that it fails for the same reason."""
    harness = ReconcilerHarness(Decode=1)
    for pod in ("a", "b", "c"):
        said = ConditionState(False, "FailedGetResourceMetric", f"pod {pod} has no metrics", by_other=True)
        harness.autoscalers.states["g-decode"] = AutoscalerState(said)
        await harness.reconcile()
        assert "pod " + pod in str(harness.adapter("g-decode")["status"])
    assert [fact.message for fact in harness.announced.facts] == ["pod a has no metrics"]
    said = ConditionState(False, "FailedGetScale", "pod c has no metrics", by_other=True)
    harness.autoscalers.states["g-decode"] = AutoscalerState(said)
    await harness.reconcile()
    assert [fact.reason for fact in harness.announced.facts] == ["FailedGetResourceMetric", "FailedGetScale"]


async def test_a_failing_autoscaler_does_not_block_other_adapters() -> None:
    """If a webhook for autoscalers is away, the API server answers with an error that may pass."""
    harness = ReconcilerHarness(Decode=1, Prefill=1)
    away = Unavailable(500, "InternalError", "failed calling webhook")
    harness.autoscalers.states["g-decode"] = away
    harness.autoscalers.states["g-prefill"] = AutoscalerState(
        ConditionState(True, "HorizontalPodAutoscaler", "it is there")
    )
    harness.change("g-decode", lambda adapter: adapter["spec"].update(replicas=2))
    await harness.reconcile(pytest.raises(Unavailable))
    assert harness.condition("g-prefill", "Autoscaling") == ("True", "HorizontalPodAutoscaler")
    assert harness.condition("g-decode", "Autoscaling") == ("False", "RefusedByApiServer")
    assert harness.condition("g-decode", "Synced") == ("True", "Synced")
    assert "lastScaleTime" in harness.adapter("g-decode")["status"]
    # An error that a retry may fix says nothing about the autoscaler.
    harness.autoscalers.states["g-decode"] = AutoscalerState(ConditionState(True, "ScaledObject", "it is there"))
    await harness.reconcile()
    harness.autoscalers.states["g-decode"] = Conflict(409, "Conflict", "it has changed")
    with pytest.raises(Conflict):
        await harness.reconciler.reconcile(GRAPH)
    assert harness.condition("g-decode", "Autoscaling") == ("True", "ScaledObject")


async def test_a_rejected_status_does_not_block_the_status_of_other_adapters() -> None:
    harness = ReconcilerHarness(Decode=1, Prefill=1)
    harness.kube.refused_status = "g-decode"
    with pytest.raises(Invalid):
        await harness.reconciler.reconcile(GRAPH)
    assert harness.condition("g-prefill", "Synced") == ("True", "Synced")


async def test_a_number_reaches_a_graph_that_a_user_changes_meanwhile() -> None:
    it = ReconcilerHarness(Decode=1, Prefill=1)
    it.change("g-decode", lambda adapter: adapter["spec"].update(replicas=2))

    def reorder() -> None:
        it.kube.meanwhile = lambda: None
        it.harness.change("g", lambda graph: graph["spec"]["components"].reverse())

    it.kube.meanwhile = reorder
    await it.reconciler.reconcile(GRAPH)
    graph = it.kube.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, GRAPH]
    assert [(each["name"], each["replicas"]) for each in graph["spec"]["components"]] == [("Prefill", 1), ("Decode", 2)]


async def test_an_unreachable_api_server_ends_the_reconcile_at_once() -> None:
    harness = ReconcilerHarness(Decode=1, Prefill=1)
    harness.autoscalers.states["g-decode"] = Unavailable(0, "TimedOut", "no answer")
    with pytest.raises(Unavailable):
        await harness.reconciler.reconcile(GRAPH)
    assert "status" not in harness.adapter("g-prefill")


async def test_a_failed_reconcile_leaves_no_request_running() -> None:
    """The reconciler reads all adapters at once to know their writers. After an error it retries, and reads again."""
    harness = ReconcilerHarness(Decode=1, Prefill=1)
    for name in ("g-decode", "g-prefill"):
        harness.change(name, lambda adapter: adapter["spec"].update(replicas=2))
    ended: list[str] = []

    async def get(resource: Resource, key: ObjectKey) -> KubeObject:
        if key.name == "g-decode":
            raise Unavailable(0, "TimedOut", "no answer")
        if key.name == "g-prefill":
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            ended.append(key.name)
        return await HarnessKube.get(harness.kube, resource, key)

    harness.kube.get = get  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        await harness.reconciler.reconcile(GRAPH)
    assert len(ended) == 2, "its writer is read, and its number applied as it is"


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (Unavailable(500, "InternalError", "failed calling webhook"), pytest.raises(Unavailable)),
        (Forbidden(403, "Forbidden", "a policy says no"), nullcontext()),
    ],
)
async def test_a_graph_update_that_is_refused_or_that_the_webhook_cannot_check_is_reported(
    failure: KubeError, outcome: AbstractContextManager[object]
) -> None:
    """If the webhook of graphs is away, pods still follow their adapters, and autoscalers must read correct numbers."""
    harness = ReconcilerHarness(Decode=1, Prefill=1)
    harness.kube.failure = failure
    harness.change("g-decode", lambda adapter: adapter["spec"].update(replicas=2))
    await harness.reconcile(outcome)
    assert harness.condition("g-decode", "Synced") == ("False", "UpdateFailed")
    assert harness.condition("g-prefill", "Synced") == ("True", "Synced")
    assert harness.adapter("g-decode")["status"]["selector"]
    assert harness.harness.replicas("g")["Decode"] == 2
    assert [fact.reason for fact in harness.announced.facts] == ["UpdateFailed"]
    harness.kube.failure = None
    await harness.reconcile()
    assert harness.condition("g-decode", "Synced") == ("True", "Synced")


@pytest.mark.parametrize("error", [Forbidden(403, "Forbidden", "a policy says no"), Invalid(422, "Invalid", "no")])
async def test_replicas_reach_the_graph_even_if_their_writer_cannot_be_tracked(error: KubeError) -> None:
    """The platform applies the adapter only to know the next writer by name."""
    harness = ReconcilerHarness(Decode=1)
    harness.kube.refuses_apply = error
    harness.change("g-decode", lambda adapter: adapter["spec"].update(replicas=2))
    await harness.reconcile()
    assert harness.condition("g-decode", "Synced") == ("True", "Synced")
    assert [fact.message for fact in harness.announced.facts] == ["Scaled component Decode from 1 to 2 replicas"]


def leave_out(graph: KubeObject) -> None:
    """Apply a manifest without replicas."""
    graph["spec"]["components"][0].pop("replicas")


async def test_a_scaling_missing_from_the_status_is_still_reported_after_the_next_change() -> None:
    it = ReconcilerHarness(Decode=1)
    it.change("g-decode", lambda adapter: adapter["spec"].update(replicas=2))
    it.kube.refused_status = "g-decode"
    with pytest.raises(Invalid):
        await it.reconciler.reconcile(GRAPH)
    it.kube.refused_status = ""
    it.harness.change("g", leave_out)
    await it.reconcile()
    assert "lastScaleTime" in it.adapter("g-decode")["status"]


async def test_a_graph_without_replicas_gets_its_adapters_number_and_reports_no_scaling() -> None:
    """A user often applies a manifest without replicas: the platform restores the adapter's number; nothing scales."""
    it = ReconcilerHarness(Decode=1)
    it.change("g-decode", lambda adapter: adapter["spec"].update(replicas=2))
    await it.reconciler.reconcile(GRAPH)
    scaled_at = it.adapter("g-decode")["status"]["lastScaleTime"]

    it.harness.change("g", leave_out)
    await it.reconcile()
    graph = it.kube.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, GRAPH]
    assert graph["spec"]["components"][0]["replicas"] == 2
    assert it.adapter("g-decode")["status"]["lastScaleTime"] == scaled_at
    it.harness.change("g", leave_out)
    it.change("g-decode", lambda adapter: adapter["spec"].update(replicas=5))
    await it.reconcile()
    assert [fact.message for fact in it.announced.facts] == [
        "Scaled component Decode from 1 to 2 replicas",
        "Scaled component Decode from 2 to 5 replicas",
    ]


async def test_a_graph_that_is_being_deleted_is_not_reported_as_scaled() -> None:
    harness = ReconcilerHarness(Decode=1)
    harness.harness.change("g", lambda graph: graph["metadata"].update(deletionTimestamp="2026-03-01T12:00:00Z"))
    harness.change("g-decode", lambda adapter: adapter["spec"].update(replicas=2))
    await harness.reconcile()
    assert harness.condition("g-decode", "Synced") != ("True", "Synced")


async def test_a_graph_that_is_deleted_while_it_is_written_is_not_reported_as_scaled() -> None:
    it = ReconcilerHarness(Decode=1)
    it.change("g-decode", lambda adapter: adapter["spec"].update(replicas=2))
    it.kube.failure = NotFound(404, "NotFound", "gone")
    await it.reconcile()
    assert it.condition("g-decode", "Synced") is None


@pytest.mark.parametrize("followed", [False, True], ids=["gone", "deleted and created again"])
async def test_an_adapter_whose_graph_is_deleted_is_not_reported(followed: bool) -> None:
    """The garbage collector deletes the adapter soon. Users, and subscribers to failures, need no report."""
    it = ReconcilerHarness(Decode=1)
    await it.reconcile()
    graph = it.harness.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, GRAPH)
    assert graph is not None
    it.harness.cache.remove(DYNAMO_GRAPH_DEPLOYMENTS, GRAPH, graph["metadata"]["uid"])
    if followed:
        it.harness.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, {**graph, "metadata": {**graph["metadata"], "uid": "another"}})
    before = len(it.announced.facts)
    await it.reconcile()
    assert it.announced.facts[before:] == []


async def test_an_adapter_that_its_graph_no_longer_requests_is_not_reported() -> None:
    """The pod-builder deletes it. It is not an adapter that the platform did not create."""
    it = ReconcilerHarness(Decode=1)
    await it.reconcile()
    it.harness.change("g", lambda graph: graph["spec"]["components"][0].pop("scalingAdapter"))
    before = len(it.announced.facts)
    await it.reconcile()
    assert it.announced.facts[before:] == []
    it.change("g-decode", lambda adapter: adapter["metadata"].pop("ownerReferences"))
    await it.reconcile()
    assert [fact.reason for fact in it.announced.facts[before:]] == ["NotOwner"]


async def test_two_writers_that_undo_each_other_are_named() -> None:
    it = ReconcilerHarness(Decode=1)

    def scale(adapter: KubeObject, writer: str, replicas: int) -> None:
        owned = {"manager": writer, "time": "2026-03-01T12:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
        adapter["metadata"]["managedFields"] = [owned]
        adapter["spec"]["replicas"] = replicas

    for writer, replicas in (("hpa", 3), ("keda", 1), ("hpa", 3)):
        it.change("g-decode", partial(scale, writer=writer, replicas=replicas))
        await it.reconcile()
    assert it.condition("g-decode", "Conflict") == ("True", "SeveralWriters")
    assert it.announced.facts[-1].message.startswith("hpa and keda alternately set")
    counted = (it.reconciler.metrics.scalings, it.reconciler.metrics.conflicts)
    assert [sample.value for each in counted for one in each.collect() for sample in one.samples[::2]] == [2, 1, 1]


@pytest.mark.parametrize(
    ("graph", "component", "reason"),
    [("g", "Decode", "NotOwner"), ("g", "Other", "ComponentNotFound"), ("missing", "Decode", "GraphNotFound")],
)
async def test_an_adapter_that_the_platform_did_not_create_scales_nothing_and_reports_why(
    graph: str, component: str, reason: str
) -> None:
    it = ReconcilerHarness(Decode=1)
    metadata = {"name": "mine", "namespace": "team", "uid": "m"}
    spec = {"dgdRef": {"name": graph, "componentName": component}, "replicas": 3}
    it.kube.put({**ADAPTERS.type_meta, "metadata": metadata, "spec": spec})
    it.harness.read()
    it.kube.meanwhile = partial(pytest.fail, "no number differs")
    await it.reconciler.reconcile(ObjectKey("team", graph))
    assert it.condition("mine", "Synced") == ("False", reason)
    assert it.kube.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, GRAPH]["spec"]["components"][0]["replicas"] == 1
