"""A component is scaled to no number that its graph cannot have, also where its adapter takes any."""

from types import SimpleNamespace
from typing import Any

import pytest
from dynamo_dynadmin.api.actions import Actions
from dynamo_dynadmin.http.problems import ProblemError

GRAPH = {
    "metadata": {"name": "g", "namespace": "ns"},
    "spec": {"components": [{"name": "Decode", "minAvailable": 3, "scalingAdapter": {}}]},
    "status": {"components": {"Decode": {"componentKind": "PodClique"}}},
}


class Scales:
    """A call that asks for replicas, with an API server that takes each number of the adapter."""

    namespace, name = "ns", "g"
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


def scaling() -> Actions:
    nothing: Any = SimpleNamespace(entries=lambda _: SimpleNamespace(of_namespace=lambda _: ()))
    return Actions(nothing, nothing)


async def test_fewer_replicas_than_grove_starts_together_are_refused() -> None:
    asked: Any = Scales(2)
    with pytest.raises(ProblemError) as caught:
        await scaling().scale(asked)
    assert "2 replicas are fewer than the 3 of minAvailable" in str(caught.value.errors)


@pytest.mark.parametrize(("replicas", "graph"), [(0, GRAPH), (3, GRAPH), (2, {**GRAPH, "status": {}})])
async def test_other_numbers_are_given_to_the_adapter(replicas: int, graph: Any) -> None:
    asked: Any = Scales(replicas, graph)
    answer: Any = await scaling().scale(asked)
    assert (answer["adapter"], answer["replicas"]) == ("g-decode", replicas)
