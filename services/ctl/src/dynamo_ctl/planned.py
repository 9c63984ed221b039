"""The objects of a manifest as a tree: the pod-builder's rendering for services that may not import it."""

from collections.abc import Iterator
from typing import Any

from dynamo_pod_builder import render
from dynamo_pod_builder.configuration import render_config
from dynamo_shared.api import gpus
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    POD_CLIQUE_SETS,
)
from dynamo_shared.api.v1beta1 import parse_component, parse_graph
from dynamo_shared.runtime import Settings

from dynamo_ctl.offline import created

Tree = dict[str, Any]


def planned(manifest: KubeObject, settings: Settings | None = None) -> tuple[Tree | None, list[str]]:
    """The tree of all objects that a v1beta1 graph would get, and the errors of an invalid graph. The tree is None for
    an invalid graph, and for other kinds.
    """
    if manifest.get("kind") != DYNAMO_GRAPH_DEPLOYMENTS.kind:
        return None, []
    try:
        config = _config(settings or Settings())
        children = render.graph_children(parse_graph(created(manifest)), config)
        return _node(manifest, [_child(each, config) for each in children]), []
    except (render.RenderError, InvalidManifest) as error:
        return None, [f"cannot show the resulting objects: {error}"]


def _child(obj: KubeObject, config: render.RenderConfig) -> Tree:
    if obj["kind"] != DYNAMO_COMPONENT_DEPLOYMENTS.kind:
        return _node(obj, list(_pods(obj)))
    children = render.component_children(parse_component(created(obj)), config)
    return _node(obj, [_node(each, list(_pods(each))) for each in children])


def _pods(workload: KubeObject) -> Iterator[Tree]:
    """The pods of a Deployment: their number, and the GPUs of each."""
    spec = workload.get("spec") or {}
    if workload["kind"] == "Deployment" and (replicas := spec.get("replicas", 1)):
        containers = spec["template"]["spec"].get("containers") or []
        each = sum(gpus.count(container) for container in containers)
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": f"{workload['metadata']['name']}-*",
            "count": replicas,
            "gpus": each,
            "children": [],
        }


def _node(obj: KubeObject, children: list[Tree]) -> Tree:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"].get("name", ""),
        "children": children,
    }


def _config(settings: Settings) -> render.RenderConfig:
    on_grove = settings.orchestrators.grove.enabled is True
    return render_config(settings, lambda resource: on_grove or resource.group != POD_CLIQUE_SETS.group)
