"""Restarts as tables: what is there on the left, which components carry the id and what is told on the right."""

from __future__ import annotations

from typing import Any

import pytest
from dynamo_pod_builder.reconcilers.restarting import Part, decide, marked, parts_of, parts_of_set
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import RESTART_AT

PLAIN = Part(True, "", True)
NEW = Part(False)


def done(id_: str = "1") -> Part:
    return Part(True, id_, True)


def moving(id_: str = "1") -> Part:
    return Part(True, id_, False)


def wish(id_: str = "1", *order: str, type_: str = "Sequential") -> dict[str, Any]:
    return {"id": id_, "strategy": {"type": type_, **({"order": list(order)} if order else {})}}


def restarting(*names: str, id_: str = "1") -> dict[str, Any]:
    return {"observedID": id_, "phase": "Restarting", "inProgress": list(names)}


def ended(phase: str = "Completed", id_: str = "1") -> dict[str, Any]:
    return {"observedID": id_, "phase": phase}


PARALLEL = wish("1", type_="Parallel")


@pytest.mark.parametrize(
    ("asked", "previous", "parts", "told"),
    [
        pytest.param(None, None, {"A": PLAIN}, ({}, None, ""), id="nothing asked"),
        pytest.param(
            {"id": "1"},
            None,
            {"B": PLAIN, "A": PLAIN},
            ({"A": "1"}, restarting("A"), "Restarting"),
            id="alphabetical where no strategy is given",
        ),
        pytest.param(
            wish("1", "B", "A"),
            None,
            {"A": PLAIN, "B": PLAIN},
            ({"B": "1"}, restarting("B"), "Restarting"),
            id="in the order given",
        ),
        pytest.param(
            wish(), restarting("A"), {"A": moving(), "B": PLAIN}, ({"A": "1"}, restarting("A"), ""), id="one at a time"
        ),
        pytest.param(
            wish(),
            restarting("A"),
            {"A": done(), "B": PLAIN},
            ({"A": "1", "B": "1"}, restarting("B"), ""),
            id="the next when one serves",
        ),
        pytest.param(
            wish(),
            restarting("B"),
            {"A": done(), "B": done()},
            ({"A": "1", "B": "1"}, ended(), "Completed"),
            id="complete when the last serves",
        ),
        pytest.param(
            wish(),
            restarting("B"),
            {"A": moving(), "B": done(), "C": PLAIN},
            ({"A": "1", "B": "1"}, restarting("A"), ""),
            id="an earlier one that fails again holds up the next",
        ),
        pytest.param(
            PARALLEL,
            None,
            {"B": PLAIN, "A": PLAIN},
            ({"A": "1", "B": "1"}, restarting("A", "B"), "Restarting"),
            id="all at once",
        ),
        pytest.param(
            PARALLEL,
            restarting("A", "B"),
            {"A": done(), "B": moving()},
            ({"A": "1", "B": "1"}, restarting("B"), ""),
            id="all at once, those that serve are done",
        ),
        pytest.param(
            wish("2"),
            restarting("B"),
            {"A": done(), "B": moving(), "C": PLAIN},
            ({"A": "2", "B": "1"}, restarting("A", id_="2"), "Restarting"),
            id="a new id in the middle begins anew, and takes nothing back",
        ),
        pytest.param(
            wish("2"),
            ended(),
            {"A": done(), "B": done()},
            ({"A": "2", "B": "1"}, restarting("A", id_="2"), "Restarting"),
            id="a new id after the end",
        ),
        pytest.param(
            wish("1", "Gone", "B", "A"),
            restarting("Gone"),
            {"A": PLAIN, "B": PLAIN},
            ({"B": "1"}, restarting("B"), ""),
            id="one that vanished is passed over",
        ),
        pytest.param(
            wish("1", "B"),
            restarting("B"),
            {"A": PLAIN, "B": done()},
            ({"A": "1", "B": "1"}, restarting("A"), ""),
            id="one that the order leaves out comes after it",
        ),
        pytest.param(
            wish(), ended(), {"A": done(), "B": PLAIN}, ({"A": "1"}, ended(), ""), id="what has ended stays ended"
        ),
        pytest.param(
            None,
            ended(),
            {"A": done(), "B": PLAIN},
            ({"A": "1"}, ended(), ""),
            id="taken out after the end: nothing rolls",
        ),
        pytest.param(
            None,
            restarting("A"),
            {"A": moving(), "B": PLAIN},
            ({"A": "1"}, None, ""),
            id="taken out in the middle: what began stays, the rest does not begin",
        ),
        pytest.param(
            wish(),
            restarting("A"),
            {"A": moving(), "B": NEW},
            ({"A": "1", "B": "1"}, restarting("A", "B"), ""),
            id="pods that are yet to be made have the id from the start",
        ),
        pytest.param(
            wish(),
            ended(),
            {"A": done(), "B": NEW},
            ({"A": "1", "B": "1"}, ended(), ""),
            id="a component added after it",
        ),
        pytest.param(wish(), None, {}, ({}, ended(), "Completed"), id="nothing to restart"),
    ],
)
def test_a_step(asked, previous, parts, told):
    result = decide(asked, previous, parts, rolling=False)
    assert (dict(result.marks), result.status, result.entered) == told


