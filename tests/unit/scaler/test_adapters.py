"""The status of an adapter, the writer of its number, and the patch of its graph."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dynamo_scaler.adapters import mirror, pods
from dynamo_scaler.adapters.status import (
    SHOWN_FOR,
    AdapterObservation,
    ConditionState,
    adapter_status,
    conflict_ends_in,
)
from dynamo_scaler.adapters.writers import UNKNOWN_WRITER, WINDOW, WriterConflicts, of_adapter, of_component
from dynamo_scaler.reconcilers.adapters import index
from dynamo_scaler.routing import SETTLE, SETTLE_PODS, routes
from dynamo_shared.api.adapted import Difference
from dynamo_shared.api.conditions import find
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    PODS,
    SCALED_OBJECTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime.debounce import Debounce
from dynamo_shared.state import ObjectCache

from tests.building.clock import ManualClock
from tests.building.objects import with_metadata
from tests.unit.routed import routed

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
COUNTED: dict[str, Any] = {"status": {"components": {"W": {"replicas": 7}}}}
GRAPH = {"metadata": {"name": "g", "namespace": "n"}, **COUNTED}
OK = ConditionState(True, "Synced", "fine")
TROUBLE = ConditionState(True, "GraphChanged", "a and b")


def pod(phase: str = "Running", *, leaving: bool = False, **object_labels: str) -> dict[str, Any]:
    results = {labels.GRAPH_DEPLOYMENT_NAME: "g", labels.COMPONENT: "W", **object_labels}
    metadata = {"name": "p", "namespace": "n", "labels": results, **({"deletionTimestamp": "now"} if leaving else {})}
    return {"metadata": metadata, "status": {"phase": phase}}


def pod_of_clique(name: str) -> dict[str, Any]:
    results = pod()
    results["metadata"]["labels"][labels.GROVE_POD_CLIQUE] = name
    return results


def adapter(**more: Any) -> dict[str, Any]:
    spec = {"dgdRef": {"name": "g", "componentName": "W"}, "replicas": 3}
    return {"metadata": {"name": "g-w", "namespace": "n", "uid": "u", "generation": 2}, "spec": spec, **more}


def cache_of(*graphs: str) -> ObjectCache:
    """A scaler's cache of these graphs, each with one adapter."""
    cache = ObjectCache()
    index(cache)
    for name in graphs:
        obj = adapter()
        obj["metadata"] |= {"name": f"{name}-w", "uid": name}
        obj["spec"]["dgdRef"]["name"] = name
        cache.put(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, obj)
    return cache


async def test_replicas_count_pods_that_run_or_start_and_are_not_being_deleted():
    cache = ObjectCache()
    pods.index(cache)
    results = [pod_of_clique("g-0-w-ldr"), pod("Pending"), pod("Failed"), pod("Succeeded"), pod(leaving=True)]
    for number, each in enumerate(results):
        cache.put(PODS, with_metadata(each, name=str(number), uid=str(number)))
    everyone = "nvidia.com/dynamo-component=W,nvidia.com/dynamo-graph-deployment-name=g"
    assert await pods.counted(cache, GRAPH, {"name": "W"}) == (2, everyone)


def test_multi_node_replicas_are_counted_by_their_leaders():
    component = {"name": "W", "multinode": {"nodeCount": 2}}
    groups = [pod(role="leader"), pod(role="worker"), pod(role="leader"), pod(role="worker")]
    assert pods.replicas(GRAPH, component, groups) == 2
    assert pods.selector(GRAPH, component, groups).endswith(",role=leader")
    # Without nodeCount there are two nodes, as everywhere.
    assert pods.replicas(GRAPH, {"name": "W", "multinode": {}}, groups) == 2
    # Grove's pods carry no such label, so the platform reports the count of the graph's status.
    assert pods.replicas(GRAPH, component, [pod(), pod()]) == 7
    sharing = {"name": "W", "experimental": {"gpuMemoryService": {"mode": "InterPod"}}}
    assert pods.replicas(GRAPH, sharing, [pod(), pod(), pod()]) == 7


