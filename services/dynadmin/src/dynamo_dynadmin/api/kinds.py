"""The collections of the API, and the operations on each."""

from dataclasses import dataclass

from dynamo_shared.api.resources import (
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_MODELS,
    Resource,
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A collection."""

    collection: str
    """its name in paths"""
    word: str
    """singular, for users"""
    operation: str
    """singular, for operation ids"""
    resource: Resource
    writable: bool = True
    has_pods: bool = False


DEPLOYMENTS = Kind("deployments", "graph deployment", "Deployment", DYNAMO_GRAPH_DEPLOYMENTS, has_pods=True)
REQUESTS = Kind("requests", "deployment request", "Request", DYNAMO_GRAPH_DEPLOYMENT_REQUESTS)
MODELS = Kind("models", "model", "Model", DYNAMO_MODELS)
COMPONENTS = Kind("components", "component", "Component", DYNAMO_COMPONENT_DEPLOYMENTS, writable=False, has_pods=True)
ADAPTERS = Kind("adapters", "scaling adapter", "Adapter", DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, writable=False)
CHECKPOINTS = Kind("checkpoints", "checkpoint", "Checkpoint", DYNAMO_CHECKPOINTS)

KINDS: tuple[Kind, ...] = (DEPLOYMENTS, REQUESTS, MODELS, COMPONENTS, ADAPTERS, CHECKPOINTS)
