"""A write that STATE does not confirm is read from the API server, and only a certain difference is corrected."""

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


#: The object before the write, in a restored data store.
BEFORE: KubeObject = {"metadata": {**WRITTEN["metadata"], "resourceVersion": "0"}}


class Server:
    """Gives each request one answer."""

    def __init__(self, answer: KubeObject | KubeError) -> None:
        self.answer = answer

    async def get(self, _resource: Resource, _key: ObjectKey) -> KubeObject:
        if isinstance(self.answer, KubeError):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        pytest.param(BEFORE, BEFORE, id="set back"),
        pytest.param(NotFound(404, "NotFound", "gone", {"name": "a"}), None, id="gone"),
        pytest.param(NotServed(404, "", "404 page not found"), WRITTEN, id="an answer that names no object"),
        pytest.param(Unavailable(0, "Timeout", "no answer"), WRITTEN, id="no answer"),
    ],
)
async def test_an_unconfirmed_write_is_checked(answer: KubeObject | KubeError, known: KubeObject | None) -> None:
    clock = ManualClock()
    cache = ObjectCache(clock=clock)
    cache.put(SERVICES, WRITTEN)
    asked: Any = Server(answer)
    await own_writes.check(cache, asked)
    assert cache.get(SERVICES, KEY) == WRITTEN, "STATE has time to confirm it"
    clock.now += GRACE
    await own_writes.check(cache, asked)
    assert cache.get(SERVICES, KEY) == known
