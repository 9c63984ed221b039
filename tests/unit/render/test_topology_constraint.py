"""The field of a PodCliqueSet for the topology domain of its pods: each release of Grove has other fields for it."""

from dataclasses import replace
from typing import Any

import pytest

from .building import CONFIG, component, graph, graph_children, of_kind

ALPHA_8 = frozenset({"packDomain"})
ALPHA_9 = frozenset({"packDomain", "topologyName"})
ALPHA_11 = frozenset({"pack", "packDomain", "topologyName"})
LATER = frozenset({"pack", "topologyName"})
BY_DOMAIN, NAMED = {"packDomain": "rack"}, {"topologyName": "dc", "packDomain": "rack"}
PACKED = {"topologyName": "dc", "pack": {"required": "rack"}}


def constraints(served, present=frozenset(), *, whole=None, nodes=1):
    """Constraints of the set, and of its only clique or group; `whole` is the domain of the graph."""
    topology = {"clusterTopologyName": "dc", **({"packDomain": whole} if whole else {})}
    multinode: Any = {"multinode": {"nodeCount": nodes}} if nodes > 1 else {}
    gpus = {"limits": {"nvidia.com/gpu": "1"}}
    engine = {"command": ["python3", "-m", "dynamo.vllm"], "resources": gpus}
    worker = component("One", topologyConstraint={"packDomain": "rack"}, main=engine, **multinode)
    obj = graph(worker, topologyConstraint=topology)
    config = replace(CONFIG, grove=True, topology_fields=served)
    (clique_set,) = of_kind(graph_children(obj, config, topology_fields=present), "PodCliqueSet")
    template = clique_set["spec"]["template"]
    (part,) = template["podCliqueScalingGroups"] if nodes > 1 else template["cliques"]
    return template.get("topologyConstraint"), part["topologyConstraint"]


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize(
    ("served", "expected"), [(ALPHA_8, BY_DOMAIN), (ALPHA_9, NAMED), (ALPHA_11, PACKED), (LATER, PACKED)]
)
def test_the_fields_are_those_that_grove_serves(served, expected, nodes):
    assert constraints(served, nodes=nodes) == (None, expected)


def test_the_default_field_exists_in_every_release_that_the_reference_supported():
    obj = graph(component("One", topologyConstraint={"packDomain": "rack"}))
    (clique_set,) = of_kind(graph_children(obj, replace(CONFIG, grove=True)), "PodCliqueSet")
    assert clique_set["spec"]["template"]["cliques"][0]["topologyConstraint"] == BY_DOMAIN


def test_other_components_of_a_graph_without_a_domain_have_no_constraint():
    one, other = component("One", topologyConstraint={"packDomain": "rack"}), component("Two", "frontend")
    obj = graph(one, other, topologyConstraint={"clusterTopologyName": "dc"})
    (clique_set,) = of_kind(graph_children(obj, replace(CONFIG, grove=True)), "PodCliqueSet")
    cliques = {each["name"]: each.get("topologyConstraint") for each in clique_set["spec"]["template"]["cliques"]}
    assert cliques == {"one": BY_DOMAIN, "two": None}


def test_components_inherit_the_topology_of_a_graph_that_has_a_domain():
    packed = {"topologyName": "dc", "pack": {"required": "zone"}}
    assert constraints(ALPHA_11, whole="zone") == (packed, {"pack": {"required": "rack"}})


@pytest.mark.parametrize(
    ("served", "present", "expected"),
    [
        pytest.param(ALPHA_11, {"packDomain"}, NAMED, id="Grove lets a name be added, with the domain as it was"),
        pytest.param(ALPHA_11, {"packDomain", "topologyName"}, NAMED, id="and then nothing be changed"),
        pytest.param(LATER, {"packDomain", "topologyName"}, PACKED, id="unless the field is served no more"),
        pytest.param(ALPHA_8, {"pack", "topologyName"}, PACKED, id="a schema that cannot be read takes nothing away"),
    ],
)
def test_an_existing_set_keeps_its_fields(served, present, expected):
    assert constraints(served, frozenset(present)) == (None, expected)
