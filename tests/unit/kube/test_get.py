"""Reading one object."""

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
