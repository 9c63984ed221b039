"""How a graph's status is derived, and when the next reconcile is due."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.reconcilers.graph.carry_out import CarryOutResult
from dynamo_pod_builder.reconcilers.graph.observed import place_of
from dynamo_pod_builder.reconcilers.graph.parts import all_serve, desired_parts
from dynamo_pod_builder.reconcilers.graph.plan import Plan, RestartPlan, Rollout
from dynamo_pod_builder.reconcilers.graph.report import GraphReport, conclude, is_new, next_reconcile
from dynamo_pod_builder.reconcilers.requeue import OBSERVED_WITHIN, RESTART_INTERVAL
from dynamo_pod_builder.starts import CheckpointStart, Starts
from dynamo_pod_builder.status.component import Failure
from dynamo_pod_builder.status.graph import graph_status
from dynamo_shared.api.gpus import GpuShape
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, POD_CLIQUE_SCALING_GROUPS, POD_CLIQUE_SETS

from tests.building.objects import object_of
from tests.building.tables import rows
from tests.unit.announced import Announced
from tests.unit.written import Written

from .building import NOW, clique, deployment, desiring, observed, stored, stored_graph

FAILURE = Failure("InvalidSpec", "x")
REFUSED = Failure("RefusedByApiServer", "quota")
BEFORE: dict[str, Any] = {
    "checkpoints": {"One": {}},
    "restart": {"phase": "Completed"},
    "rollingUpdate": {"phase": "Completed"},
}


def component(name: str, hash_: str = "") -> KubeObject:
    of_component = {labels.COMPONENT: "One", **({labels.WORKER_HASH: hash_} if hash_ else {})}
    return object_of(DYNAMO_COMPONENT_DEPLOYMENTS, name, labels=of_component, spec={})


def pod_clique_set(name: str = "graph", **fields: Any) -> KubeObject:
    cliques = [{"name": "one", "labels": {labels.COMPONENT: "One"}, "spec": {"replicas": 1}}]
    return object_of(POD_CLIQUE_SETS, name, spec={"template": {"cliques": cliques}}, **fields)


@pytest.mark.parametrize("deleted", [{}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}])
@pytest.mark.parametrize("made", [component("graph-one"), pod_clique_set()], ids=["component deployment", "set"])
def test_a_workload_that_is_being_deleted_counts_as_leaving(made, deleted):
    """Grove keeps a set by a finalizer until all pods have ended, and reports meanwhile that its cliques are ready."""
    there = stored(made)
    there["metadata"].update(finalizers=["x.y/z"], **deleted)
    running: dict[str, Any] = {"workloads": {"graph-one": deployment("graph-one")}, "cliques": [clique("graph-0-one")]}
    parts = desired_parts(desiring(made), observed(there, **running))
    assert parts["One"][0].leaving == (there if deleted else None)
    assert all_serve(parts) is not bool(deleted)


@pytest.mark.parametrize("deleted", [{}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}])
def test_a_component_whose_workload_is_being_deleted_counts_as_leaving(deleted):
    """With `--cascade=foreground` it stays ready until its pods are gone: the former workloads go on serving."""
    there, running = stored(component("graph-one")), deployment("graph-one")
    running["metadata"].update(finalizers=["foregroundDeletion"], **deleted)
    parts = desired_parts(desiring(component("graph-one")), observed(there, workloads={"graph-one": running}))
    assert all_serve(parts) is not bool(deleted)


@pytest.mark.parametrize(("status", "new"), [(None, True), ({}, True), ({"observedGeneration": 1}, False)])
def test_a_graph_is_new_until_it_has_a_status(status, new):
    assert is_new(stored_graph(status=status)) == new


STARTS = Starts({"One": CheckpointStart("c", "", exists=True)})


UNDER_WAY = {"rollout": Rollout(status={"phase": "InProgress"}), "restart": RestartPlan(status={"phase": "Restarting"})}
#: A plan, its outcome, and what of `BEFORE` stays or is new: checkpoints and the restart, and the rolling update.
CARRIED = {
    "not rendered: all stays as it was reported": (
        Plan(failure=FAILURE),
        {"failure": FAILURE},
        {"checkpoints": {"One": {}}, "restart": {"phase": "Completed"}},
        {"phase": "Completed"},
    ),
    "not all written: checkpoints stay": (
        desiring(rollout=Rollout(), restart=RestartPlan(), starts=STARTS),
        {"failure": FAILURE},
        {"checkpoints": {"One": {}}},
        None,
    ),
    "the plan's word is the newest": (
        desiring(**UNDER_WAY, starts=STARTS),
        {"complete": True},
        {"checkpoints": {"One": {"checkpointName": "c", "ready": False}}, "restart": {"phase": "Restarting"}},
        {"phase": "InProgress"},
    ),
    "none is needed any more": (desiring(rollout=Rollout(), restart=RestartPlan()), {"complete": True}, {}, None),
}


@pytest.mark.parametrize(("plan", "outcome", "carried", "rolling"), CARRIED.values(), ids=CARRIED)
def test_fields_of_the_status_are_carried_over(plan, outcome, carried, rolling):
    world = observed(of=stored_graph(status=BEFORE))
    concluded = conclude(plan, CarryOutResult(world, **outcome))
    assert concluded.carried == carried
    assert concluded.rolling_update == rolling
    assert concluded.failure == outcome.get("failure")


NEW, OLD, SET = component("g-new", "new"), component("g-old", "old"), pod_clique_set()


@rows(
    "plan, there, parts",
    {
        "not there yet": (desiring(NEW), [], [("g-new", True, False)]),
        "there": (desiring(NEW), [NEW], [("g-new", True, True)]),
        "an old generation": (desiring(NEW), [NEW, OLD], [("g-new", True, True), ("g-old", False, True)]),
        "not rendered: what is there counts": (Plan(), [OLD], [("g-old", True, True)]),
        "on": (desiring(SET), [SET], [("graph-0-one", True, True)]),
        "to Grove": (
            desiring(SET, outgoing=[stored(OLD)]),
            [SET, OLD],
            [("graph-0-one", True, True), ("g-old", False, True)],
        ),
        "from Grove": (
            desiring(NEW, outgoing=[stored(SET)]),
            [SET, NEW],
            [("g-new", True, True), ("graph-0-one", False, True)],
        ),
        "the set was deleted": (desiring(NEW, outgoing=[stored(SET)]), [NEW], [("g-new", True, True)]),
    },
)
def test_the_workloads_of_a_component_are_matched_to_it(plan, there, parts):
    children = [stored(each, status={"observedGeneration": 1}) for each in there]
    names = [each["metadata"]["name"] for each in there if each is not SET]
    world = observed(*children, workloads={name: deployment(name) for name in names}, cliques=[clique("graph-0-one")])
    result = conclude(plan, CarryOutResult(world)).components["One"]
    assert [(part.name, part.current, part.workload is not None) for part in result] == parts


UNSEEN = {"observedGeneration": 0, "currentGenerationHash": "new"}
UPDATING, OVER = {"updateStartedAt": "x"}, {"updateStartedAt": "x", "updateEndedAt": "y"}


@pytest.mark.parametrize(
    ("status", "reached", "replicas", "received"),
    [
        ({}, "new", 1, True),
        ({"observedGeneration": 1}, "new", 1, True),
        (UNSEEN, "new", 1, False),
        # At the end of an update Grove reports that it has observed the set.
        ({**UNSEEN, "updateProgress": UPDATING}, "new", 1, True),
        ({**UNSEEN, "rollingUpdateProgress": UPDATING}, "new", 1, True),
        ({**UNSEEN, "updateProgress": UPDATING}, "old", 1, False),
        ({**UNSEEN, "updateProgress": OVER}, "new", 1, False),
        ({"observedGeneration": 0, "updateProgress": UPDATING}, None, 1, False),
        # For a component of 0 replicas Grove never reports that it has acted.
        (UNSEEN, "new", 0, True),
        (UNSEEN, "old", 0, False),
    ],
)
def test_a_set_that_grove_has_not_acted_on_is_not_observed(status, reached, replicas, received):
    there = clique("graph-0-one", replicas)
    there["status"]["currentPodCliqueSetGenerationHash"] = reached
    world = observed(stored(pod_clique_set(status=status)), cliques=[there])
    desired = pod_clique_set()
    desired["spec"]["template"]["cliques"][0]["spec"]["replicas"] = replicas
    (part,) = conclude(desiring(desired), CarryOutResult(world)).components["One"]
    assert part.observed == received


def test_rejected_pods_of_a_scaling_group_are_its_first_problem():
    words = 'failed, cause: pods "graph-0-one-0-one-ldr-x" is forbidden: exceeded quota: few'
    member = clique("graph-0-one-0-one-ldr")
    member["status"] = {"lastErrors": [{"code": "ERR_CREATE_POD", "description": words}]}
    group = clique("graph-0-one", resource=POD_CLIQUE_SCALING_GROUPS, ready=0)
    grouped = pod_clique_set()
    grouped["spec"]["template"]["podCliqueScalingGroups"] = [{"name": "one", "cliqueNames": ["one"], "replicas": 1}]
    late = {"metadata": {"name": "late"}, "status": {"phase": "Failed"}}
    world = observed(
        stored(grouped), cliques=[group], members={place_of(group): [member]}, pods={"graph-0-one": [late]}
    )
    (part,) = conclude(desiring(grouped), CarryOutResult(world)).components["One"]
    first = part.troubles[0]
    assert (first.reason, first.pod) == ("QuotaExceeded", "of graph-0-one-0-one-ldr")
    assert first.message == "exceeded quota: few"


def at_zero(replicas: int, total: int, ready: int, **status: Any) -> KubeObject:
    there = clique("graph-0-one", replicas)
    return {**there, "status": {**there["status"], "replicas": total, "readyReplicas": ready, **status}}


@rows(
    "desired, there, state",
    {
        "Grove has made nothing yet": (0, None, "pending"),
        "as Grove made it, and it serves": (0, at_zero(1, 1, 1), "pending"),
        "scaled, and not observed": (0, at_zero(0, 1, 1, observedGeneration=0), "pending"),
        "observed, and a pod is left": (0, at_zero(0, 1, 1), "pending"),
        "none is left": (0, at_zero(0, 0, 0, updatedReplicas=1), "successful"),
        "to be scaled up": (1, at_zero(0, 0, 0), "pending"),
        "scaled up, and does not serve yet": (1, at_zero(1, 1, 0), "pending"),
        "serves": (1, at_zero(1, 1, 1), "successful"),
    },
)
def test_a_component_of_0_replicas_on_grove_is_ready_when_it_has_no_pods(desired, there, state):
    """Grove rejects 0 in a new set, and never reports that it has acted on such a set."""
    (template,) = SET["spec"]["template"]["cliques"]
    scaled = {**template, "spec": {**template["spec"], "replicas": desired}}
    desired_set = {**SET, "spec": {**SET["spec"], "template": {**SET["spec"]["template"], "cliques": [scaled]}}}
    world = observed(stored(SET), cliques=[there] if there else [])
    concluded = conclude(desiring(desired_set), CarryOutResult(world))
    assert graph_status(world.graph, concluded, NOW)["state"] == state


def test_gpus_are_reported_if_the_graph_can_be_rendered():
    shapes = {"One": GpuShape(4, 5)}
    world = observed(stored(component("graph-one")), workloads={"graph-one": deployment("graph-one")}, gpus=shapes)
    assert conclude(desiring(component("graph-one")), CarryOutResult(world)).gpus == shapes
    assert conclude(Plan(failure=FAILURE), CarryOutResult(world)).gpus == {}


@pytest.mark.parametrize(
    ("constraint", "conditions"),
    [({}, []), ({"topologyConstraint": {"packDomain": "rack"}}, ["TopologyLevelsAvailable"])],
)
def test_topology_domains_are_reported_for_graphs_that_name_one(constraint, conditions):
    world = observed(stored(SET), of=stored_graph(**constraint), cliques=[clique("graph-0-one")])
    assert [each["type"] for each in conclude(desiring(SET), CarryOutResult(world)).conditions] == conditions
    assert conclude(desiring(NEW), CarryOutResult(world)).conditions == []
    reported = {**world.graph, "status": {"conditions": conclude(desiring(SET), CarryOutResult(world)).conditions}}
    lost = CarryOutResult(replace(world, graph=reported), FAILURE)
    assert [each["type"] for each in conclude(Plan(failure=FAILURE), lost).conditions] == conditions


STARTING = {
    "metadata": {"name": "p", "creationTimestamp": "2026-01-02T03:04:05Z"},
    "spec": {"containers": [{"name": "main", "readinessProbe": {}}]},
    "status": {
        "conditions": [{"type": "PodReadyToStartContainers", "status": "True"}],
        "containerStatuses": [
            {
                "name": "main",
                "ready": False,
                "state": {"running": {"startedAt": (NOW - timedelta(seconds=570)).isoformat()}},
            }
        ],
    },
}


@rows(
    "plan, outcome, pods, delay",
    {
        "events suffice": (desiring(NEW), {}, [], None),
        "only a change of the graph can help": (Plan(failure=FAILURE), {"failure": FAILURE}, [], None),
        "refused by the API server": (desiring(NEW), {"failure": REFUSED}, [], 60.0),
        "a restart": (
            desiring(NEW, restart=RestartPlan(status={"phase": "Restarting"})),
            {"failure": REFUSED},
            [],
            10.0,
        ),
        "a restart that is over": (desiring(NEW, restart=RestartPlan(status={"phase": "Completed"})), {}, [], None),
        "frontends admit a new worker": (desiring(NEW, rollout=Rollout(again=3.0)), {}, [], 3.0),
        "a pod on Grove that would have started by then": (desiring(SET), {}, [STARTING], 30.0),
        "components check pods themselves": (desiring(NEW), {}, [STARTING], None),
    },
)
def test_the_next_reconcile_is_due_at_the_earliest_deadline(plan, outcome, pods, delay):
    world = observed(cliques=[clique("graph-0-one", ready=0)], pods={"graph-0-one": pods})
    result = next_reconcile(plan, CarryOutResult(world, **outcome))
    assert result == (pytest.approx(delay, abs=1) if delay is not None else None)


UNAVAILABLE = {"type": "TopologyLevelsUnavailable", "status": "True", "reason": "x", "message": "no rack"}


async def test_a_missing_topology_domain_is_announced_with_the_status_that_reports_it():
    """A status that only reports progress is delayed, and the graph is reconciled meanwhile."""
    there = stored(SET, status={"conditions": [UNAVAILABLE]})
    graph = stored_graph(topologyConstraint={"packDomain": "rack"}, status={"observedGeneration": 1})
    outcome = CarryOutResult(observed(there, of=graph))
    for statuses, lines in ((Written(1.0), []), (Written(), ["TopologyLevelsUnavailable"])):
        announced = Announced()
        await GraphReport(statuses, announced, PodEvents(None)).write(desiring(SET), outcome)  # type: ignore[arg-type]
        assert [each.reason for each in announced.facts if each.action == "Schedule"] == lines


async def test_events_are_requested_only_for_the_pods_that_the_status_reports():
    """Pods of an old generation end whether they start or not."""

    class Kube:
        def __init__(self) -> None:
            self.selectors: list[str] = []

        async def list(self, *_: Any, field_selector: str, most: int) -> list[KubeObject]:
            self.selectors.append(field_selector)
            return []

    def unstarted(name: str) -> KubeObject:
        return {"metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}}

    kube, names = Kube(), ("g-new", "g-old")
    world = observed(
        *(stored(each) for each in (NEW, OLD)),
        workloads={name: deployment(name, 1, 0) for name in names},
        pods={name: [unstarted(f"{name}-1")] for name in names},
    )
    events = PodEvents(kube)  # type: ignore[arg-type]
    await GraphReport(Written(), Announced(), events).write(desiring(NEW), CarryOutResult(world))
    assert kube.selectors == ["regarding.uid=g-new-1,type=Warning"]


@pytest.mark.parametrize("refused", [None, REFUSED], ids=["written", "an object is refused"])
@pytest.mark.parametrize(
    ("rollout", "line"),
    [
        (Rollout(components=["One"], started=True), "Started RollingUpdate: Rolling update of One started"),
        (Rollout(components=["One"], completed=True), "Completed RollingUpdate: Rolling update of One completed"),
    ],
)
async def test_a_rolling_update_is_announced_with_the_status_that_reports_it(rollout, line, refused):
    plan, outcome = desiring(NEW, rollout=rollout), CarryOutResult(observed(), failure=refused)
    for statuses, lines in ((Written(OBSERVED_WITHIN), []), (Written(), [f"Normal RollingUpdate{line}"])):
        announced = Announced()
        await GraphReport(statuses, announced, PodEvents(None)).write(plan, outcome)  # type: ignore[arg-type]
        assert [each for each in announced.lines if "RollingUpdate" in each] == lines


async def test_the_next_step_of_a_restart_does_not_wait_for_a_delayed_status() -> None:
    report = GraphReport(Written(OBSERVED_WITHIN), Announced(), PodEvents(None))  # type: ignore[arg-type]
    under_way = desiring(restart=RestartPlan(status={"observedID": "1", "phase": "Restarting"}))
    assert await report.write(under_way, CarryOutResult(observed())) == RESTART_INTERVAL
    assert await report.write(desiring(), CarryOutResult(observed())) == OBSERVED_WITHIN
