"""A component is scaled to no number that its graph cannot have, also where its adapter takes any."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from dynamo_dynadmin.api.actions import Actions
from dynamo_dynadmin.api.collection_reader import CollectionReader
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.identity.access import AccessVerdict
from dynamo_dynadmin.identity.who import Caller
from dynamo_dynadmin.state.hub import Hub
from dynamo_shared.api.resources import HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS, ObjectKey
from dynamo_shared.kube import Identity
from dynamo_shared.state.versions import Version

from tests.building.waiting import with_turns

GRAPH = {
    "metadata": {"name": "g", "namespace": "ns"},
    "spec": {"components": [{"name": "Decode", "minAvailable": 3, "scalingAdapter": {}}]},
    "status": {"components": {"Decode": {"componentKind": "PodClique"}}},
}


class Scales:
    """A call that asks for replicas, with an API server that takes each number of the adapter."""

    namespace, name = "ns", "g"
    caller = Caller(Identity("ann"))
    warnings: tuple[str, ...] = ()

    def __init__(self, replicas: int, graph: Any = GRAPH) -> None:
        self.kube = self
        self.replicas, self.graph = replicas, graph

    async def object(self) -> Any:
        return {"component": "Decode", "replicas": self.replicas}

    async def get(self, *_: Any) -> Any:
        return self.graph

    async def merge_patch(self, *args: Any, **_: Any) -> Any:
        return args[-1]

    def flag(self, _: str) -> bool:
        return False

    def answer(self, body: Any) -> Any:
        return body


def scaling(*scaled: str, allowed: bool = True) -> Actions:
    """The actions for a caller with or without the right to scale; an HPA scales each of these adapters."""
    absent: Any = None
    hub = Hub(absent, "c", [SCALED_OBJECTS, HORIZONTAL_POD_AUTOSCALERS])
    for number, name in enumerate(scaled):
        target = {"kind": "DynamoGraphDeploymentScalingAdapter", "name": name}
        payload = msgspec.json.encode({"spec": {"scaleTargetRef": target}})
        key = ObjectKey("ns", f"hpa-{number}")
        hub.entries(HORIZONTAL_POD_AUTOSCALERS).take(key, number, Version(key.name, 1, ""), payload)

    async def may(_: Caller, act: object) -> AccessVerdict:
        assert str(act) == "patch dynamographdeploymentscalingadapters.nvidia.com/scale in namespace ns"
        return AccessVerdict(allowed, "")

    access: Any = SimpleNamespace(may=may)
    return Actions(hub, CollectionReader(hub, access, absent), absent)


async def test_fewer_replicas_than_grove_starts_together_are_refused() -> None:
    asked: Any = Scales(2)
    with pytest.raises(ProblemError) as caught:
        await scaling().scale(asked)
    assert "2 replicas are fewer than the 3 of minAvailable" in str(caught.value.errors)


@pytest.mark.parametrize(
    ("components", "says"),
    [([{"name": "Frontend"}, {"name": "Prefill"}], "one of Frontend, Prefill"), ([], "graph g has no components")],
)
async def test_a_component_that_the_graph_lacks_is_refused(components: list[Any], says: str) -> None:
    """Without components, the message ended after "one of"."""
    asked: Any = Scales(1, {**GRAPH, "spec": {"components": components}})
    with pytest.raises(ProblemError) as caught:
        await scaling().scale(asked)
    assert [each.detail for each in caught.value.errors] == [says]


@pytest.mark.parametrize(("replicas", "graph"), [(0, GRAPH), (3, GRAPH), (2, {**GRAPH, "status": {}})])
async def test_other_numbers_are_given_to_the_adapter(replicas: int, graph: Any) -> None:
    asked: Any = Scales(replicas, graph)
    answer: Any = await scaling().scale(asked)
    assert (answer["adapter"], answer["replicas"]) == ("g-decode", replicas)


@pytest.mark.parametrize(("allowed", "kind"), [(True, "owned-replicas"), (False, "forbidden")])
async def test_who_may_not_scale_does_not_learn_which_autoscaler_does(allowed: bool, kind: str) -> None:
    """Any authenticated caller learned the names of another namespace's autoscalers."""
    asked: Any = Scales(3)
    with pytest.raises(ProblemError) as caught:
        await scaling("g-decode", allowed=allowed).scale(asked)
    assert caught.value.kind == kind
    assert ("hpa-0" in str(caught.value)) is allowed


async def test_other_callers_have_turns_while_the_autoscaler_is_looked_up() -> None:
    asked: Any = Scales(3)
    _, turns = await with_turns(scaling(*("other",) * 20).scale(asked))
    assert turns >= 20
