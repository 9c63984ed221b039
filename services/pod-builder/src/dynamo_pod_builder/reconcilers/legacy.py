"""DynamoDeployment and DynamoNimDeployment -> the DynamoGraphDeployment of their services, whose state theirs is.

The graph is what `dynamoctl convert` writes. It belongs to the older object, and is deleted with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from dynamo_shared.aio import Offload
from dynamo_shared.api import legacy, objects
from dynamo_shared.api.conditions import condition, find
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.errors import FieldError, InvalidManifest
from dynamo_shared.api.field_errors import field_errors
from dynamo_shared.api.meta import ObjectMeta
from dynamo_shared.api.objects import KubeObject, size_of
from dynamo_shared.api.resources import (
    DYNAMO_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_NIM_DEPLOYMENTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.bus.cache import ObjectCache
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.status_writer import StatusWriter
from pydantic import ValidationError

from dynamo_pod_builder.applying import Applier
from dynamo_pod_builder.reconcilers.refusals import REFUSALS, failure_of, retry_after
from dynamo_pod_builder.render.owner import controller_reference
from dynamo_pod_builder.status.component import Failure
from dynamo_pod_builder.status.graph import FAILED, INITIALIZING

READY = "Ready"


def _of_service(obj: KubeObject) -> legacy.Successor:
    deployment = legacy.DynamoNimDeployment.model_validate(obj, extra="ignore")
    if deployment.spec is None:
        raise InvalidManifest([FieldError("spec", "required, and missing")])
    return legacy.graph_of_services([deployment])


def _of_deployment(obj: KubeObject) -> legacy.Successor:
    deployment = legacy.DynamoDeployment.model_validate(obj, extra="ignore")
    if deployment.spec is None or not deployment.spec.services:
        raise InvalidManifest([FieldError("spec.services", "name the services of the artifact: it is not read here")])
    return legacy.graph_of_deployment(deployment)


SUCCESSORS: Mapping[Resource, Callable[[KubeObject], legacy.Successor]] = {
    DYNAMO_NIM_DEPLOYMENTS: _of_service,
    DYNAMO_DEPLOYMENTS: _of_deployment,
}
"""The kinds before graphs that run, and how each becomes a graph."""


def graph_of(resource: Resource, obj: KubeObject) -> KubeObject:
    """The graph of a stored object, as it is applied. Pure. Raises InvalidManifest."""
    try:
        successor = SUCCESSORS[resource](obj)
    except ValidationError as error:
        raise InvalidManifest(field_errors(error)) from error
    graph = convert(successor.graph, DYNAMO_GRAPH_DEPLOYMENTS.api_version)
    owner = controller_reference(resource, ObjectMeta.model_validate(obj["metadata"], extra="ignore"))
    return {**graph, "metadata": {**graph["metadata"], "ownerReferences": [owner]}}


def status_of(
    resource: Resource, obj: KubeObject, graph: KubeObject | None, failure: Failure | None, now: datetime
) -> KubeObject:
    """The whole `status`: ready as its graph is, or what keeps the graph from being written. Pure."""
    of_graph = (graph or {}).get("status", {})
    entry = find(of_graph.get("conditions", ()), READY)
    if failure is not None:
        ready, reason, message = False, failure.reason, failure.message
    elif entry is not None:
        ready, reason, message = entry["status"] == "True", entry["reason"], entry["message"]
    else:
        ready, reason, message = False, "GraphPending", "the status of its DynamoGraphDeployment is not written yet"
    previous = obj.get("status", {}).get("conditions", [])
    generation = obj["metadata"].get("generation", 1)
    entry = condition(previous, READY, status=ready, reason=reason, message=message, generation=generation, now=now)
    if resource != DYNAMO_DEPLOYMENTS:
        return {"conditions": [entry]}
    return {"state": FAILED if failure is not None else of_graph.get("state", INITIALIZING), "conditions": [entry]}


@dataclass(frozen=True, slots=True)
class LegacyReconciler:
    """Makes one object of a kind before graphs run, as a graph."""

    resource: Resource
    cache: ObjectCache
    applier: Applier
    statuses: StatusWriter
    now: Callable[[], datetime]
    large: Offload

    async def reconcile(self, key: ObjectKey) -> Result:
        """One reconcile of one object. Raises KubeError where the API server is away: the queue comes back to it."""
        obj = self.cache.get(self.resource, key)
        if obj is None or objects.is_deleting(obj):
            return Result()
        if self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, key) is None and not await self.applier.exists(obj):
            return Result()
        graph: KubeObject | None = None
        failure: Failure | None = None
        try:
            desired = await self.large.run(size_of(obj), partial(graph_of, self.resource, obj))
            graph = (await self.applier.ensure(desired)).obj
        except REFUSALS as error:
            failure = failure_of(error)
        status = status_of(self.resource, obj, graph, failure, self.now())
        wait = await self.statuses.write(self.resource, obj, status, urgent=failure is not None)
        return Result(requeue_after=retry_after(failure) if wait is None else wait)
