"""Step `restart`: observed components on the left; on the right the components that get the id, and the status."""

from typing import Any

import pytest
from dynamo_pod_builder.reconcilers.graph.plan import RestartPlan, Rollout
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


def asked_for(said: str = "1 Sequential") -> dict[str, Any] | None:
    """A requested restart: id `1`; with strategy: `1 Parallel`; with order: `1 Sequential B A`; or `nothing`."""
    id_, type_, *order = [*said.split(), ""]
    strategy = {"strategy": {"type": type_, **({"order": order[:-1]} if order[:-1] else {})}} if type_ else {}
    return None if id_ == "nothing" else {"id": id_, **strategy}


def status(said: str) -> dict[str, Any] | None:
    """A status in the notation of the rows: `Restarting 1: A B`."""
    phase, id_, *names = said.replace(":", "").split() if said else ("", "")
    return {"observedID": id_, "phase": phase, **({"inProgress": names} if names else {})} if said else None


def parts_in(said: str) -> dict[str, Part]:
    """Components in the notation of the rows: `A plain, B done`."""
    kinds = {"plain": PLAIN, "new": NEW, "done": done(), "moving": moving(), "done2": done("2")}
    kinds |= {"moving2": moving("2"), "broken": Part(True, "", False)}
    return {name: kinds[kind] for name, kind in (each.split() for each in said.split(", ") if each)}


def step_of(result: RestartPlan) -> str:
    """A step in the notation of the rows: ids of components, status (`A 1, B 2; Restarting 2: A`), then `now PHASE`."""
    ids = ", ".join(map(" ".join, sorted(result.ids.items())))
    if result.status is None:
        return ids
    names = " ".join(result.status.get("inProgress", ()))
    reported = f"{result.status['phase']} {result.status['observedID']}{names and ': '}{names}"
    assert result.status == status(reported)
    assert result.entered in ("", result.status["phase"])
    return f"{ids}; {result.entered and 'now '}{reported}"


STEPS = {
    "nothing is requested": ("nothing", "", "A plain", ""),
    "alphabetical where no strategy is given": ("1", "", "B plain, A plain", "A 1; now Restarting 1: A"),
    "in the order given": ("1 Sequential B A", "", "A plain, B plain", "B 1; now Restarting 1: B"),
    "one at a time": ("1 Sequential", "Restarting 1: A", "A moving, B plain", "A 1; Restarting 1: A"),
    "the next when one serves": ("1 Sequential", "Restarting 1: A", "A done, B plain", "A 1, B 1; Restarting 1: B"),
    "complete when the last serves": ("1 Sequential", "Restarting 1: B", "A done, B done", "A 1, B 1; now Completed 1"),
    "one fails again": ("1 Sequential", "Restarting 1: B", "A moving, B done, C plain", "A 1, B 1; Restarting 1: A"),
    "unready and never restarted: in its order": ("1 Sequential", "", "A plain, B broken", "A 1; now Restarting 1: A"),
    "all at once": ("1 Parallel", "", "B plain, A plain", "A 1, B 1; now Restarting 1: A B"),
    "those that serve are done": ("1 Parallel", "Restarting 1: A B", "A done, B moving", "A 1, B 1; Restarting 1: B"),
    "new id midway": ("2 Sequential", "Restarting 1: B", "A done, B moving, C plain", "A 1, B 2; now Restarting 2: B"),
    "then in the order": ("2 Sequential", "Restarting 2: B", "A done, B done2, C plain", "A 2, B 2; Restarting 2: A"),
    "several on their way go one after the other": (
        "2 Sequential C B A",
        "Restarting 1: A B",
        "A moving, B moving, C done",
        "A 1, B 2, C 1; now Restarting 2: A B",
    ),
    "none begins that serves while others are on their way": (
        "2 Sequential C B A",
        "Restarting 2: A B",
        "A moving, B done2, C done",
        "A 2, B 2, C 1; Restarting 2: A",
    ),
    "what is on its way by an id of before counts until it serves": (
        "2 Sequential C B A",
        "Restarting 2: A B",
        "A done, B done2, C done",
        "A 1, B 2, C 2; Restarting 2: C",
    ),
    "unready after one taken out": ("2 Sequential", "", "A done, B moving, C plain", "A 1, B 2; now Restarting 2: B"),
    "fails after the end": ("2 Sequential", "Completed 1", "A done, B moving", "A 2, B 1; now Restarting 2: A"),
    "midway, all at once": ("2 Parallel", "Restarting 1: B", "A done, B moving", "A 2, B 2; now Restarting 2: A B"),
    "a new id after the end": ("2 Sequential", "Completed 1", "A done, B done", "A 2, B 1; now Restarting 2: A"),
    "one vanished": ("1 Sequential Gone B A", "Restarting 1: Gone", "A plain, B plain", "B 1; Restarting 1: B"),
    "one that the order omits": ("1 Sequential B", "Restarting 1: B", "A plain, B done", "A 1, B 1; Restarting 1: A"),
    "what has ended stays ended": ("1 Sequential", "Completed 1", "A done, B plain", "A 1; Completed 1"),
    "taken out after the end: nothing rolls": ("nothing", "Completed 1", "A done, B plain", "A 1; Completed 1"),
    "taken out midway: what began stays, no other begins": ("nothing", "Restarting 1: A", "A moving, B plain", "A 1"),
    "new pods have it at once": ("1 Sequential", "Restarting 1: A", "A moving, B new", "A 1, B 1; Restarting 1: A B"),
    "a component added after it": ("1 Sequential", "Completed 1", "A done, B new", "A 1, B 1; Completed 1"),
    "there is nothing to restart": ("1 Sequential", "", "", "; now Completed 1"),
}


