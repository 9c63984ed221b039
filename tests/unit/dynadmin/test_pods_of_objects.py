"""Pods of a graph with thousands of them."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_dynadmin.api.details import Details
from dynamo_dynadmin.api.kinds import DEPLOYMENTS
from dynamo_dynadmin.api.logs import _Pods
from dynamo_dynadmin.api.logs.sources import LogSelection
from dynamo_dynadmin.state.entries import StoredObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import ObjectKey

from tests.building.waiting import counted_turns

COUNT = 50
CALL = cast("Any", SimpleNamespace(namespace="n", name="shop"))


class Entry:
    """A pod in STATE, which counts how often it is decoded."""

    decoded = 0

    def __init__(self, number: int) -> None:
        self.key = ObjectKey("n", f"p-{number}")
        self.labels = {labels.GRAPH_DEPLOYMENT_NAME: "shop", labels.COMPONENT: "even" if number % 2 == 0 else "odd"}

    @property
    def obj(self) -> dict[str, Any]:
        Entry.decoded += 1
        metadata = {"namespace": "n", "name": self.key.name, "labels": self.labels}
        return {"metadata": metadata, "spec": {"containers": [{"name": "main"}]}}


@pytest.fixture
def hub() -> Any:
    Entry.decoded = 0
    entries = [Entry(number) for number in range(COUNT)]
    pods = SimpleNamespace(of_namespace=lambda _: entries, get=lambda _: None)
    return SimpleNamespace(entries=lambda _: pods)


async def test_other_requests_get_a_turn_while_pods_are_decoded(hub: Any) -> None:
    async with counted_turns() as others:
        pods = [each async for each in Details(hub, cast("Any", None)).known_pods(CALL, DEPLOYMENTS)]
    assert len(pods) == COUNT
    assert others() >= COUNT


@pytest.mark.parametrize(
    ("selection", "count"),
    [(LogSelection(), COUNT), (LogSelection(component="even"), COUNT // 2), (LogSelection(pod="p-3"), 1)],
)
async def test_only_selected_pods_are_decoded_when_logs_are_followed(
    selection: LogSelection, count: int, hub: Any
) -> None:
    """Each change of a pod decoded all pods of the graph, for each reader of one pod's log."""
    pods = _Pods(hub, Details(hub, cast("Any", None)), CALL, DEPLOYMENTS, selection)
    starts = await pods.starts()
    assert starts is not None
    assert len(starts) == Entry.decoded == count
    concerned = [each for each in hub.entries(None).of_namespace("n") if pods.concerns(cast("StoredObject", each))]
    assert len(concerned) == count
