"""Topology constraints in Grove's own form: the parts of a set that have them, and no other change."""

from dataclasses import replace
from typing import Any

from dynamo_shared.api.objects import KubeObject

from .building import CONFIG, component, graph, graph_children, of_kind
from .test_priority import LEADER_WORKER_SETS, TENSORS

ON_GROVE = replace(CONFIG, grove=True)
ZONE, RACK, HOST = ({"pack": {"required": domain}, "later": [None]} for domain in ("zone", "rack", "host"))


def override(constraint: Any, *path: str) -> KubeObject:
    value = {"topologyConstraint": constraint, "roleName": "x"}
    for step in reversed(path):
        value = {step: value}
    return {"providerOverride": {"apiVersion": "grove.io/v1alpha1", "value": value}}


def template_of(*components: KubeObject, **spec: Any) -> dict[str, Any]:
    (result,) = of_kind(graph_children(graph(*components, **spec), ON_GROVE), "PodCliqueSet")
    template: dict[str, Any] = result["spec"]["template"]
    return template


ROLES = [{"name": "leader", **override(HOST)}, {"name": "worker"}]
SEVERAL: dict[str, Any] = {"main": TENSORS, "multinode": {"nodeCount": 3}}


def test_each_part_has_its_own_constraint_and_no_other_field() -> None:
    forced: dict[str, Any] = {"experimental": {"grove": {"forceScalingGroup": True}}}
    given = template_of(
        component("One", **override(RACK)),
        component("Two", roles=ROLES, **SEVERAL, **override(RACK)),
        component("Three", **forced, **override(HOST)),
        **override(ZONE, "spec", "template"),
    )
    plain = template_of(component("One"), component("Two", **SEVERAL), component("Three", **forced))
    expected = {"one": RACK, "two-ldr": HOST}
    for clique in plain["cliques"]:
        if clique["name"] in expected:
            clique["topologyConstraint"] = expected[clique["name"]]
    two, three = plain["podCliqueScalingGroups"]
    two["topologyConstraint"], three["topologyConstraint"] = RACK, HOST
    assert given == {**plain, "topologyConstraint": ZONE}


def test_a_constraint_that_is_not_an_object_is_not_written() -> None:
    assert template_of(component(**override("rack"))) == template_of(component())


def test_without_grove_no_object_has_the_constraint() -> None:
    given = graph_children(
        graph(component(roles=ROLES, **SEVERAL, **override(RACK)), **override(ZONE)), LEADER_WORKER_SETS
    )
    roles = [{"name": "leader"}, {"name": "worker"}]
    assert given == graph_children(graph(component(roles=roles, **SEVERAL)), LEADER_WORKER_SETS)