@pytest.mark.parametrize(("asked", "before", "parts", "outcome"), STEPS.values(), ids=STEPS)
def test_a_step(asked, before, parts, outcome):
    assert step_of(decide(asked_for(asked), status(before), parts_in(parts), rolling=False)) == outcome


@pytest.mark.parametrize(
    ("before", "outcome"),
    [
        ("", "A 1; now Superseded 1"),
        ("Restarting 1: A", "A 1; now Superseded 1"),
        ("Superseded 1", "A 1; Superseded 1"),
        ("Completed 1", "A 1; Completed 1"),
    ],
)
def test_a_rolling_update_supersedes_an_unfinished_restart(before, outcome):
    assert step_of(decide(asked_for(), status(before), parts_in("A moving, B plain"), rolling=True)) == outcome


def test_a_superseded_restart_is_not_resumed():
    result = decide(asked_for(), status("Superseded 1"), parts_in("A plain"), rolling=False)
    assert step_of(result) == "; Superseded 1"


@pytest.mark.parametrize("type_", ["Sequential", "Parallel"])
def test_every_restart_ends_even_if_status_is_lost_at_each_step(type_):
    """Pods serve one round after their template changed. The loop simulates the cluster, which keeps no status."""
    parts = dict.fromkeys("CABD", PLAIN)
    received: list[list[str]] = []
    for _ in range(20):
        result = decide(asked_for(f"1 {type_}"), None, parts, rolling=False)
        if result.status == status("Completed 1"):
            break
        assert result.status is not None
        received.append(result.status["inProgress"])
        # Components that had the id before serve now. Those that got it in this round do not serve yet.
        parts = {
            name: Part(True, result.ids.get(name, ""), result.ids.get(name) == part.id) for name, part in parts.items()
        }
    assert received[0] == (["A"] if type_ == "Sequential" else ["A", "B", "C", "D"])
    assert [
        name for step in received for name in step if received[received.index(step) - 1] != step or step is received[0]
    ]
    assert result.status == status("Completed 1")
    assert set(parts.values()) == {done()}


def component(name: str, id_: str = "") -> dict[str, Any]:
    template: dict[str, Any] = {"spec": {}}
    if id_:
        template["metadata"] = {"annotations": {RESTART_AT: id_}}
    metadata = {"name": f"g-{name.lower()}", "labels": {labels.COMPONENT: name}}
    spec = {"name": name, "podTemplate": template}
    return {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoComponentDeployment", "metadata": metadata, "spec": spec}


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
    """Component A, with the restart ids of its pods."""
    world = observed(
        *([there] if there else []),
        workloads={"g-a": running} if running else {},
        pods={"g-a": [{"metadata": {"annotations": {RESTART_AT: id_}}} for id_ in pods]},
    )
    return parts_of(desiring(component("A")), world)["A"]


@pytest.mark.parametrize("what", ["the component deployment", "its workload"])
def test_a_component_that_a_user_deletes_does_not_serve(what):
    """With `--cascade=foreground` it stays, and is ready, until its pods are gone."""
    there, running = component("A", "1"), workload("1")
    (there if what == "the component deployment" else running)["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert part(there, running) == moving()


@pytest.mark.parametrize("kind", ["Deployment", "LeaderWorkerSet"])
def test_a_component_serves_when_its_workload_has_the_id_and_all_pods_are_updated(kind):
    assert part(None, None) == NEW
    assert part(component("A", "1"), None) == moving()
    assert part(component("A", "1"), workload("", kind=kind)) == moving()
    assert part(component("A", "1"), workload("1", ready=False, kind=kind)) == moving()
    assert part(component("A", "1"), workload("1", kind=kind), "1", "1") == done()


def test_groups_are_restarted_when_their_pods_have_the_id():
    """The status of a LeaderWorkerSet does not report its generation."""
    groups = workload("1", kind="LeaderWorkerSet")
    assert part(component("A", "1"), groups) == moving()
    assert part(component("A", "1"), groups, "0", "0") == moving()
    assert part(component("A", "1"), groups, "1", "0") == moving()
    assert part(component("A", "1"), groups, "1", "1") == done()
    groups["spec"]["replicas"] = 0
    groups["status"] |= {"replicas": 0, "updatedReplicas": 0, "readyReplicas": 0}
    assert part(component("A", "1"), groups) == done()


def pod_clique_set(*cliques: tuple[str, str], **status: Any) -> dict[str, Any]:
    made = [
        {"name": name, "labels": {labels.COMPONENT: name}, "annotations": {RESTART_AT: id_} if id_ else {}}
        for name, id_ in cliques
    ]
    spec = {"template": {"cliques": [{**each, "spec": {"replicas": 1}} for each in made]}}
    of_set = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "g", "generation": 2}}
    return {**of_set, "spec": spec, "status": {"observedGeneration": 2, **status}}


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
def test_a_component_on_grove_serves_when_its_set_was_observed_too(there, expected):
    world = observed(*([there] if there else []), cliques=[clique("g-0-A")])
    assert parts_of(desiring(pod_clique_set(("A", "1"))), world) == {"A": expected}


