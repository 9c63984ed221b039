"""Reads the result of profiling from a request's status, draws it, and deploys it."""

from pathlib import Path

from dynamo_shared.api.conditions import find
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import PLANNER_CONFIG
from dynamo_shared.api.request_graphs import graph_of, in_place_of, is_created_for, points_of, why_not_changed
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
    key_of,
)
from dynamo_shared.api.yaml_output import to_yaml
from dynamo_shared.kube import AlreadyExists, Invalid, KubeClient, NotFound, get_if_present

from dynamo_ctl.commands.dgdr.drawing import Drawn, save, terminal
from dynamo_ctl.errors import CtlError
from dynamo_ctl.output import Print
from dynamo_ctl.targets import ClusterOptions


async def read(where: ClusterOptions, name: str, namespace: str | None) -> KubeObject:
    """Read a request. Raises CtlError if it does not exist."""
    async with await where.client() as client:
        return await _request(client, name, namespace)


def plot(request: KubeObject, out: Print, *, file: Path | None, width: int) -> None:
    """Print the front of a request, and draw it into `file` if given. Raises CtlError if the request has no result."""
    drawn = Drawn(title=_title(request), points=_points(request))
    for line in terminal(drawn, width):
        out(line)
    if file is not None:
        save(drawn, file)
        out(f"drawn into {file}")


async def apply(
    where: ClusterOptions,
    name: str,
    namespace: str | None,
    number: int | None,
    out: Print,
    *,
    remark: Print,
    dry_run: bool,
) -> None:
    """Create the graph of a point, or replace the spec of the graph that was created for the request.

    `remark` gets remarks about the planner that the graph needs.
    """
    async with await where.client() as client:
        request = await _request(client, name, namespace)
        graph = graph_of(request, _graph(request, number))
        key = key_of(graph)
        existing = await get_if_present(client, DYNAMO_GRAPH_DEPLOYMENTS, key)
        if existing is not None and not is_created_for(existing, request):
            raise CtlError(
                f"DynamoGraphDeployment {key.name} exists, and was not created for this request: delete it, or choose "
                "another name with spec.overrides.dgd.metadata.name in a new request"
            )
        if existing is None:
            try:
                await client.create(DYNAMO_GRAPH_DEPLOYMENTS, graph, dry_run=dry_run)
            except AlreadyExists as error:
                raise CtlError(f"DynamoGraphDeployment {key.name} was created meanwhile; try again") from error
        else:
            try:
                await client.replace(DYNAMO_GRAPH_DEPLOYMENTS, in_place_of(existing, graph), dry_run=dry_run)
            except Invalid as error:
                if why_not := why_not_changed(existing, graph):
                    raise CtlError(why_not) from error
                raise
        if dry_run:
            out(to_yaml(graph).rstrip())
            return
        out(
            f"DynamoGraphDeployment {key.name} {'created' if existing is None else 'changed'} in namespace {key.namespace}"
        )
        for line in await _planner_words(client, graph, number):
            remark(line)


async def _planner_words(client: KubeClient, graph: KubeObject, number: int | None) -> list[str]:
    """Messages for the user about a planner that was configured for the selected graph."""
    config = graph["metadata"]["annotations"].get(PLANNER_CONFIG)
    if config is None:
        return []
    if await get_if_present(client, CONFIG_MAPS, ObjectKey(graph["metadata"]["namespace"], config)) is None:
        return [
            f"note: the graph's PlannerConfig is in ConfigMap {config}, which does not exist: no planner scales the graph"
        ]
    if number is not None and number > 1:
        return [f"note: the profile in ConfigMap {config} describes the engines of the selected graph, point 1"]
    return []


async def _request(client: KubeClient, name: str, namespace: str | None) -> KubeObject:
    key = ObjectKey(namespace or client.namespace, name)
    try:
        return await client.get(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, key)
    except NotFound as error:
        raise CtlError(
            f"no DynamoGraphDeploymentRequest {name!r} in namespace {key.namespace}; see kubectl get dgdr -A"
        ) from error


def _results(request: KubeObject) -> KubeObject:
    status = request.get("status") or {}
    results: KubeObject = status.get("profilingResults") or {}
    if not results.get("selectedConfig"):
        name, phase = request["metadata"]["name"], status.get("phase") or "Pending"
        which = _named(request)
        if phase == "Failed":
            failed = find(status.get("conditions") or (), "Succeeded") or {}
            raise CtlError(f"request {name} failed: {failed.get('message') or f'see kubectl describe dgdr {which}'}")
        raise CtlError(
            f"request {name} has no result yet; its phase is {phase}; kubectl get dgdr {which} -w shows when it is Ready"
        )
    return results


def _named(request: KubeObject) -> str:
    """The arguments that name the request in another command."""
    return f"{request['metadata']['name']} -n {request['metadata']['namespace']}"


def _points(request: KubeObject) -> list[KubeObject]:
    results = _results(request)
    return points_of(results.get("pareto") or [], results["selectedConfig"], results.get("selectedFigures") or {})


def _graph(request: KubeObject, number: int | None) -> KubeObject:
    results = _results(request)
    if number is None:
        selected: KubeObject = results["selectedConfig"]
        return selected
    points = _points(request)
    if number > len(points):
        raise CtlError(
            f"--point {number}: the result has {len(points)} points; see dynamoctl dgdr plot {_named(request)}"
        )
    config: KubeObject = points[number - 1]["config"]
    return config


def _title(request: KubeObject) -> str:
    spec, status = request.get("spec") or {}, request.get("status") or {}
    planned = ((status.get("hardware") or {}).get("planned")) or spec.get("hardware") or {}
    source = (status.get("profilingResults") or {}).get("source")
    gpus = f" on {planned['totalGpus']} x {planned.get('gpuSku', 'GPU')}" if planned.get("totalGpus") else ""
    return f"{spec.get('model', request['metadata']['name'])}{gpus}{f' ({source})' if source else ''}"