def test_an_autoscaler_gets_only_the_leaders_of_multi_node_replicas_of_grove():
    component = {"name": "W", "multinode": {"nodeCount": 3}}
    cliques = ("g-0-w-1-w-ldr", "g-0-w-1-w-wkr", "g-0-w-1-w-wkr", "g-0-w-0-w-ldr", "g-0-w-0-w-wkr", "g-0-w-0-w-wkr")
    groups = [pod_of_clique(clique) for clique in cliques]
    everyone = "nvidia.com/dynamo-component=W,nvidia.com/dynamo-graph-deployment-name=g"
    assert pods.selector(GRAPH, component, groups) == f"{everyone},grove.io/podclique in (g-0-w-0-w-ldr,g-0-w-1-w-ldr)"
    assert pods.selector(GRAPH, component, []) == everyone


@pytest.mark.parametrize(
    ("multinode", "serving"), [(None, "g-0-w-0-w,g-0-w-1-w"), ({"nodeCount": 2}, "g-0-w-0-w-ldr,g-0-w-1-w-ldr")]
)
def test_an_autoscaler_gets_no_gpu_memory_pods_of_engines_that_share_gpu_memory(multinode: Any, serving: str):
    component = {"name": "W", "multinode": multinode, "experimental": {"gpuMemoryService": {"mode": "InterPod"}}}
    of_ranks = ("gms-0", "ldr", "gms-1", "wkr-1") if multinode else ("gms-0", "")
    cliques = [f"g-0-w-{index}-w-{each}".rstrip("-") for index in (1, 0) for each in of_ranks]
    selector = pods.selector(GRAPH, component, [pod_of_clique(clique) for clique in cliques])
    assert selector.endswith(f",grove.io/podclique in ({serving})")