@pytest.mark.parametrize(
    ("reached", "pods", "replicas", "expected"),
    [
        ("new", ["1", "1"], 2, done()),
        # Grove has not observed the id: its generation is the former one.
        ("new", ["0", "0"], 2, moving()),
        ("new", ["1", "0"], 2, moving()),
        ("old", ["1", "1"], 2, moving()),
        ("new", [], 2, moving()),
        ("new", [], 0, done()),
    ],
)
def test_a_restart_on_grove_ends_by_its_pods_if_grove_never_reports_that_it_has_acted(
    reached, pods, replicas, expected
):
    """This is so while another component has 0 replicas."""
    there = clique("g-0-A", replicas)
    there["status"]["currentPodCliqueSetGenerationHash"] = reached
    world = observed(
        pod_clique_set(("A", "1"), observedGeneration=1, currentGenerationHash="new"),
        cliques=[there],
        pods={"g-0-A": [{"metadata": {"annotations": {RESTART_AT: id_}}} for id_ in pods]},
    )
    assert parts_of(desiring(pod_clique_set(("A", "1"))), world) == {"A": expected}


def test_ids_are_set_only_in_pod_templates_and_cliques():
    other = {"kind": "ConfigMap", "metadata": {}}
    before = component("A")
    asked = stored_graph(restart=asked_for("1 Parallel"))
    plan = restart(desiring(before, component("B"), other), observed(component("A"), of=asked))
    assert [_ids(each) for each in plan.desired] == [["1"], ["1"], []]
    assert before == component("A"), "its input stays as it is"
    on_grove = restart(
        desiring(pod_clique_set(("A", ""), ("B", "")), other), observed(pod_clique_set(("A", ""), ("B", "")), of=asked)
    )
    assert _ids(on_grove.desired[0]) == ["1", "1"]
    assert on_grove.pod_clique_set is on_grove.desired[0], "what is written has the ids"


def test_ids_are_set_in_the_templates_of_roles():
    before = component("A")
    before["spec"]["roles"] = [{"name": "leader"}, {"name": "worker", "podTemplate": {"spec": {}}}]
    asked = stored_graph(restart=asked_for("1 Parallel"))
    (made,) = restart(desiring(before), observed(component("A"), of=asked)).desired
    leader, worker = made["spec"]["roles"]
    assert worker["podTemplate"]["metadata"]["annotations"] == {RESTART_AT: "1"}
    assert leader == {"name": "leader"}


def _ids(child: dict[str, Any]) -> list[str]:
    if child["kind"] == "PodCliqueSet":
        return [each["annotations"].get(RESTART_AT, "") for each in child["spec"]["template"]["cliques"]]
    if child["kind"] == "DynamoComponentDeployment":
        return [child["spec"]["podTemplate"].get("metadata", {}).get("annotations", {}).get(RESTART_AT, "")]
    return []


@pytest.mark.parametrize(
    ("rollout", "phase"),
    [
        (Rollout(), "Restarting"),
        (Rollout(status={"phase": "Completed"}), "Restarting"),
        (Rollout(status={"phase": "InProgress"}), "Superseded"),
    ],
)
def test_a_rolling_update_of_this_plan_supersedes_the_restart(rollout, phase):
    asked = stored_graph(restart=asked_for())
    plan = restart(desiring(component("A"), rollout=rollout), observed(component("A"), of=asked))
    assert plan.restart.status is not None
    assert (plan.restart.status["phase"], plan.restart.is_under_way) == (phase, phase == "Restarting")
