"""Whose GPUs come by a ResourceClaim, or by a template of claims: many claims change that no graph counts."""

from collections.abc import Callable

from dynamo_shared.api import device_claims, objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENTS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    ObjectKey,
    Resource,
)
from dynamo_shared.api.role_templates import all_templates
from dynamo_shared.api.untrusted.reading import items, mapping
from dynamo_shared.state import ObjectCache

from dynamo_scaler.adapters import pods

_FIELDS = {RESOURCE_CLAIM_TEMPLATES: "resourceClaimTemplateName", RESOURCE_CLAIMS: "resourceClaimName"}
"""what names an object of a resource in a pod's spec"""


def index(cache: ObjectCache) -> None:
    """Keep graphs, and pods with claims of their own, findable by what they claim by."""
    for resource, named in _FIELDS.items():
        cache.add_index(DYNAMO_GRAPH_DEPLOYMENTS, resource.id, _claiming_by(named))
    cache.add_index(PODS, RESOURCE_CLAIMS.id, _made_for)


def graphs_of(cache: ObjectCache, resource: Resource, key: ObjectKey) -> set[ObjectKey]:
    """Graphs whose GPUs are counted by a claim, or by a template of claims."""
    graphs = set(cache.keys_by_index(DYNAMO_GRAPH_DEPLOYMENTS, resource.id, str(key)))
    if resource == RESOURCE_CLAIMS:
        graphs.update(map(pods.graph_of, cache.by_index(PODS, resource.id, str(key))))
    return graphs


def _claiming_by(field: str) -> Callable[[KubeObject], list[str]]:
    def named(graph: KubeObject) -> list[str]:
        specs = [
            mapping(template.get("spec"))
            for component in items(mapping(graph.get("spec")).get("components"))
            for template in all_templates(mapping(component))
        ]
        names = [mapping(claim).get(field) for spec in specs for claim in items(spec.get("resourceClaims"))]
        return [str(ObjectKey(objects.namespace(graph), str(name))) for name in names if name]

    return named


def _made_for(pod: KubeObject) -> list[str]:
    made = device_claims.made_for(pod).values()
    return [str(ObjectKey(objects.namespace(pod), name)) for name in made]
