"""What a graph specifies for all of its components, merged into the pod template of each."""

from collections.abc import Callable, Mapping
from itertools import starmap
from typing import Any

from dynamo_shared.api.containers import is_main
from dynamo_shared.api.objects import MAIN, RUNTIME, KubeObject
from dynamo_shared.api.registry.annotations import (
    DISCOVERY_BACKEND,
    ENABLE_METRICS,
    KUBE_DISCOVERY_MODE,
    OPERATOR_ORIGIN_VERSION,
    VLLM_DISTRIBUTED_EXECUTOR_BACKEND,
)
from dynamo_shared.api.v1beta1 import DynamoGraphDeployment

from dynamo_pod_builder.render.config import RenderConfig
from dynamo_pod_builder.render.pod.env import merge_env, var

#: Annotations of a graph that affect how its components' pods are made.
PROPAGATED = (
    ENABLE_METRICS,
    DISCOVERY_BACKEND,
    KUBE_DISCOVERY_MODE,
    OPERATOR_ORIGIN_VERSION,
    VLLM_DISTRIBUTED_EXECUTOR_BACKEND,
)


def graph_annotations(graph: DynamoGraphDeployment, config: RenderConfig) -> dict[str, str]:
    """Annotations for every pod template, lowest priority first: the graph's spec, its metadata, a missing origin."""
    annotations = {**graph.spec.annotations}
    for name in PROPAGATED:
        if name in graph.metadata.annotations:
            annotations[name] = graph.metadata.annotations[name]
    if config.operator_version:
        annotations.setdefault(OPERATOR_ORIGIN_VERSION, config.operator_version)
    return annotations


def graph_template(
    template: KubeObject,
    graph: DynamoGraphDeployment,
    annotations: Mapping[str, str],
    config: RenderConfig,
    sidecar: str | None = None,
) -> KubeObject:
    """A component's pod template with the graph's annotations, labels and variables; its own have priority.

    The graph's variables override those of the settings. They are added to the containers that run Dynamo: main, the
    frontend sidecar if `sidecar` names one, and the runtime.
    """
    metadata = template.get("metadata") or {}
    return {
        **template,
        **_metadata(metadata, {**annotations, **(metadata.get("annotations") or {})}, graph.spec.labels),
        **_spec(_as_stored(template.get("spec") or {}), [*starmap(var, config.graph_env), *graph.spec.env], sidecar),
    }


def with_labels(template: KubeObject, label_set: Mapping[str, str]) -> KubeObject:
    """A pod template with these labels, replacing any of the same name."""
    return _over(template, "labels", label_set)


def with_annotations(template: KubeObject, annotations: Mapping[str, str]) -> KubeObject:
    """A pod template with these annotations, replacing any of the same name."""
    return _over(template, "annotations", annotations)


def _over(template: KubeObject, field: str, values: Mapping[str, str]) -> KubeObject:
    metadata = template.get("metadata") or {}
    return {**template, "metadata": {**metadata, field: {**(metadata.get(field) or {}), **values}}}


def with_priority(template: KubeObject, priority_class: str) -> KubeObject:
    """A pod template whose pods have a PriorityClass, unless it is "" or the template names its own."""
    pod = template.get("spec") or {}
    if not priority_class or pod.get("priorityClassName"):
        return template
    return {**template, "spec": {**pod, "priorityClassName": priority_class}}


def containers_with_main(pod: KubeObject) -> list[KubeObject]:
    """The containers of a pod spec, preceded by an empty main container if there is none."""
    containers: list[KubeObject] = pod.get("containers") or []
    return containers if any(map(is_main, containers)) else [{"name": MAIN}, *containers]


def runtime_sidecar(template: KubeObject) -> KubeObject | None:
    """The init container that runs the Dynamo runtime next to the engine in main; None if main runs both.

    Only a container that does not end can be one: another of that name prepares something, written before this mode
    existed.
    """
    containers = (template.get("spec") or {}).get("initContainers") or ()
    return next(filter(_runs_runtime, containers), None)


def with_runtime(pod: KubeObject, change: Callable[[KubeObject], KubeObject]) -> KubeObject:
    """A pod spec with the init container that runs the Dynamo runtime changed; the same object if there is none."""
    containers = pod.get("initContainers") or ()
    if not any(map(_runs_runtime, containers)):
        return pod
    return {**pod, "initContainers": [change(each) if _runs_runtime(each) else each for each in containers]}


def _runs_runtime(container: KubeObject) -> bool:
    return bool(container["name"] == RUNTIME and container.get("restartPolicy") == "Always")


def _metadata(metadata: KubeObject, annotations: dict[str, str], graph_labels: Mapping[str, str]) -> KubeObject:
    label_set = {**graph_labels, **(metadata.get("labels") or {})}
    merged = {**metadata}
    if annotations:
        merged["annotations"] = annotations
    if label_set:
        merged["labels"] = label_set
    return {"metadata": merged} if merged else {}


def _spec(spec: KubeObject, graph_env: list[KubeObject], sidecar: str | None) -> KubeObject:
    if not graph_env:
        return {"spec": spec} if spec else {}
    merged = [
        {**each, "env": merge_env(graph_env, each.get("env") or ())} if each["name"] in (MAIN, sidecar) else each
        for each in containers_with_main(spec)
    ]
    return {
        "spec": with_runtime(
            {**spec, "containers": merged},
            lambda runtime: {**runtime, "env": merge_env(graph_env, runtime.get("env") or ())},
        )
    }


def _as_stored(spec: KubeObject) -> KubeObject:
    """The pod spec as Kubernetes would store it, so that equivalent forms have the same worker hash."""
    stored: KubeObject = _without_empty_lists(spec)
    spec = stored
    for field in ("containers", "initContainers"):
        containers = spec.get(field) or ()
        kept = [_container_as_stored(each) for each in containers]
        if any(new is not old for new, old in zip(kept, containers, strict=True)):
            stored = {**stored, field: kept}
    return stored


def _without_empty_lists(node: Any) -> Any:
    """The same without empty lists and without an empty nodeSelector, because Kubernetes stores neither.

    The same object if there are none. Empty objects stay: `emptyDir: {}` has a meaning.
    """
    if isinstance(node, list):
        kept = [_without_empty_lists(each) for each in node]
        return kept if any(new is not old for new, old in zip(kept, node, strict=True)) else node
    if not isinstance(node, dict):
        return node
    made = {
        key: _without_empty_lists(value)
        for key, value in node.items()
        if not ((value == [] and key != "containers") or (value == {} and key == "nodeSelector"))
    }
    return made if len(made) < len(node) or any(made[key] is not node[key] for key in made) else node


def _container_as_stored(container: KubeObject) -> KubeObject:
    variables, ports = container.get("env") or (), container.get("ports") or ()
    changed: KubeObject = {}
    if any(variable.get("value") == "" for variable in variables):
        changed["env"] = [
            {key: value for key, value in variable.items() if key != "value" or value} for variable in variables
        ]
    if any("protocol" not in port for port in ports):
        changed["ports"] = [{**port, "protocol": port.get("protocol", "TCP")} for port in ports]
    return {**container, **changed} if changed else container
