"""Actions: scaling, restarting, and deploying one of the points of a request."""

import asyncio
import uuid
from dataclasses import replace
from typing import Any

from aiohttp import web
from dynamo_shared.api.adapted import least_replicas
from dynamo_shared.api.component_names import component_deployment
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import IDEMPOTENCY, PLANNER_CONFIG
from dynamo_shared.api.replica_limits import too_few
from dynamo_shared.api.request_graphs import graph_of, in_place_of, is_created_for, points_of, why_not_changed
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
    ObjectKey,
)
from dynamo_shared.api.scale_targets import scaled_adapter
from dynamo_shared.kube import AlreadyExists, Conflict, Invalid, KubeError, NotFound

from dynamo_dynadmin.api.collection_reader import CollectionReader
from dynamo_dynadmin.api.kinds import DEPLOYMENTS
from dynamo_dynadmin.api.models import AdapterScaleBody, PromoteBody, RestartBody, ScaleBody
from dynamo_dynadmin.api.object_writer import ObjectWriter, mark_of, refuse_managed
from dynamo_dynadmin.deploy.problems import FieldProblem
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.problems import ProblemError, invalid, of_kube, validated
from dynamo_dynadmin.identity.access import ResourceAttributes
from dynamo_dynadmin.state.hub import Hub

_ADAPTER = DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS


class Actions:
    """Performs operations other than writing an object."""

    def __init__(self, hub: Hub, reading: CollectionReader, writing: ObjectWriter) -> None:
        self._hub = hub
        self._reading = reading
        self._writing = writing

    async def scale(self, call: Call) -> web.StreamResponse:
        """Set the replicas of a component: on its adapter if it has one, otherwise in the graph."""
        body = validated(ScaleBody, await call.object())
        component, replicas = body.component, body.replicas
        key = ObjectKey(call.namespace, call.name)
        graph = await call.kube.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        listed = graph["spec"].get("components") or []
        index = next((i for i, each in enumerate(listed) if each["name"] == component), None)
        if index is None:
            names = ", ".join(each["name"] for each in listed)
            raise _invalid("/component", f"one of {names}" if names else f"graph {key.name} has no components")
        if problem := too_few(replicas, least_replicas(graph).get(component, 1)):
            # An adapter would accept any number, but the graph would then reject the adapter's number.
            raise _invalid("/replicas", problem)
        if listed[index].get("scalingAdapter") is not None:
            adapter = ObjectKey(key.namespace, component_deployment(key.name, component))
            return await self._scale_adapter(call, adapter, replicas)
        if config := (graph["metadata"].get("annotations") or {}).get(PLANNER_CONFIG):
            raise ProblemError(
                "owned-replicas",
                f"the planner of ConfigMap {config} sets the replicas of this graph, and {component} has no scaling "
                "adapter: add `scalingAdapter: {}` to the component, or change the planner's configuration",
                owner="planner",
            )
        components = [{**each} for each in listed]
        components[index]["replicas"] = replicas
        refuse_managed(graph, {**graph, "spec": {**graph["spec"], "components": components}})
        operations: list[KubeObject] = [
            {"op": "test", "path": f"/spec/components/{index}/name", "value": component},
            {"op": "add", "path": f"/spec/components/{index}/replicas", "value": replicas},
        ]
        await call.kube.json_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, operations, dry_run=call.flag("dryRun"))
        return call.answer({"component": component, "replicas": replicas, "via": "graph", "warnings": call.warnings})

    async def scale_adapter(self, call: Call) -> web.StreamResponse:
        """Set the replicas of an adapter."""
        body = validated(AdapterScaleBody, await call.object())
        return await self._scale_adapter(call, ObjectKey(call.namespace, call.name), body.replicas)

    async def _scale_adapter(self, call: Call, key: ObjectKey, replicas: int) -> web.StreamResponse:
        # Before the answer may name an autoscaler, which is read with the platform's rights.
        await self._reading.require(call, ResourceAttributes("patch", _ADAPTER, key.namespace, key.name, "scale"))
        if owner := await self._autoscaler(key):
            raise ProblemError(
                "owned-replicas",
                f"{owner} scales this component and would undo the change; change the limits of {owner}, or delete {owner}",
                owner=owner,
            )
        patch = {"spec": {"replicas": replicas}}
        written = await call.kube.merge_patch(_ADAPTER, key, patch, subresource="scale", dry_run=call.flag("dryRun"))
        return call.answer(
            {
                "adapter": key.name,
                "replicas": written.get("spec", {}).get("replicas", replicas),
                "via": "adapter",
                "warnings": call.warnings,
            }
        )

    async def _autoscaler(self, key: ObjectKey) -> str:
        """The autoscaler that controls an adapter's number. Other requests get a turn between a namespace's objects."""
        for resource in (SCALED_OBJECTS, HORIZONTAL_POD_AUTOSCALERS):
            for entry in self._hub.entries(resource).of_namespace(key.namespace):
                if scaled_adapter(entry.obj) == key.name:
                    return f"{resource.kind} {entry.key.name}"
                await asyncio.sleep(0)
        return ""

    async def restart(self, call: Call) -> web.StreamResponse:
        """Restart a graph's pods: writes a new id, and the order."""
        body = validated(RestartBody, await call.object())
        restart: dict[str, Any] = {"id": body.id or uuid.uuid4().hex}
        if body.strategy is not None:
            restart["strategy"] = body.strategy
        key = ObjectKey(call.namespace, call.name)
        # Replaces the whole field: a merge would keep the order of the previous restart. Without a version check,
        # because the status of a starting graph changes constantly.
        operations: list[KubeObject] = [{"op": "add", "path": "/spec/restart", "value": restart}]
        try:
            written = await call.kube.json_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, operations, dry_run=call.flag("dryRun"))
        except KubeError as error:
            problem = of_kube(error)
            problem.errors = tuple(
                replace(each, pointer=each.pointer.removeprefix("/spec/restart")) for each in problem.errors
            )
            raise problem from error
        return call.answer({"restart": written["spec"].get("restart"), "warnings": call.warnings})

    async def candidates(self, call: Call) -> web.StreamResponse:
        """The points of a request's Pareto front, with their figures and graphs."""
        request = await call.kube.get(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(call.namespace, call.name))
        points, results = _points(request)
        return call.answer(
            {
                "phase": str((request.get("status") or {}).get("phase") or "Pending"),
                "source": str(results.get("source") or ""),
                "items": [{"point": number, **point} for number, point in enumerate(points, 1)],
            }
        )

    async def promote(self, call: Call) -> web.StreamResponse:
        """Deploy one of the points; a graph that was already created for the request changes to it."""
        body = await call.object()
        number = validated(PromoteBody, body).point
        request = await call.kube.get(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(call.namespace, call.name))
        points, _ = _points(request)
        if not points:
            phase = (request.get("status") or {}).get("phase") or "Pending"
            raise ProblemError("conflict", f"the request has no result yet; its phase is {phase}")
        if number > len(points):
            raise _invalid("/point", f"a number from 1 to {len(points)}")
        graph = graph_of(request, points[number - 1]["config"])
        return await self._deploy_point(call, request, graph, body)

    async def _deploy_point(
        self, call: Call, request: KubeObject, graph: KubeObject, body: KubeObject
    ) -> web.StreamResponse:
        dry_run = call.flag("dryRun")
        try:
            return await self._writing.created(call, DEPLOYMENTS, graph, body, dry_run=dry_run)
        except AlreadyExists:
            key = ObjectKey(call.namespace, graph["metadata"]["name"])
        try:
            current = await call.kube.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        except NotFound as error:
            raise ProblemError("conflict", "the graph was deleted meanwhile; try again") from error
        if not is_created_for(current, request):
            raise ProblemError("already-exists", f"graph {key.name} exists, and was not created for this request")
        refuse_managed(current, {**current, "spec": graph["spec"]})
        desired = in_place_of(current, graph)
        if mark := mark_of(call, DEPLOYMENTS, body):
            desired["metadata"]["annotations"][IDEMPOTENCY] = mark
        try:
            written = await call.kube.replace(DYNAMO_GRAPH_DEPLOYMENTS, desired, dry_run=dry_run)
        except Conflict as error:
            raise ProblemError("stale", "the graph changed meanwhile; try again") from error
        except Invalid as error:
            if why_not := why_not_changed(current, graph):
                raise ProblemError("conflict", why_not) from error
            raise
        return call.answer_object(written)


def _points(request: KubeObject) -> tuple[list[KubeObject], KubeObject]:
    results: KubeObject = (request.get("status") or {}).get("profilingResults") or {}
    if not results.get("selectedConfig"):
        return [], results
    figures = results.get("selectedFigures") or {}
    return points_of(results.get("pareto") or [], results["selectedConfig"], figures), results


def _invalid(place: str, detail: str) -> ProblemError:
    return invalid([FieldProblem(place, detail)])
