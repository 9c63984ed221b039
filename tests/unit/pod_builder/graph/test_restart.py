"""Step `restart`: what is there on the left, which components carry the id and what is reported on the right."""

from typing import Any

import pytest
from dynamo_pod_builder.reconcilers.graph.plan import Rollout
from dynamo_pod_builder.reconcilers.graph.steps.restart import Part, decide, parts_of, restart
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import RESTART_AT

from .building import clique, desiring, observed, stored_graph

PLAIN = Part(True, "", True)
NEW = Part(False)


def done(id_: str = "1") -> Part:
    return Part(True, id_, True)


def moving(id_: str = "1") -> Part:
    return Part(True, id_, False)


def asked_for(id_: str = "1", *order: str, type_: str = "Sequential") -> dict[str, Any]:
    return {"id": id_, "strategy": {"type": type_, **({"order": list(order)} if order else {})}}


def restarting(*names: str, id_: str = "1") -> dict[str, Any]:
    return {"observedID": id_, "phase": "Restarting", "inProgress": list(names)}


def ended(phase: str = "Completed", id_: str = "1") -> dict[str, Any]:
    return {"observedID": id_, "phase": phase}


PARALLEL = asked_for("1", type_="Parallel")


@pytest.mark.parametrize(
    ("asked", "previous", "parts", "reported"),
    [
        pytest.param(None, None, {"A": PLAIN}, ({}, None, ""), id="nothing requested"),
        pytest.param(
            {"id": "1"},
            None,
            {"B": PLAIN, "A": PLAIN},
            ({"A": "1"}, restarting("A"), "Restarting"),
            id="alphabetical where no strategy is given",
        ),
        pytest.param(
            asked_for("1", "B", "A"),
            None,
            {"A": PLAIN, "B": PLAIN},
            ({"B": "1"}, restarting("B"), "Restarting"),
            id="in the order given",
        ),
        pytest.param(
            asked_for(),
            restarting("A"),
            {"A": moving(), "B": PLAIN},
            ({"A": "1"}, restarting("A"), ""),
            id="one at a time",
        ),
        pytest.param(
            asked_for(),
            restarting("A"),
            {"A": done(), "B": PLAIN},
            ({"A": "1", "B": "1"}, restarting("B"), ""),
            id="the next when one serves",
        ),
        pytest.param(
            asked_for(),
            restarting("B"),
            {"A": done(), "B": done()},
            ({"A": "1", "B": "1"}, ended(), "Completed"),
            id="complete when the last serves",
        ),
        pytest.param(
            asked_for(),
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
            asked_for("2"),
            restarting("B"),
            {"A": done(), "B": moving(), "C": PLAIN},
            ({"A": "2", "B": "1"}, restarting("A", id_="2"), "Restarting"),
            id="a new id in the middle begins again, and takes nothing back",
        ),
        pytest.param(
            asked_for("2"),
            ended(),
            {"A": done(), "B": done()},
            ({"A": "2", "B": "1"}, restarting("A", id_="2"), "Restarting"),
            id="a new id after the end",
        ),
        pytest.param(
            asked_for("1", "Gone", "B", "A"),
            restarting("Gone"),
            {"A": PLAIN, "B": PLAIN},
            ({"B": "1"}, restarting("B"), ""),
            id="one that vanished is passed over",
        ),
        pytest.param(
            asked_for("1", "B"),
            restarting("B"),
            {"A": PLAIN, "B": done()},
            ({"A": "1", "B": "1"}, restarting("A"), ""),
            id="one that the order leaves out comes after it",
        ),
        pytest.param(
            asked_for(), ended(), {"A": done(), "B": PLAIN}, ({"A": "1"}, ended(), ""), id="what has ended stays ended"
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
            asked_for(),
            restarting("A"),
            {"A": moving(), "B": NEW},
            ({"A": "1", "B": "1"}, restarting("A", "B"), ""),
            id="pods that are yet to be made have the id from the start",
        ),
        pytest.param(
            asked_for(),
            ended(),
            {"A": done(), "B": NEW},
            ({"A": "1", "B": "1"}, ended(), ""),
            id="a component added after it",
        ),
        pytest.param(asked_for(), None, {}, ({}, ended(), "Completed"), id="nothing to restart"),
    ],
)
def test_a_step(asked, previous, parts, reported):
    result = decide(asked, previous, parts, rolling=False)
    assert (dict(result.ids), result.status, result.entered) == reported


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
    result = decide(asked_for(), previous, {"A": moving(), "B": PLAIN}, rolling=True)
    assert (dict(result.ids), result.status, result.entered) == ({"A": "1"}, status, entered)


