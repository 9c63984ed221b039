"""Builders of small graphs and components, and readers of their rendered objects."""

from typing import Any

from dynamo_pod_builder import render
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1 import parse_component, parse_graph

CONFIG = render.RenderConfig(planner_cluster_role="planner-role", operator_version="1.2.0")


def component(name: str = "Worker", type_: str | None = "worker", **fields: Any) -> KubeObject:
    """A component. `main`: fields of its main container; `pod`: of its pod spec; `annotations`, `labels`: of pods."""
    main = {"name": "main", "image": "img:1", **fields.pop("main", {})}
    pod = {"containers": [main, *fields.pop("sidecars", [])], **fields.pop("pod", {})}
    metadata = {key: fields.pop(key) for key in ("annotations", "labels") if key in fields}
    template: KubeObject = {"spec": pod, **({"metadata": metadata} if metadata else {})}
    return {"name": name, **({"type": type_} if type_ else {}), "podTemplate": template, **fields}


def graph(*components: KubeObject, name: str = "graph", **fields: Any) -> KubeObject:
    """A graph; `annotations` are its own, other fields belong to its spec."""
    metadata = {"name": name, "namespace": "ns", "uid": "graph-uid", "annotations": fields.pop("annotations", {})}
    spec = {"components": list(components), **fields}
    return {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": spec}


def graph_children(obj: KubeObject, config: render.RenderConfig = CONFIG, **observed: Any) -> list[KubeObject]:
    if observed:
        return render.graph_children(parse_graph(obj), config, render.ObservedGraph(**observed))
    return render.graph_children(parse_graph(obj), config)


def component_children(obj: KubeObject, config: render.RenderConfig = CONFIG, **observed: Any) -> list[KubeObject]:
    stored = {**obj, "metadata": {**obj["metadata"], "uid": f"uid-of-{obj['metadata']['name']}"}}
    if observed:
        return render.component_children(parse_component(stored), config, render.ObservedComponent(**observed))
    return render.component_children(parse_component(stored), config)


def of_kind(children: list[KubeObject], kind: str) -> list[KubeObject]:
    return [child for child in children if child["kind"] == kind]


def component_deployments(obj: KubeObject, config: render.RenderConfig = CONFIG) -> dict[str, KubeObject]:
    """The component deployments of a graph by component name."""
    result = of_kind(graph_children(obj, config), "DynamoComponentDeployment")
    return {dcd["spec"]["name"]: dcd for dcd in result}


def workloads(obj: KubeObject, config: render.RenderConfig = CONFIG) -> dict[str, list[KubeObject]]:
    """The rendered workload of each component by component name."""
    return {name: component_children(dcd, config) for name, dcd in component_deployments(obj, config).items()}


def deployment(single: KubeObject, config: render.RenderConfig = CONFIG, **fields: Any) -> KubeObject:
    """The Deployment of the only component of a graph; `fields` belong to the graph."""
    (children,) = workloads(graph(single, **fields), config).values()
    return of_kind(children, "Deployment")[0]


def pod(single: KubeObject, config: render.RenderConfig = CONFIG, **fields: Any) -> KubeObject:
    """The pod spec of the only component of a graph."""
    spec: KubeObject = deployment(single, config, **fields)["spec"]["template"]["spec"]
    return spec


def main(single: KubeObject, config: render.RenderConfig = CONFIG, **fields: Any) -> KubeObject:
    """The main container of the only component of a graph."""
    container: KubeObject = pod(single, config, **fields)["containers"][0]
    return container


def variables(container: KubeObject) -> dict[str, str | None]:
    return {each["name"]: each.get("value") for each in container["env"]}