@pytest.mark.parametrize(
    ("previous", "status", "entered"),
    [
        (None, ended("Superseded"), "Superseded"),
        (restarting("A"), ended("Superseded"), "Superseded"),
        (ended("Superseded"), ended("Superseded"), ""),
        (ended(), ended(), ""),
    ],
)
def test_a_rolling_update_supersedes_what_is_not_over(previous, status, entered):
    result = decide(wish(), previous, {"A": moving(), "B": PLAIN}, rolling=True)
    assert (dict(result.marks), result.status, result.entered) == ({"A": "1"}, status, entered)


def test_what_was_superseded_is_not_made_up_for():
    result = decide(wish(), ended("Superseded"), {"A": PLAIN}, rolling=False)
    assert (dict(result.marks), result.status) == ({}, ended("Superseded"))


@pytest.mark.parametrize("type_", ["Sequential", "Parallel"])
def test_every_restart_ends_though_status_is_lost_at_each_step(type_):
    """Pods serve one round after their template changed; the loop is the cluster, which remembers no status."""
    parts = dict.fromkeys("CABD", PLAIN)
    seen: list[list[str]] = []
    for _ in range(20):
        result = decide(wish("1", type_=type_), None, parts, rolling=False)
        if result.status == ended():
            break
        assert result.status is not None
        seen.append(result.status["inProgress"])
        # What had the id already serves by now; what got it this time does not yet.
        parts = {
            name: Part(True, result.marks.get(name, ""), result.marks.get(name) == part.mark)
            for name, part in parts.items()
        }
    assert seen[0] == (["A"] if type_ == "Sequential" else ["A", "B", "C", "D"])
    assert [name for step in seen for name in step if seen[seen.index(step) - 1] != step or step is seen[0]]
    assert result.status == ended()
    assert set(parts.values()) == {done()}


def component(name: str, mark: str = "") -> dict[str, Any]:
    template: dict[str, Any] = {"spec": {}}
    if mark:
        template["metadata"] = {"annotations": {RESTART_AT: mark}}
    return {
        "kind": "DynamoComponentDeployment",
        "metadata": {"name": f"g-{name.lower()}", "labels": {labels.COMPONENT: name}},
        "spec": {"name": name, "podTemplate": template},
    }


def deployment(mark: str, *, ready: bool = True, kind: str = "Deployment") -> dict[str, Any]:
    template = {"metadata": {"annotations": {RESTART_AT: mark}}}
    counts = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": int(ready)}
    spec = {"template": template} if kind == "Deployment" else {"leaderWorkerTemplate": {"workerTemplate": template}}
    return {
        "kind": kind,
        "metadata": {"name": "w", "generation": 1},
        "spec": {"replicas": 1, **spec},
        "status": {"observedGeneration": 1, **counts, "conditions": [{"type": "Available", "status": str(ready)}]},
    }