def test_what_was_superseded_is_not_made_up_for():
    result = decide(asked_for(), ended("Superseded"), {"A": PLAIN}, rolling=False)
    assert (dict(result.ids), result.status) == ({}, ended("Superseded"))


@pytest.mark.parametrize("type_", ["Sequential", "Parallel"])
def test_every_restart_ends_though_status_is_lost_at_each_step(type_):
    """Pods serve one round after their template changed; the loop is the cluster, which remembers no status."""
    parts = dict.fromkeys("CABD", PLAIN)
    received: list[list[str]] = []
    for _ in range(20):
        result = decide(asked_for("1", type_=type_), None, parts, rolling=False)
        if result.status == ended():
            break
        assert result.status is not None
        received.append(result.status["inProgress"])
        # What had the id already serves by now; what got it this time does not yet.
        parts = {
            name: Part(True, result.ids.get(name, ""), result.ids.get(name) == part.id) for name, part in parts.items()
        }
    assert received[0] == (["A"] if type_ == "Sequential" else ["A", "B", "C", "D"])
    assert [
        name for step in received for name in step if received[received.index(step) - 1] != step or step is received[0]
    ]
    assert result.status == ended()
    assert set(parts.values()) == {done()}


def component(name: str, id_: str = "") -> dict[str, Any]:
    template: dict[str, Any] = {"spec": {}}
    if id_:
        template["metadata"] = {"annotations": {RESTART_AT: id_}}
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoComponentDeployment",
        "metadata": {"name": f"g-{name.lower()}", "labels": {labels.COMPONENT: name}},
        "spec": {"name": name, "podTemplate": template},
    }


def workload(id_: str, *, ready: bool = True, kind: str = "Deployment") -> dict[str, Any]:
    template = {"metadata": {"annotations": {RESTART_AT: id_}}}
    counts = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": int(ready)}
    spec = {"template": template} if kind == "Deployment" else {"leaderWorkerTemplate": {"workerTemplate": template}}
    return {
        "kind": kind,
        "metadata": {"name": "g-a", "generation": 1},
        "spec": {"replicas": 1, **spec},
        "status": {"observedGeneration": 1, **counts, "conditions": [{"type": "Available", "status": str(ready)}]},
    }


def part(there: dict[str, Any] | None, running: dict[str, Any] | None, *pods: str) -> Part:
    """Component A, with the ids that its pods carry."""
    world = observed(
        *([there] if there else []),
        workloads={"g-a": running} if running else {},
        pods={"g-a": [{"metadata": {"annotations": {RESTART_AT: id_}}} for id_ in pods]},
    )
    return parts_of(desiring(component("A")), world)["A"]


@pytest.mark.parametrize("kind", ["Deployment", "LeaderWorkerSet"])
def test_a_component_serves_once_its_workload_has_the_id_and_all_pods_are_of_it(kind):
    assert part(None, None) == NEW
    assert part(component("A", "1"), None) == moving()
    assert part(component("A", "1"), workload("", kind=kind)) == moving()
    assert part(component("A", "1"), workload("1", ready=False, kind=kind)) == moving()
    assert part(component("A", "1"), workload("1", kind=kind), "1", "1") == done()


def test_groups_are_renewed_when_their_pods_are():
    """The status of a LeaderWorkerSet does not say of which generation it is."""
    groups = workload("1", kind="LeaderWorkerSet")
    assert part(component("A", "1"), groups) == moving()
    assert part(component("A", "1"), groups, "0", "0") == moving()
    assert part(component("A", "1"), groups, "1", "0") == moving()
    assert part(component("A", "1"), groups, "1", "1") == done()
    groups["spec"]["replicas"] = 0
    groups["status"] |= {"replicas": 0, "updatedReplicas": 0, "readyReplicas": 0}
    assert part(component("A", "1"), groups) == done()


