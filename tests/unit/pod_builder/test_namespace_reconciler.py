"""NamespaceReconciler: objects that graphs share are deleted with the last graph, and no others."""

import pytest
from dynamo_pod_builder.reconcilers.namespace import NamespaceReconciler
from dynamo_pod_builder.render import RenderConfig
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube.errors import Forbidden

from tests.building.objects import with_metadata
from tests.unit.render.building import component, graph_children

from .graph.building import stored, stored_graph
from .graph.test_carry_out import Ledger
from .indexed import indexed

GRAPH = stored_graph(component("Front", "frontend"))
CHILDREN = [stored(each) for each in graph_children(GRAPH)]
SHARED = [each for each in CHILDREN if "ownerReferences" not in each["metadata"]]
OWN_ROLES = [
    stored(each)
    for each in graph_children(stored_graph(component("Planner", "planner")), RenderConfig(discovery_backend="etcd"))
    if each["metadata"]["name"].startswith("planner-serviceaccount")
]
#: The leftovers of a graph that was deleted without its children.
LEFT = [
    stored({**each, "metadata": {name: value for name, value in each["metadata"].items() if name != "ownerReferences"}})
    for each in graph_children(GRAPH, RenderConfig(discovery_backend="kubernetes"))
]
ACCESS = ("ServiceAccount", "Role", "RoleBinding")
LEFT_ON_GROVE = [stored({**each, "kind": "PodCliqueSet", "apiVersion": "grove.io/v1alpha1"}) for each in LEFT[-1:]]
WRITES = ["delete RoleBinding planner-serviceaccount-binding", "delete ServiceAccount planner-serviceaccount"]


@pytest.mark.parametrize(
    ("observed", "writes"),
    [
        pytest.param([], [], id="nothing there"),
        pytest.param([GRAPH, *CHILDREN], [], id="a graph is there"),
        pytest.param(SHARED, WRITES, id="the last graph is gone"),
        pytest.param(
            OWN_ROLES,
            [*WRITES, "delete Role planner-serviceaccount-role"],
            id="the last graph with access of its own is gone",
        ),
        pytest.param(LEFT, [], id="components that a graph left behind run with it"),
        pytest.param([*SHARED, *LEFT_ON_GROVE], [], id="so do those on Grove"),
        pytest.param(
            [each for each in LEFT if each["kind"] in ACCESS],
            [f"delete {each['kind']} {each['metadata']['name']}" for each in LEFT if each["kind"] in ACCESS],
            id="what was left behind is gone",
        ),
        pytest.param([with_metadata(each, labels={}) for each in SHARED], [], id="of another program"),
        pytest.param([with_metadata(each, namespace="other") for each in SHARED], [], id="of another namespace"),
        pytest.param([each for each in CHILDREN if each not in SHARED], [], id="what has an owner goes with it"),
    ],
)
async def test_shared_objects_are_deleted_with_the_last_graph(observed, writes):
    ledger = Ledger()
    await NamespaceReconciler(indexed(*observed), ledger).reconcile(ObjectKey("", "ns"))  # type: ignore[arg-type]
    assert sorted(ledger.lines) == sorted(writes)


async def test_a_shared_object_that_may_not_be_deleted_blocks_no_other():
    ledger = Ledger(**{"planner-serviceaccount-binding": Forbidden(403, "Forbidden", "it is protected")})
    with pytest.raises(Forbidden):
        await NamespaceReconciler(indexed(*SHARED), ledger).reconcile(ObjectKey("", "ns"))  # type: ignore[arg-type]
    assert ledger.lines == ["delete ServiceAccount planner-serviceaccount"]
