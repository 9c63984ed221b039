"""What is written when a component gets another autoscaler, in which order, and what is said of it."""

from __future__ import annotations

import pytest
from dynamo_shared.api.resources import HORIZONTAL_POD_AUTOSCALERS

from tests.unit.scaler.autoscaler_api import HPA, KEY, AutoscalerDesk


@pytest.mark.parametrize("taken_by_another", [False, True])
async def test_a_deletion_that_others_did_is_not_announced(taken_by_another: bool) -> None:
    desk = AutoscalerDesk()
    await desk.ask(HPA)

    def deleted_by_a_user() -> None:
        del desk.api.objects[HORIZONTAL_POD_AUTOSCALERS.id, KEY]
        if taken_by_another:
            desk.foreign(HORIZONTAL_POD_AUTOSCALERS)

    desk.api.before_delete = deleted_by_a_user
    state = await desk.ask(None)
    assert state.condition is None
    assert desk.announced.lines == [
        "Normal AutoscalerCreated Autoscale: Created HorizontalPodAutoscaler g-w between 1 and 3 replicas"
    ]
    # It is not deleted a second time, nor is the other object of the name.
    desk.api.calls.clear()
    await desk.ask(None)
    assert desk.api.calls == []


async def test_a_deletion_is_announced() -> None:
    desk = AutoscalerDesk()
    await desk.ask(HPA)
    await desk.ask(None)
    assert desk.api.kinds() == []
    assert desk.announced.lines[1:] == [
        "Normal AutoscalerDeleted Autoscale: Deleted HorizontalPodAutoscaler g-w between 1 and 3 replicas"
    ]