def pod_clique_set(*cliques: tuple[str, str], **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "g", "generation": 2},
        "spec": {
            "template": {
                "cliques": [
                    {
                        "name": name,
                        "labels": {labels.COMPONENT: name},
                        "annotations": {RESTART_AT: id_} if id_ else {},
                        "spec": {"replicas": 1},
                    }
                    for name, id_ in cliques
                ]
            }
        },
        "status": {"observedGeneration": 2, **status},
    }


@pytest.mark.parametrize(
    ("there", "expected"),
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
def test_on_grove_the_set_must_be_realized_too(there, expected):
    world = observed(*([there] if there else []), cliques=[clique("g-0-A")])
    assert parts_of(desiring(pod_clique_set(("A", "1"))), world) == {"A": expected}


@pytest.mark.parametrize(
    ("reached", "pods", "replicas", "expected"),
    [
        ("new", ["1", "1"], 2, done()),
        # Grove does not know the id yet: its generation is that of before.
        ("new", ["0", "0"], 2, moving()),
        ("new", ["1", "0"], 2, moving()),
        ("old", ["1", "1"], 2, moving()),
        ("new", [], 2, moving()),
        ("new", [], 0, done()),
    ],
)
def test_a_restart_on_grove_ends_by_its_pods_where_grove_never_says_that_it_has_acted(
    reached, pods, replicas, expected
):
    """As long as another component has 0 replicas."""
    there = clique("g-0-A", replicas)
    there["status"]["currentPodCliqueSetGenerationHash"] = reached
    world = observed(
        pod_clique_set(("A", "1"), observedGeneration=1, currentGenerationHash="new"),
        cliques=[there],
        pods={"g-0-A": [{"metadata": {"annotations": {RESTART_AT: id_}}} for id_ in pods]},
    )
    assert parts_of(desiring(pod_clique_set(("A", "1"))), world) == {"A": expected}


def test_ids_go_into_pod_templates_and_cliques_and_nothing_else():
    other = {"kind": "ConfigMap", "metadata": {}}
    before = component("A")
    asked = stored_graph(restart=asked_for("1", type_="Parallel"))
    plan = restart(desiring(before, component("B"), other), observed(component("A"), of=asked))
    assert [_ids(each) for each in plan.desired] == [["1"], ["1"], []]
    assert before == component("A"), "its input stays as it is"
    on_grove = restart(
        desiring(pod_clique_set(("A", ""), ("B", "")), other), observed(pod_clique_set(("A", ""), ("B", "")), of=asked)
    )
    assert _ids(on_grove.desired[0]) == ["1", "1"]
    assert on_grove.pod_clique_set is on_grove.desired[0], "what is written has the ids"


def _ids(child: dict[str, Any]) -> list[str]:
    if child["kind"] == "PodCliqueSet":
        return [each["annotations"].get(RESTART_AT, "") for each in child["spec"]["template"]["cliques"]]
    if child["kind"] == "DynamoComponentDeployment":
        return [child["spec"]["podTemplate"].get("metadata", {}).get("annotations", {}).get(RESTART_AT, "")]
    return []


@pytest.mark.parametrize(
    ("rollout", "phase"),
    [
        (None, "Restarting"),
        (Rollout(), "Restarting"),
        (Rollout(status={"phase": "Completed"}), "Restarting"),
        (Rollout(status={"phase": "InProgress"}), "Superseded"),
    ],
)
def test_a_rolling_update_of_this_plan_supersedes_it(rollout, phase):
    asked = stored_graph(restart=asked_for())
    plan = restart(desiring(component("A"), rollout=rollout), observed(component("A"), of=asked))
    assert plan.restart is not None
    assert plan.restart.status is not None
    assert (plan.restart.status["phase"], plan.restart.is_under_way) == (phase, phase == "Restarting")
