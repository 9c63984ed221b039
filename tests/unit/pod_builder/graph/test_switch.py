"""Step `switch`: graphs that move between Deployments and Grove: what is deleted when, and what is handed over."""

import pytest
from dynamo_pod_builder.children import graph_uid
from dynamo_pod_builder.reconcilers.graph.parts import all_serve
from dynamo_pod_builder.reconcilers.graph.steps.switch import moved_to_components, switch
from dynamo_pod_builder.status.component import Failure
from dynamo_pod_builder.status.graph import Generation
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    POD_CLIQUE_SETS,
    SERVICES,
    Resource,
    controller_reference,
)

from tests.building.objects import object_of, with_metadata

from .building import clique, desiring, observed


def owned(resource: Resource, name: str) -> KubeObject:
    owner = controller_reference(DYNAMO_GRAPH_DEPLOYMENTS, "graph", "graph-uid")
    return object_of(resource, name, uid=f"uid-of-{resource.kind}-{name}", ownerReferences=[owner])


def component(name: str, type_: str) -> KubeObject:
    containers = [{"name": "main", "image": "i"}]
    spec = {"name": name, "type": type_, "podTemplate": {"spec": {"containers": containers}}}
    return {**owned(DYNAMO_COMPONENT_DEPLOYMENTS, f"g-{name.lower()}"), "spec": spec}


SET = owned(POD_CLIQUE_SETS, "g")
CAFE = with_metadata(SET, name="g-cafe")
FRONTEND = component("Frontend", "frontend")


@pytest.mark.parametrize(
    ("desired", "there", "outgoing"),
    [
        pytest.param([FRONTEND], [FRONTEND], [], id="nothing to leave"),
        pytest.param([FRONTEND], [SET, FRONTEND], [SET], id="from Grove"),
        pytest.param([SET], [SET, FRONTEND], [FRONTEND], id="to Grove"),
        pytest.param([CAFE], [SET, FRONTEND], [FRONTEND, SET], id="to a set of another name"),
        pytest.param([SET], [SET], [], id="on Grove"),
    ],
)
def test_workloads_of_the_former_way_are_outgoing(desired, there, outgoing):
    assert list(switch(desiring(*desired), observed(*there)).outgoing) == outgoing


@pytest.mark.parametrize(
    ("parts", "over"),
    [
        ([Generation("a", clique("c"))], True),
        ([Generation("a", clique("c", ready=0))], False),
        ([Generation("a", None)], False),
        ([Generation("a", clique("c")), Generation("old", clique("c", ready=0), current=False)], True),
        ([Generation("a", clique("c"), failure=Failure("Refused", "quota"))], False),
    ],
)
def test_a_switch_is_over_when_all_desired_workloads_serve(parts, over):
    assert all_serve({"A": [Generation("a", clique("c"))], "B": parts}) == over


HELD = owned(SERVICES, "g-frontend")


@pytest.mark.parametrize(
    ("there", "desired", "names"),
    [
        pytest.param([FRONTEND], [FRONTEND], [], id="the component has its own"),
        pytest.param([FRONTEND, owned(SERVICES, "g-gone")], [FRONTEND], [], id="of another name"),
        pytest.param([FRONTEND, HELD], [], [], id="of an old way"),
        pytest.param([FRONTEND, HELD], [SET], [], id="the graph stays on Grove"),
        pytest.param([HELD], [FRONTEND], [], id="no component yet"),
        pytest.param([FRONTEND, HELD], [FRONTEND], ["g-frontend"], id="handed down"),
    ],
)
def test_services_are_handed_over_to_the_components_that_need_them(there, desired, names):
    handed = moved_to_components(desiring(*desired), observed(*there))
    assert [each["metadata"]["name"] for each in handed] == names
    assert all(each["metadata"]["ownerReferences"][0]["uid"] == FRONTEND["metadata"]["uid"] for each in handed)


def test_a_component_without_an_owner_has_no_graph():
    assert graph_uid(FRONTEND) == "graph-uid"
    assert graph_uid({"metadata": {"name": "alone"}}) == ""