def seen(there: dict[str, Any] | None, workload: dict[str, Any] | None, *pods: str) -> Part:
    present = {} if there is None else {"g-a": there}
    found = [{"metadata": {"annotations": {RESTART_AT: mark}}} for mark in pods]
    return parts_of([component("A")], present, lambda _: workload, lambda _: found)["A"]


@pytest.mark.parametrize("kind", ["Deployment", "LeaderWorkerSet"])
def test_a_component_serves_once_its_workload_has_the_id_and_all_pods_are_of_it(kind):

    assert seen(None, None) == NEW
    assert seen(component("A", "1"), None) == moving()
    assert seen(component("A", "1"), deployment("", kind=kind)) == moving()
    assert seen(component("A", "1"), deployment("1", ready=False, kind=kind)) == moving()
    assert seen(component("A", "1"), deployment("1", kind=kind), "1", "1") == done()


def test_groups_are_renewed_when_their_pods_are():
    """The status of a LeaderWorkerSet is of nobody knows which generation."""
    groups = deployment("1", kind="LeaderWorkerSet")
    assert seen(component("A", "1"), groups) == moving()
    assert seen(component("A", "1"), groups, "0", "0") == moving()
    assert seen(component("A", "1"), groups, "1", "0") == moving()
    assert seen(component("A", "1"), groups, "1", "1") == done()
    groups["spec"]["replicas"] = 0
    groups["status"] |= {"replicas": 0, "updatedReplicas": 0, "readyReplicas": 0}
    assert seen(component("A", "1"), groups) == done()


def pod_clique_set(*cliques: tuple[str, str], **status: Any) -> dict[str, Any]:
    return {
        "kind": "PodCliqueSet",
        "metadata": {"name": "g", "generation": 2},
        "spec": {
            "template": {
                "cliques": [
                    {
                        "name": name,
                        "labels": {labels.COMPONENT: name},
                        "annotations": {RESTART_AT: mark} if mark else {},
                    }
                    for name, mark in cliques
                ]
            }
        },
        "status": {"observedGeneration": 2, **status},
    }


CLIQUE = {
    "kind": "PodClique",
    "metadata": {"name": "g-0-a", "generation": 1},
    "spec": {"replicas": 1},
    "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1},
}


@pytest.mark.parametrize(
    ("there", "part"),
    [
        (None, NEW),
        (pod_clique_set(("B", "1")), NEW),
        (pod_clique_set(("A", "1")), done()),
        (pod_clique_set(("A", "")), PLAIN),
        (pod_clique_set(("A", "1"), observedGeneration=1), moving()),
        (pod_clique_set(("A", "1"), updateProgress={"updateStartedAt": "x"}), moving()),
        (pod_clique_set(("A", "1"), updateProgress={"updateStartedAt": "x", "updateEndedAt": "y"}), done()),
        (pod_clique_set(("A", "1"), rollingUpdateProgress={"updateStartedAt": "x"}), moving()),
    ],
)
def test_on_grove_the_set_must_be_realized_too(there, part):
    assert parts_of_set(there, {"A": CLIQUE}) == {"A": part}


def test_ids_go_into_pod_templates_and_cliques_and_nothing_else():
    wanted = [
        component("A"),
        component("B"),
        pod_clique_set(("A", ""), ("B", "")),
        {"kind": "ConfigMap", "metadata": {}},
    ]
    a, b, cliques, other = marked(wanted, {"A": "1"})
    assert a["spec"]["podTemplate"]["metadata"]["annotations"] == {RESTART_AT: "1"}
    assert (b, other) == (wanted[1], wanted[3])
    assert [each["annotations"] for each in cliques["spec"]["template"]["cliques"]] == [{RESTART_AT: "1"}, {}]
    assert wanted[0] == component("A"), "its input stays as it is"
