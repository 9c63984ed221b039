"""A write that STATE does not confirm is asked for, and only what is known to be gone is taken out."""

from typing import Any

import pytest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import SERVICES, ObjectKey, Resource
from dynamo_shared.kube.errors import KubeError, NotFound, NotServed, Unavailable
from dynamo_shared.runtime import own_writes
from dynamo_shared.state.cache import GRACE, ObjectCache

from tests.building.clock import ManualClock

KEY = ObjectKey("ns", "a")
WRITTEN: KubeObject = {"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "1"}}


class Server:
    """Answers each question with one error."""

    def __init__(self, error: KubeError) -> None:
        self.error = error

    async def get(self, _resource: Resource, _key: ObjectKey) -> KubeObject:
        raise self.error


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        pytest.param(NotFound(404, "NotFound", "gone", {"name": "a"}), False, id="gone"),
        pytest.param(NotServed(404, "", "404 page not found"), True, id="an answer that names no object"),
        pytest.param(Unavailable(0, "Timeout", "no answer"), True, id="no answer"),
    ],
)
async def test_what_becomes_of_a_write_that_is_not_confirmed(error: KubeError, stays: bool) -> None:
    clock = ManualClock()
    cache, kube = ObjectCache(clock=clock), Server(error)
    cache.put(SERVICES, WRITTEN)
    clock.now += GRACE
    asked: Any = kube
    await own_writes.check(cache, asked)
    assert (cache.get(SERVICES, KEY) is not None) is stays
