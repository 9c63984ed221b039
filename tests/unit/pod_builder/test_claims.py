"""GPUs that components claim: where they are read, and who is reconciled when a claim changes."""

from typing import Any

from dynamo_pod_builder import claims
from dynamo_pod_builder.render.config import NO_CLAIMS
from dynamo_shared.api.device_claims import ClaimedGpus
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime.tasks import Task

from tests.unit.routed import tasks_of

from .indexed import indexed


def component(**claim: str) -> KubeObject:
    main = {"name": "main", "resources": {"claims": [{"name": "gpus"}]}}
    pod = {"containers": [main], "resourceClaims": [{"name": "gpus", **claim}]}
    return {"name": "Worker", "multinode": {"nodeCount": 2}, "podTemplate": {"spec": pod}}


def stored(resource: Resource, name: str, spec: Any) -> KubeObject:
    return {**resource.type_meta, "metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": spec}


def four(**fields: Any) -> KubeObject:
    exactly = {"deviceClassName": "gpu.nvidia.com", "count": 4, **fields}
    return {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}


BY_TEMPLATE, BY_NAME = component(resourceClaimTemplateName="four"), component(resourceClaimName="four")
TEMPLATE = stored(RESOURCE_CLAIM_TEMPLATES, "four", {"spec": four()})
CLAIM = stored(RESOURCE_CLAIMS, "four", four())


def test_gpus_are_those_of_the_claims_in_the_namespace() -> None:
    get = indexed(TEMPLATE, CLAIM).get
    assert claims.claimed(get, "ns", BY_TEMPLATE) == claims.claimed(get, "ns", BY_NAME) == ClaimedGpus(own=4)
    assert claims.claimed(get, "elsewhere", BY_TEMPLATE).unknown


def test_nothing_depends_on_them_on_one_node() -> None:
    alone = {name: value for name, value in BY_TEMPLATE.items() if name != "multinode"}
    assert claims.claimed(indexed().get, "ns", alone) == NO_CLAIMS


def test_those_whose_pods_name_a_claim_are_reconciled_when_it_changes() -> None:
    graph = stored(DYNAMO_GRAPH_DEPLOYMENTS, "g", {"components": [{"name": "Frontend"}, BY_TEMPLATE]})
    alone = stored(DYNAMO_COMPONENT_DEPLOYMENTS, "c", BY_NAME)
    cache = indexed(graph, alone, stored(DYNAMO_GRAPH_DEPLOYMENTS, "other", {"components": [{"name": "Frontend"}]}))
    key, routes = ObjectKey("ns", "four"), claims.routes(cache)
    of_graph = Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "g"))
    of_component = Task.of(DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey("ns", "c"))
    assert tasks_of(routes, RESOURCE_CLAIM_TEMPLATES, key, None, TEMPLATE) == [of_graph]
    assert tasks_of(routes, RESOURCE_CLAIMS, key, CLAIM, None) == [of_component]
    fewer = {**CLAIM, "spec": four(count=2)}
    assert tasks_of(routes, RESOURCE_CLAIMS, key, CLAIM, fewer) == [of_component]
    allocated = {**CLAIM, "status": {"allocation": {}}}
    assert tasks_of(routes, RESOURCE_CLAIMS, key, CLAIM, allocated) == []
    owned = {"ownerReferences": [{"kind": "Pod", "name": "four", "uid": "p", "controller": True}]}
    of_pod = {**CLAIM, "metadata": {**CLAIM["metadata"], **owned}}
    assert tasks_of(routes, RESOURCE_CLAIMS, key, None, of_pod) == []
