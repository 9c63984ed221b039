"""Objects on which a reconcile fails: their status says so once, whatever it was that no one foresaw."""

from typing import Any, cast

import pytest
from dynamo_image_builder import events as image_builder
from dynamo_pod_builder.reconcilers.unexpected import REPORTS
from dynamo_profiler.requests.reconciler import reconcile_failed
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_CHECKPOINTS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_NIM_REQUESTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Forbidden, Unavailable
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.runtime.unexpected import UnexpectedFailures

from tests.building.clock import ManualClock
from tests.building.memory_kube import MemoryKube
from tests.building.objects import object_of
from tests.unit.announced import Announced

from .pod_builder.graph.building import NOW
from .pod_builder.indexed import indexed

KEY = ObjectKey("ns", "one")
WORDS = "reconcile failed, will be retried: KeyError: 'labels'; see the log of the pod-builder"
KINDS = {
    **REPORTS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS: reconcile_failed,
    DYNAMO_NIM_REQUESTS: image_builder.reconcile_failed,
}
#: Kinds of which programs do not hear that they failed, but what phase they are in.
OTHER_EVENTS = {DYNAMO_CHECKPOINTS: None, DYNAMO_GRAPH_DEPLOYMENT_REQUESTS: "pending"}


class World:
    """One object, whose reconcile raises an error until it has none."""

    def __init__(self, resource: Resource, error: Exception, status: KubeObject | None = None) -> None:
        self.kube, self.cache, self.error = MemoryKube(), indexed(), error
        self.kube.put({**object_of(resource, "one"), **({} if status is None else {"status": status})})
        self.kube.publish(self.cache)
        self.resource, self.announced = resource, Announced()
        statuses = StatusWriter(cast("KubeClient", self.kube), self.cache, ManualClock())
        self.reconcile = UnexpectedFailures(
            "pod-builder", self.cache, statuses, self.announced, lambda: NOW, KINDS
        ).reported(resource, self._reconcile)

    async def _reconcile(self, _: ObjectKey) -> Result:
        raise self.error

    async def fails(self) -> KubeObject:
        """The object after its reconcile."""
        with pytest.raises(type(self.error)):
            await self.reconcile(KEY)
        return self.kube.objects[self.resource.id, KEY]


@pytest.mark.parametrize("resource", KINDS, ids=lambda each: each.kind)
async def test_a_reconcile_that_fails_is_reported_once_and_raises_for_the_queue(resource):
    world = World(resource, KeyError("labels"))
    failed = await world.fails()
    assert WORDS in str(failed["status"])
    assert await world.fails() == failed
    (fact,) = world.announced.facts
    assert (fact.type, WORDS in fact.message) == ("Warning", True)
    assert fact.event == OTHER_EVENTS.get(resource, "failed")
    assert fact.data is None or WORDS in str(fact.data)


@pytest.mark.parametrize("resource", KINDS, ids=lambda each: each.kind)
async def test_an_answer_of_the_api_server_is_not_reported(resource):
    assert "status" not in await World(resource, Unavailable(503, "ServiceUnavailable", "away")).fails()


async def test_an_error_is_raised_although_its_report_is_refused(monkeypatch):
    """The log had only the API server's refusal: neither it nor the status ever had the error."""

    async def refuse(*_: object) -> KubeObject:
        raise Forbidden(403, "Forbidden", "no")

    world = World(DYNAMO_GRAPH_DEPLOYMENTS, KeyError("labels"))
    monkeypatch.setattr(world.kube, "apply_status", refuse)
    assert "status" not in await world.fails()


async def test_what_is_known_of_a_graph_stays_as_it_was():
    """Its update goes on from there once what fails is mended."""
    before: dict[str, Any] = {"rollingUpdate": {"phase": "InProgress"}, "components": {"One": {"replicas": 2}}}
    other = {"type": "CheckpointsReady", "status": "False"}
    status = {**before, "state": "successful", "conditions": [{"type": "Ready", "status": "True"}, other]}
    failed = await World(DYNAMO_GRAPH_DEPLOYMENTS, KeyError("labels"), status).fails()
    assert before.items() <= failed["status"].items()
    assert failed["status"]["state"] == "failed"
    ready, *others = failed["status"]["conditions"]
    assert (ready["type"], ready["message"], others) == ("Ready", f"NotDeployable: {WORDS}", [other])


async def test_the_job_of_a_checkpoint_is_still_followed():
    failed = await World(DYNAMO_CHECKPOINTS, KeyError("labels"), {"phase": "Creating", "jobName": "job"}).fails()
    assert failed["status"] == {"phase": "Creating", "jobName": "job", "message": WORDS}


async def test_what_was_read_is_quoted_shortly():
    failed = await World(DYNAMO_GRAPH_DEPLOYMENTS, ValueError("password=secret " + "x" * 10_000)).fails()
    message = objects.condition(failed, "Ready")["message"]  # type: ignore[index]
    assert "secret" not in message
    assert len(message) < 500


async def test_of_an_object_that_is_gone_nothing_is_reported():
    world = World(DYNAMO_GRAPH_DEPLOYMENTS, KeyError("labels"))
    world.cache.remove(DYNAMO_GRAPH_DEPLOYMENTS, KEY, "uid-of-one")
    assert "status" not in await world.fails()
