"""A graph that is deleted and created again finds what the garbage collector has not deleted yet."""

import pytest
from dynamo_pod_builder.applying import Applier
from dynamo_pod_builder.errors import NameTaken, PredecessorRemains
from dynamo_shared.api.objects import KubeObject

from tests.unit.render.building import component, graph_children

from .graph.building import stored, stored_graph
from .indexed import indexed

CHILD = next(each for each in graph_children(stored_graph(component())) if each["kind"] == "ServiceAccount")
(OWNER,) = CHILD["metadata"]["ownerReferences"]


def owned(**owner: str) -> KubeObject:
    there = stored(CHILD)
    return {**there, "metadata": {**there["metadata"], "ownerReferences": [{**OWNER, **owner}]}}


@pytest.mark.parametrize(
    ("there", "raised"),
    [
        pytest.param(owned(uid="old"), PredecessorRemains, id="of the graph that had the name before"),
        pytest.param(owned(uid="old", name="another"), NameTaken, id="of another graph"),
        pytest.param(owned(uid="old", kind="Deployment"), NameTaken, id="of another kind"),
    ],
)
async def test_whose_object_is_waited_for(there: KubeObject, raised: type[Exception]) -> None:
    with pytest.raises(NameTaken) as error:
        await Applier(None, indexed(there)).ensure(CHILD)  # type: ignore[arg-type]
    assert type(error.value) is raised
