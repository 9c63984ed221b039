"""`runtimeVersionOverride` of a request: the version of Dynamo in images of its graph, where tags do not say it."""

from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec

FIELD = "runtimeVersionOverride"


def versioned(graph: KubeObject, spec: DynamoGraphDeploymentRequestSpec) -> KubeObject:
    """The graph with the request's version in each component that has none of its own. It comes after the overrides."""
    version = spec.runtime_version_override
    if not version:
        return graph
    components = [_versioned(each, version) for each in graph["spec"]["components"]]
    return {**graph, "spec": {**graph["spec"], "components": components}}


def _versioned(component: Any, version: str) -> Any:
    """What is not a component is reported with the rest of what is wrong with the graph."""
    if not isinstance(component, dict) or component.get(FIELD):
        return component
    return {**component, FIELD: version}
