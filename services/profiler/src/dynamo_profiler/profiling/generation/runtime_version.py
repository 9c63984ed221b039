"""`runtimeVersionOverride` of a request: the version of Dynamo in the graph's images if the tags do not show it."""

from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec

FIELD = "runtimeVersionOverride"


def versioned(graph: KubeObject, spec: DynamoGraphDeploymentRequestSpec) -> KubeObject:
    """The graph with the request's version in each component without its own. Applied after the overrides."""
    version = spec.runtime_version_override
    if not version:
        return graph
    components = [_versioned(each, version) for each in graph["spec"]["components"]]
    return {**graph, "spec": {**graph["spec"], "components": components}}


def _versioned(component: Any, version: str) -> Any:
    """Leaves an invalid component unchanged: it is reported with all other errors of the graph."""
    if not isinstance(component, dict) or component.get(FIELD):
        return component
    return {**component, FIELD: version}
