"""How many replicas of a component Grove starts together, and components that are scaling groups on request."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_shared.api.objects import KubeObject

from .building import CONFIG, component, graph, graph_children, of_kind, workloads
from .test_priority import LEADER_WORKER_SETS, TENSORS

ON_GROVE = replace(CONFIG, grove=True)


def template_of(single: KubeObject) -> dict[str, Any]:
    (result,) = of_kind(graph_children(graph(single), ON_GROVE), "PodCliqueSet")
    template: dict[str, Any] = result["spec"]["template"]
    return template


@pytest.mark.parametrize(("fields", "least"), [({}, 1), ({"minAvailable": 3}, 3)])
def test_a_clique_has_min_available(fields: dict[str, Any], least: int) -> None:
    (clique,) = template_of(component(replicas=4, **fields))["cliques"]
    assert (clique["spec"]["replicas"], clique["spec"]["minAvailable"]) == (4, least)


def test_a_scaling_group_has_it_and_its_cliques_need_all_their_pods() -> None:
    template = template_of(component(replicas=4, minAvailable=2, main=TENSORS, multinode={"nodeCount": 3}))
    (group,) = template["podCliqueScalingGroups"]
    assert (group["replicas"], group["minAvailable"]) == (4, 2)
    cliques = {each["name"]: each["spec"]["minAvailable"] for each in template["cliques"]}
    assert cliques == {"worker-ldr": 1, "worker-wkr": 2}


def test_a_group_that_shares_memory_between_pods_has_it() -> None:
    main = {**TENSORS, "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    single = component(replicas=3, minAvailable=3, main=main, experimental={"gpuMemoryService": {"mode": "InterPod"}})
    config = replace(ON_GROVE, device_claims=True)
    (result,) = of_kind(graph_children(graph(single, backendFramework="vllm"), config), "PodCliqueSet")
    template = result["spec"]["template"]
    assert [each["minAvailable"] for each in template["podCliqueScalingGroups"]] == [3]
    assert {each["spec"]["minAvailable"] for each in template["cliques"]} == {1}


def override(value: dict[str, Any]) -> dict[str, Any]:
    return {"providerOverride": {"apiVersion": "grove.io/v1alpha1", "value": value}}


SEVERAL: dict[str, Any] = {"main": TENSORS, "multinode": {"nodeCount": 3}}
FORCED: dict[str, Any] = {"experimental": {"grove": {"forceScalingGroup": True}}}


@pytest.mark.parametrize(
    ("fields", "value"),
    [({}, {"spec": {"minAvailable": 2}}), (SEVERAL, {"minAvailable": 2}), (FORCED, {"minAvailable": 2})],
    ids=["a clique", "a group", "a forced group"],
)
def test_a_grove_override_gives_the_same_result(fields: dict[str, Any], value: dict[str, Any]) -> None:
    given = template_of(component(replicas=4, **fields, **override(value)))
    assert given == template_of(component(replicas=4, minAvailable=2, **fields))


def test_without_grove_nothing_changes() -> None:
    given = workloads(graph(component(replicas=4, minAvailable=3)), LEADER_WORKER_SETS)
    assert given == workloads(graph(component(replicas=4)), LEADER_WORKER_SETS)


def test_a_single_node_component_becomes_a_group_of_single_pods_on_request() -> None:
    plain, forced = (
        template_of(component(replicas=4, minAvailable=2, topologyConstraint={"packDomain": "rack"}, **fields))
        for fields in ({}, FORCED)
    )
    (group,) = forced["podCliqueScalingGroups"]
    rack = {"topologyConstraint": {"packDomain": "rack"}}
    assert group == {"name": "worker", "cliqueNames": ["worker"], "replicas": 4, "minAvailable": 2, **rack}
    (before,), (after,) = plain["cliques"], forced["cliques"]
    assert (after["spec"]["replicas"], after["spec"]["minAvailable"]) == (1, 1)
    assert after["spec"]["podSpec"] == before["spec"]["podSpec"]
    assert before == {**after, **rack, "spec": before["spec"]}


@pytest.mark.parametrize("fields", [{}, {"forceScalingGroup": False}])
def test_otherwise_it_becomes_a_clique(fields: dict[str, Any]) -> None:
    assert template_of(component(experimental={"grove": fields})) == template_of(component())


def test_a_multi_node_component_becomes_the_same_group() -> None:
    plain = component(replicas=2, main=TENSORS, multinode={"nodeCount": 3})
    assert template_of({**plain, **FORCED}) == template_of(plain)


def test_the_name_of_a_group_leaves_room_for_that_of_its_clique() -> None:
    long = {"name": "g" * 30}
    (result,) = of_kind(graph_children(graph(component("Worker" * 2, **FORCED), **long), ON_GROVE), "PodCliqueSet")
    assert len(result["metadata"]["name"]) == 45 - 2 * 12


def test_without_grove_a_group_is_like_any_component() -> None:
    given = workloads(graph(component(**FORCED)), LEADER_WORKER_SETS)
    assert given == workloads(graph(component()), LEADER_WORKER_SETS)
