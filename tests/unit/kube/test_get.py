"""Reading one object, and a list."""

from typing import Any

import pytest
from dynamo_shared.api.resources import POD_SNAPSHOTS, ObjectKey
from dynamo_shared.kube.errors import ResponseTooLarge

from . import steps

KEY = ObjectKey("team", "snap")
SNAPSHOT = {"kind": "PodSnapshot", "metadata": {"name": "snap"}, "spec": {"x": "x" * 1000}}


async def test_an_object_above_the_requested_limit_is_not_read(server: Any) -> None:
    server.then(steps.answer(SNAPSHOT), steps.answer(SNAPSHOT), steps.answer(SNAPSHOT))
    async with server.client() as client:
        assert await client.get(POD_SNAPSHOTS, KEY) == SNAPSHOT
        assert await client.get(POD_SNAPSHOTS, KEY, most=2000) == SNAPSHOT
        with pytest.raises(ResponseTooLarge, match="larger than 500 bytes"):
            await client.get(POD_SNAPSHOTS, KEY, most=500)


async def test_a_list_that_is_larger_than_is_asked_for_is_not_read(server: Any) -> None:
    """All pages count: a tenant's list has any number of them."""
    items = {"items": [SNAPSHOT]}
    pages = [{"metadata": {"resourceVersion": "1", "continue": more}, **items} for more in ("b", "")]
    server.then(*map(steps.answer, (*pages, *pages)))
    async with server.client() as client:
        assert len(await client.list(POD_SNAPSHOTS, "team", most=4000)) == 2
        with pytest.raises(ResponseTooLarge, match="the response is larger than"):
            await client.list(POD_SNAPSHOTS, "team", most=2000)
