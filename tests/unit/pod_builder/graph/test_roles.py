"""A graph whose leader and workers have their own pod templates, from its creation to a change of one template."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder.reconcilers.graph.carry_out import CarryOutResult
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.reconcilers.graph.report import conclude
from dynamo_pod_builder.reconcilers.graph.steps import planned
from dynamo_pod_builder.status.graph import graph_status
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import RESTART_AT

from tests.unit.render.building import CONFIG, component_children, of_kind

from .building import NOW, observed, stored, stored_graph

SETS = replace(CONFIG, leader_worker_sets=True)


NO_IMAGES: Mapping[str, str] = {}


def template(role: str, image: str = "img:1") -> KubeObject:
    main = {"name": "main", "image": image, "command": ["torchrun"], "args": [role]}
    return {"metadata": {"annotations": {"note": role}}, "spec": {"containers": [main]}}


def graph(replicas: int = 1, restart: KubeObject | None = None, images: Mapping[str, str] = NO_IMAGES) -> KubeObject:
    """`images`: by role, an image other than the default."""
    roles = [{"name": role, "podTemplate": template(role, images.get(role, "img:1"))} for role in ("leader", "worker")]
    spread = {"name": "One", "type": "worker", "replicas": replicas, "multinode": {"nodeCount": 3}, "roles": roles}
    return stored_graph(spread, **({} if restart is None else {"restart": restart}))


def made_by(plan: Plan) -> KubeObject:
    assert plan.failure is None
    (made,) = of_kind(list(plan.desired), "DynamoComponentDeployment")
    return made


def pods_of(made: KubeObject) -> list[KubeObject]:
    """The pod templates of leader and workers that a component deployment renders."""
    (groups,) = of_kind(component_children(made, SETS), "LeaderWorkerSet")
    return [groups["spec"]["leaderWorkerTemplate"][name] for name in ("leaderTemplate", "workerTemplate")]


FIRST = made_by(planned(observed(of=graph(), config=SETS)))
NAME = objects.name(FIRST)


def groups(name: str = NAME, replicas: int = 1, ready: int | None = None) -> KubeObject:
    """A LeaderWorkerSet, which counts groups, not pods."""
    serving = replicas if ready is None else ready
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-of-groups-{name}", "generation": 1}
    status: dict[str, Any] = {"replicas": replicas, "updatedReplicas": replicas, "readyReplicas": serving}
    status |= {"conditions": [{"type": "Available", "status": str(serving >= replicas)}]}
    return {"kind": "LeaderWorkerSet", "metadata": metadata, "spec": {"replicas": replicas}, "status": status}


def there(made: KubeObject = FIRST) -> KubeObject:
    return stored(made, status={"observedGeneration": 1})


def after(of: KubeObject, workload: KubeObject | None = None) -> Plan:
    """The plan for a graph whose first component deployment exists."""
    return planned(observed(there(), of=of, config=SETS, workloads={NAME: workload or groups()}))


@pytest.mark.parametrize(
    ("ready", "state", "says"),
    [(0, "pending", "Resources not ready: One: 0 of 2 groups ready"), (2, "successful", None)],
)
def test_the_status_counts_groups(ready: int, state: str, says: str | None) -> None:
    world = observed(there(), of=graph(2), config=SETS, workloads={NAME: groups(NAME, 2, ready)})
    status = graph_status(world.graph, conclude(planned(world), CarryOutResult(world)), NOW)
    assert status["state"] == state
    assert status["conditions"][0]["message"] == (says or "All resources are ready")
    counted = status["components"]["One"]
    assert (counted["componentKind"], counted["replicas"], counted["readyReplicas"]) == ("LeaderWorkerSet", 2, ready)


def test_an_unchanged_graph_keeps_its_generation() -> None:
    assert objects.name(made_by(after(graph()))) == NAME
    assert after(graph()).rollout.status is None


@pytest.mark.parametrize("role", ["leader", "worker"])
def test_a_change_of_one_role_replaces_all_pods_of_a_replica(role: str) -> None:
    plan = after(graph(images={role: "img:2"}))
    made = made_by(plan)
    assert objects.name(made) != NAME
    assert plan.rollout.status is not None
    assert plan.rollout.status["phase"] == "InProgress"
    images = [pod["spec"]["containers"][0]["image"] for pod in pods_of(made)]
    assert images == ["img:2" if each == role else "img:1" for each in ("leader", "worker")]
    generations = {pod["metadata"]["labels"][labels.WORKER_HASH] for pod in pods_of(made)}
    assert generations == {objects.labels(made)[labels.WORKER_HASH]}


def test_a_restart_includes_all_pods_and_keeps_the_generation() -> None:
    plan = after(graph(restart={"id": "1"}))
    made = made_by(plan)
    assert objects.name(made) == NAME
    assert plan.restart.status == {"observedID": "1", "phase": "Restarting", "inProgress": ["One"]}
    for role, pod in zip(("leader", "worker"), pods_of(made), strict=True):
        annotations = pod["metadata"]["annotations"]
        assert (annotations[RESTART_AT], annotations["note"]) == ("1", role)
    # The id stays after the restart.
    over = planned(observed(there(made), of=graph(), config=SETS, workloads={NAME: groups()}))
    assert pods_of(made_by(over)) == pods_of(made)


def test_changed_replicas_change_no_pod() -> None:
    made = made_by(after(graph(3)))
    assert (objects.name(made), made["spec"]["replicas"]) == (NAME, 3)
    assert pods_of(made) == pods_of(FIRST)


def of_operator() -> KubeObject:
    """As NVIDIA's operator stores it: the roles have the templates, and the component has none."""
    left = copy.deepcopy(FIRST)
    leader, _ = left["spec"]["roles"]
    leader["podTemplate"] = left["spec"].pop("podTemplate")
    mine = objects.labels(left)[labels.WORKER_HASH]
    left["metadata"]["labels"][labels.WORKER_HASH] = "0ld"
    left["metadata"]["name"] = NAME.replace(mine, "0ld")
    for role in left["spec"]["roles"]:
        role["podTemplate"]["metadata"]["labels"][labels.WORKER_HASH] = "0ld"
    return there(left)


@pytest.mark.parametrize(("images", "kept"), [({}, True), ({"leader": "img:2"}, False), ({"worker": "img:2"}, False)])
def test_pods_of_the_reference_operator_stay_unless_a_role_changes(images: dict[str, str], kept: bool) -> None:
    left = of_operator()
    name = objects.name(left)
    world = observed(left, of=graph(images=images), config=SETS, workloads={name: groups(name)})
    made = made_by(planned(world))
    assert (objects.name(made) == name) is kept
    if kept:
        assert pods_of(made) == pods_of(left)
