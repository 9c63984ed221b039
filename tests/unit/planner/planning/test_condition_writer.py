"""The condition `Planning` is written to exactly the graph from which it was derived."""

from datetime import UTC, datetime
from typing import Any

import pytest
from dynamo_planner.planning.reporter import TRIES, ConditionWriter, PlanningCondition
from dynamo_shared.kube.errors import Conflict, NotFound

SAID = PlanningCondition(True, "Planned", "it is planned")
GRAPH = {"metadata": {"name": "g", "namespace": "ns", "uid": "u", "resourceVersion": "1", "generation": 2}}
CHANGED = {**GRAPH, "metadata": {**GRAPH["metadata"], "resourceVersion": "2"}}
SUCCESSOR = {**GRAPH, "metadata": {**GRAPH["metadata"], "uid": "another", "resourceVersion": "3"}}
GONE = NotFound(404, "NotFound", "gone", {"name": "g"})
OUTDATED = Conflict(409, "Conflict", "changed")


class Kube:
    """Answers applies and gets in turn."""

    def __init__(self, applies: list[Any], gets: list[Any] | None = None) -> None:
        self.applies, self.gets = applies, gets or []
        self.versions: list[str] = []
        self.conditions: list[Any] = []

    async def apply_status(self, _resource: object, obj: dict[str, Any]) -> dict[str, Any]:
        self.versions.append(obj["metadata"]["resourceVersion"])
        self.conditions.append(obj["status"]["conditions"])
        return self._answer(self.applies)

    async def get(self, _resource: object, _key: object) -> dict[str, Any]:
        return self._answer(self.gets)

    def _answer(self, answers: list[Any]) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def writer(kube: Kube) -> ConditionWriter:
    return ConditionWriter(kube, lambda: datetime(2026, 1, 1, tzinfo=UTC))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("applies", "gets", "versions"),
    [
        pytest.param([{}], [], ["1"], id="written"),
        pytest.param([OUTDATED, {}], [CHANGED], ["1", "2"], id="to the graph as it is now"),
        pytest.param([OUTDATED], [SUCCESSOR], ["1"], id="not to its successor"),
        pytest.param([OUTDATED], [GONE], ["1"], id="gone meanwhile"),
        pytest.param([GONE], [], ["1"], id="gone"),
    ],
)
async def test_the_condition_is_written_to_the_same_graph_only(applies, gets, versions):
    kube = Kube(applies, gets)
    await writer(kube).write(GRAPH, SAID)
    assert (kube.versions, kube.applies, kube.gets) == (versions, [], [])


async def test_a_graph_that_changes_at_each_attempt_is_an_error():
    with pytest.raises(Conflict):
        await writer(Kube([OUTDATED] * TRIES, [CHANGED] * TRIES)).write(GRAPH, SAID)


async def test_an_unchanged_condition_is_not_written_again_and_can_be_removed():
    kube = Kube([{}, {}])
    await writer(kube).write(GRAPH, SAID)
    said = {**GRAPH, "status": {"conditions": kube.conditions[0]}}
    await writer(kube).write(said, SAID)
    await writer(kube).write(said, None)
    await writer(kube).write(GRAPH, None)
    assert [len(each) for each in kube.conditions] == [1, 0]
