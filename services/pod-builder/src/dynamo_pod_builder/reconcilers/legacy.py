"""DynamoDeployment and DynamoNimDeployment -> the DynamoGraphDeployment of their services, whose state they report.

The graph is the one that `dynamoctl convert` writes. The older object owns it, so it is deleted with that object.
Services without an image run the image that is built of their artifact: a DynamoNimRequest requests it, and the graph
is written when the image exists. A running graph stays unchanged until then.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from dynamo_shared.aio import Offload
from dynamo_shared.api import legacy, objects
from dynamo_shared.api.conditions import condition_of
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.errors import FieldError, InvalidManifest
from dynamo_shared.api.model import parse
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_NIM_DEPLOYMENTS,
    DYNAMO_NIM_REQUESTS,
    ObjectKey,
    Resource,
    controller_reference,
    key_of,
)
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.runtime.large_objects import in_turn
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import events
from dynamo_pod_builder.applier import Applier
from dynamo_pod_builder.artifact_images import Waiting, answer_of, artifact_of, lacks_image, request_for, with_image
from dynamo_pod_builder.reconcilers.refusals import REFUSALS, failure_of, retry_after
from dynamo_pod_builder.status.component import Failure, is_observed
from dynamo_pod_builder.status.graph import FAILED, INITIALIZING, PENDING

READY = "Ready"


def _of_service(obj: KubeObject) -> legacy.Successor:
    deployment = parse(legacy.DynamoNimDeployment, obj)
    if deployment.spec is None:
        raise InvalidManifest([FieldError("spec", "required, and missing")])
    return legacy.graph_of_services([deployment])


def _of_deployment(obj: KubeObject) -> legacy.Successor:
    deployment = parse(legacy.DynamoDeployment, obj)
    if deployment.spec is None or not deployment.spec.services:
        raise InvalidManifest(
            [
                FieldError(
                    "spec.services",
                    "list the services of the artifact: the platform does not read them from the artifact",
                )
            ]
        )
    return legacy.graph_of_deployment(deployment)


def successor_of(resource: Resource, obj: KubeObject) -> KubeObject:
    """The graph of a stored object, in v1alpha1. Pure. Raises InvalidManifest."""
    return (_of_service if resource == DYNAMO_NIM_DEPLOYMENTS else _of_deployment)(obj).graph


def graph_of(resource: Resource, obj: KubeObject, image: str = "") -> KubeObject:
    """The graph of a stored object, as it is applied; `image`: for services without one. Pure. Raises InvalidManifest."""
    successor = successor_of(resource, obj)
    graph = convert(with_image(successor, image) if image else successor, DYNAMO_GRAPH_DEPLOYMENTS.api_version)
    owner = controller_reference(resource, objects.name(obj), objects.uid(obj))
    return {**graph, "metadata": {**graph["metadata"], "ownerReferences": [owner]}}


def status_of(
    resource: Resource, obj: KubeObject, graph: KubeObject | None, obstacle: Waiting | Failure | None, now: datetime
) -> KubeObject:
    """The whole `status`: the readiness of its graph, or what prevents the graph from being written. Pure."""
    entry = objects.condition(graph, READY)
    state = (graph or {}).get("status", {}).get("state", INITIALIZING)
    if obstacle is not None:
        ready, reason, message = False, obstacle.reason, obstacle.message
        state = FAILED if isinstance(obstacle, Failure) else PENDING
    elif graph is None or entry is None:
        ready, reason, message = False, "GraphPending", "its DynamoGraphDeployment has no status yet"
    elif not is_observed(graph):
        ready, reason = False, "GraphPending"
        message = "the latest change of its DynamoGraphDeployment has not been acted on yet"
        state = PENDING
    else:
        ready, reason, message = entry["status"] == "True", entry["reason"], entry["message"]
    status: KubeObject = {"conditions": [condition_of(obj, READY, ready, reason, message, now=now)]}
    return {"state": state, **status} if resource == DYNAMO_DEPLOYMENTS else status


@dataclass(frozen=True, slots=True)
class LegacyReconciler:
    """Makes one object of a kind that preceded graphs run as a graph."""

    resource: Resource
    cache: ObjectCache
    applier: Applier
    statuses: StatusWriter
    announcer: Announcer
    now: Callable[[], datetime]
    large: Offload

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile one object. Raises KubeError if the API server is unavailable: the queue retries the key."""
        obj = self.cache.get(self.resource, key)
        if obj is None or objects.is_deleting(obj):
            return Result()
        if self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, key) is None and not await self.applier.exists(obj):
            return Result()
        graph: KubeObject | None = None
        obstacle: Waiting | Failure | None = None
        again: float | None = None
        try:
            image = await self._image(obj)
            if isinstance(image, str):
                desired = await in_turn(self.large, obj, partial(graph_of, self.resource, obj, image))
                graph = (await self.applier.ensure(desired)).obj
            else:
                obstacle = image
        except REFUSALS as error:
            failure = failure_of(error)
            obstacle = Waiting(failure.reason, failure.message) if failure.passes else failure
            again = retry_after(failure)
        return await self._report(obj, graph, obstacle, again)

    async def _image(self, obj: KubeObject) -> str | Waiting | Failure:
        """The image for services without one, "" if all have one. Creates the image request if it does not exist."""
        if not lacks_image(await in_turn(self.large, obj, partial(successor_of, self.resource, obj))):
            return ""
        request = request_for(self.resource, obj)
        key = key_of(request)
        # Without this check, a deleted owner's request would be created again each time that it is deleted.
        if self.cache.get(DYNAMO_NIM_REQUESTS, key) is None and await self.applier.exists(obj):
            await self.applier.create_once(DYNAMO_NIM_REQUESTS, request)
        return answer_of(artifact_of(obj), key.name, self.cache.get(DYNAMO_NIM_REQUESTS, key))

    async def _report(
        self, obj: KubeObject, graph: KubeObject | None, obstacle: Waiting | Failure | None, again: float | None
    ) -> Result:
        status = status_of(self.resource, obj, graph, obstacle, self.now())
        before = objects.condition(obj, READY)

        def report() -> None:
            if obstacle is not None and (before is None or before["reason"] != obstacle.reason):
                # Limited, and without secrets.
                reported = replace(obstacle, message=status["conditions"][0]["message"])
                self.announcer.announce(obj, events.legacy_held_up(obj, artifact_of(obj), reported))

        wait = await self.statuses.write(self.resource, obj, status, urgent=obstacle is not None, report=report)
        return Result(requeue_after=again if wait is None else wait)
