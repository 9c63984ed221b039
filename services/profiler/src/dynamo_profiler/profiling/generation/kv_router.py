"""`features.kvRouter`: frontends choose workers by their KV caches, unless the request's override sets another mode."""

from dynamo_shared.api.containers import with_main
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.env import DYN_ROUTER_MODE
from dynamo_shared.api.v1beta1 import ComponentType
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec

KV = "kv"


def routed(graph: KubeObject, spec: DynamoGraphDeploymentRequestSpec) -> KubeObject:
    """The graph with the requested router. Applied after the overrides, so a mode that they set stays.

    A flag `--router-mode` needs no handling: the frontend prefers it to the variable.
    """
    router = spec.features.kv_router if spec.features else None
    if router is None or not router.enabled or _sets_mode(graph["spec"].get("env")):
        return graph
    components = [_routed(each) for each in graph["spec"]["components"]]
    return {**graph, "spec": {**graph["spec"], "components": components}}


def _routed(component: KubeObject) -> KubeObject:
    if component.get("type") != ComponentType.FRONTEND or "podTemplate" not in component:
        return component
    return {**component, "podTemplate": with_main(component["podTemplate"], _with_mode)}


def _with_mode(container: KubeObject) -> KubeObject:
    variables = container.get("env") or []
    if _sets_mode(variables):
        return container
    return {**container, "env": [*variables, {"name": DYN_ROUTER_MODE, "value": KV}]}


def _sets_mode(variables: object) -> bool:
    return isinstance(variables, list) and any(each.get("name") == DYN_ROUTER_MODE for each in variables)