def managed(*entries: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    fields = [{"manager": manager, "time": time, "fieldsV1": fields} for manager, time, fields in entries]
    return {"metadata": {"managedFields": fields}}


def test_the_writer_of_a_number_is_the_owner_of_the_field():
    replicas: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
    assert (
        of_adapter(managed(("pod-builder", "1", {"f:spec": {"f:dgdRef": {}}}), ("kubectl", "2", replicas))) == "kubectl"
    )
    assert of_adapter(managed(("old", "1", replicas), ("new", "2", replicas))) == "new"
    assert of_adapter(managed(("pod-builder", "1", {"f:metadata": {}}))) == UNKNOWN_WRITER
    assert of_adapter({"metadata": {}}) == UNKNOWN_WRITER
    item: dict[str, Any] = {"f:spec": {"f:components": {'k:{"name":"W"}': {"f:replicas": {}}}}}
    assert of_component(managed(("edit", "1", item)), "W") == ["edit"]
    assert of_component(managed(("edit", "1", item)), "V") == []


def test_a_graph_is_patched_by_position_only_if_the_component_is_still_there():
    graph = {"metadata": {"uid": "u", "generation": 4}}
    assert mirror.patch(graph, [Difference("W", 1, 2, 5)]) == [
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/metadata/generation", "value": 4},
        {"op": "test", "path": "/spec/components/1/name", "value": "W"},
        {"op": "add", "path": "/spec/components/1/replicas", "value": 5},
    ]


@pytest.mark.parametrize(
    ("generation", "status", "before", "suspicious"),
    [
        (1, {}, 4, True),  # The adapter has the graph's former number: the graph changed.
        (2, {}, 4, False),  # The adapter changed for the first time.
        (3, {"lastScaleTime": "then"}, 4, True),  # They were equal.
        (3, {"lastScaleTime": "then"}, None, False),  # The graph leaves the number to the adapter.
    ],
)
def test_a_conflict_is_checked_if_the_graph_changed_a_number_that_was_equal(generation, status, before, suspicious):
    result = adapter(status=status)
    result["metadata"]["generation"] = generation
    assert mirror.is_suspicious(result, Difference("W", 0, before, 3)) is suspicious


def test_replicas_written_by_the_platform_are_not_a_conflict_and_a_conflict_names_both_writers():
    difference = Difference("W", 0, 4, 3)
    for own in ("dynamo-scaler", "manager", "dynamo-pod-builder"):
        assert mirror.overwritten(difference, 4, [own], "hpa") is None
    assert mirror.overwritten(difference, 4, [], "hpa") is None
    result = mirror.overwritten(difference, 4, ["kubectl-edit"], "hpa")
    assert result is not None
    assert result.message.startswith("kubectl-edit set 4 replicas of W in the graph, hpa 3 in the adapter")


def test_two_writers_take_turns_if_the_first_reverts_the_second_within_minutes():
    clock = ManualClock()
    turns = WriterConflicts(clock)
    assert turns.record("u", "hpa", 3) is None
    assert turns.record("u", "hpa", 5) is None
    assert turns.record("u", "kubectl", 1) is None
    assert turns.record("u", "hpa", 5) == ("hpa", "kubectl")
    assert turns.record("u", "kubectl", 1) == ("kubectl", "hpa")
    clock.now += WINDOW + 1
    assert turns.record("u", "hpa", 5) is None


def test_status_keeps_unreported_fields_and_shows_a_conflict_for_a_while():
    first = adapter_status(adapter(), AdapterObservation(OK, 2, "s", scaled=True, conflict=TROUBLE), NOW)
    assert first["replicas"] == 2
    assert first["lastScaleTime"] == "2026-03-01T12:00:00Z"
    assert [(each["type"], each["status"]) for each in first["conditions"]] == [
        ("Synced", "True"),
        ("Conflict", "True"),
    ]
    soon = adapter_status(adapter(status=first), AdapterObservation(OK, 3), NOW + timedelta(seconds=30))
    assert (soon["replicas"], soon["selector"], soon["lastScaleTime"]) == (3, "s", first["lastScaleTime"])
    assert find(soon["conditions"], "Conflict") == find(first["conditions"], "Conflict")
    assert conflict_ends_in(soon, NOW + timedelta(seconds=30)) == pytest.approx(SHOWN_FOR.total_seconds() - 29)
    later = adapter_status(adapter(status=soon), AdapterObservation(OK, 3), NOW + SHOWN_FOR)
    over = find(later["conditions"], "Conflict")
    assert over is not None
    assert (over["status"], over["reason"]) == ("False", "Resolved")
    assert "a and b" in over["message"]
    assert conflict_ends_in(later, NOW + SHOWN_FOR) is None
    assert adapter_status(adapter(status=later), AdapterObservation(OK, 3), NOW + 2 * SHOWN_FOR) == later


def test_a_conflict_ends_even_if_the_wall_clock_was_set_back():
    first = adapter_status(adapter(), AdapterObservation(OK, conflict=TROUBLE), NOW)
    earlier = NOW - timedelta(days=1)
    assert conflict_ends_in(first, earlier) == 1.0
    over = find(adapter_status(adapter(status=first), AdapterObservation(OK), earlier)["conditions"], "Conflict")
    assert over is not None
    assert (over["status"], over["reason"]) == ("False", "Resolved")
    a_little = NOW - timedelta(seconds=2)
    shown = find(adapter_status(adapter(status=first), AdapterObservation(OK), a_little)["conditions"], "Conflict")
    assert shown is not None
    assert shown["status"] == "True"


def test_a_lasting_conflict_is_shown_until_it_was_absent_for_a_while():
    first = adapter_status(adapter(), AdapterObservation(OK, conflict=TROUBLE), NOW)
    again = NOW + SHOWN_FOR - timedelta(seconds=10)
    second = adapter_status(adapter(status=first), AdapterObservation(OK, conflict=TROUBLE), again)
    shown = adapter_status(adapter(status=second), AdapterObservation(OK), NOW + SHOWN_FOR)
    result = find(shown["conditions"], "Conflict")
    assert result is not None
    assert (result["status"], result["reason"]) == ("True", "GraphChanged")
    assert conflict_ends_in(shown, again) == pytest.approx(SHOWN_FOR.total_seconds() + 1)


def test_only_changes_that_affect_adapters_are_reconciled():
    pace, key = routes(cache_of("g"), Debounce(ManualClock())), ObjectKey("n", "g-w")

    def wait(*change: Any) -> tuple[ObjectKey, float] | None:
        due = [(task.key, after) for task, after in routed(pace, *change)]
        assert len(due) <= 1
        return due[0] if due else None

    before, of = adapter(), DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
    assert wait(of, key, None, before) == (ObjectKey("n", "g"), SETTLE)
    assert wait(of, key, before, {**before, "status": {"replicas": 1}}) is None
    scaled = {**before, "spec": {**before["spec"], "replicas": 9}}
    assert wait(of, key, before, scaled) == (ObjectKey("n", "g"), SETTLE)
    graph = {"metadata": {"name": "g", "namespace": "n"}, "spec": {"components": []}}
    about = ObjectKey("n", "g")
    assert wait(DYNAMO_GRAPH_DEPLOYMENTS, about, graph, {**graph, "status": {"state": "pending"}}) is None
    assert wait(DYNAMO_GRAPH_DEPLOYMENTS, about, graph, {**graph, "spec": {}}) == (about, SETTLE)
    assert wait(DYNAMO_GRAPH_DEPLOYMENTS, about, {**graph, "status": {}}, {**graph, **COUNTED}) == (about, SETTLE)
    assert wait(PODS, ObjectKey("n", "p"), pod("Pending"), pod("Running")) is None
    assert wait(PODS, ObjectKey("n", "p"), pod(), pod(leaving=True)) == (about, SETTLE_PODS)
    assert wait(PODS, ObjectKey("n", "p"), pod(), None) == (about, SETTLE_PODS)


def test_pods_of_a_graph_without_adapters_are_not_counted() -> None:
    pace, graph = routes(cache_of("another"), Debounce(ManualClock())), {"metadata": GRAPH["metadata"]}
    assert not routed(pace, PODS, ObjectKey("n", "p"), None, pod())
    assert not routed(pace, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("n", "g"), graph, GRAPH)


def test_no_adapter_is_read_for_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users may create thousands of adapters for one graph, and pods come and go."""
    cache = cache_of("g")
    monkeypatch.setattr(cache, "by_index", lambda *_: pytest.fail("adapters are unpacked"))
    assert routed(routes(cache, Debounce(ManualClock())), PODS, ObjectKey("n", "p"), None, pod())


@pytest.mark.parametrize("resource", [PODS, HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS])
def test_an_object_that_moves_to_another_graph_reconciles_both_graphs(resource: Resource) -> None:
    """The former graph counts one pod less, and restores the labels of its autoscaler."""
    old, new = pod(), pod()
    new["metadata"]["labels"][labels.GRAPH_DEPLOYMENT_NAME] = "h"
    due = routed(routes(cache_of("g", "h"), Debounce(ManualClock())), resource, ObjectKey("n", "p"), old, new)
    assert sorted(task.key for task, _ in due) == [ObjectKey("n", "g"), ObjectKey("n", "h")]


@pytest.mark.parametrize("resource", [HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS])
def test_an_autoscaler_without_labels_reconciles_the_graph_of_its_adapter(resource: Resource) -> None:
    """A user's own autoscaler, as guides show it."""
    cache = ObjectCache()
    cache.put(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, adapter())
    target = {"kind": DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind, "name": adapter()["metadata"]["name"]}
    metadata = {"name": "mine", "namespace": "n", "uid": "m"}
    mine, other = (
        {"metadata": metadata, "spec": {"scaleTargetRef": each}} for each in (target, {**target, "name": "z"})
    )
    pace, key = routes(cache, Debounce(ManualClock())), ObjectKey("n", "mine")
    for change in ((None, mine), (mine, None), (mine, other), (other, mine)):
        assert [task.key for task, _ in routed(pace, resource, key, *change)] == [ObjectKey("n", "g")]
    assert not routed(pace, resource, key, None, other)


def test_a_pod_that_moves_to_another_component_is_counted_again() -> None:
    old, new = pod(), pod()
    new["metadata"]["labels"][labels.COMPONENT] = "V"
    due = routed(routes(cache_of("g"), Debounce(ManualClock())), PODS, ObjectKey("n", "p"), old, new)
    assert [task.key for task, _ in due] == [ObjectKey("n", "g")]
