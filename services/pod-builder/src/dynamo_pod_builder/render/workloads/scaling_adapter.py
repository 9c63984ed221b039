"""The scaling adapter of a component, to which autoscalers write the component's replicas."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
from dynamo_shared.api.v1beta1 import DynamoGraphDeployment

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.metadata import new_object_of


def scaling_adapters(graph: DynamoGraphDeployment) -> list[KubeObject]:
    """One for each component that requests it, with the initial replicas; then autoscalers or users own the number."""
    name = graph.metadata.name
    return [
        new_object_of(
            graph,
            DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
            names.component_deployment(name, component.name),
            {labels.GRAPH_DEPLOYMENT_NAME: name, labels.COMPONENT: component.name},
            spec={
                "dgdRef": {"name": name, "componentName": component.name},
                "replicas": 1 if component.replicas is None else component.replicas,
            },
        )
        for component in graph.spec.components
        if component.scaling_adapter is not None
    ]
