"""GPUs that components claim: how they are counted, and what a changed claim reconciles."""

from typing import Any

import pytest
from dynamo_pod_builder import claims
from dynamo_pod_builder.render.config import NO_CLAIMS, RoleClaims
from dynamo_shared.api.device_claims import ClaimedGpus
from dynamo_shared.api.gpus import GpuShape
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
    of_all = RoleClaims(ClaimedGpus(own=4), ClaimedGpus(own=4))
    assert claims.claimed(get, "ns", BY_TEMPLATE) == claims.claimed(get, "ns", BY_NAME) == of_all
    assert claims.claimed(get, "elsewhere", BY_TEMPLATE).serving.unknown


@pytest.mark.parametrize("own", [("leader", "worker"), ("leader",), ("worker",)])
def test_pods_of_each_role_have_the_gpus_that_their_template_claims(own: tuple[str, ...]) -> None:
    eight = stored(RESOURCE_CLAIM_TEMPLATES, "eight", {"spec": four(count=8)})
    of_role = {
        "leader": component(resourceClaimTemplateName="eight")["podTemplate"],
        "worker": BY_TEMPLATE["podTemplate"],
    }
    roles = [{"name": name, "podTemplate": of_role[name]} if name in own else {"name": name} for name in of_role]
    rest = [{"podTemplate": template} for name, template in of_role.items() if name not in own]
    single = {"name": "Worker", "multinode": {"nodeCount": 3}, "roles": roles, **(rest[0] if rest else {})}
    claimed = claims.claimed(indexed(TEMPLATE, eight).get, "ns", single)
    assert claimed == RoleClaims(serving=ClaimedGpus(own=8), workers=ClaimedGpus(own=4))


def test_gpus_of_a_single_node_component_are_not_read_from_claims() -> None:
    alone = {name: value for name, value in BY_TEMPLATE.items() if name != "multinode"}
    assert claims.claimed(indexed().get, "ns", alone) == NO_CLAIMS


@pytest.mark.parametrize(("nodes", "shape"), [(1, GpuShape(4, 4)), (2, GpuShape(8, 8))])
def test_gpus_of_a_replica_are_those_of_its_claims(nodes: int, shape: GpuShape) -> None:
    wide = {**BY_TEMPLATE, "multinode": {"nodeCount": nodes}}
    assert claims.gpu_shape(indexed(TEMPLATE).get, "ns", wide) == shape
    assert claims.gpu_shape(indexed(TEMPLATE).get, "elsewhere", wide) is None


def test_a_changed_claim_reconciles_the_objects_whose_pods_name_it() -> None:
    graph = stored(DYNAMO_GRAPH_DEPLOYMENTS, "g", {"components": [{"name": "Frontend"}, BY_TEMPLATE]})
    alone = stored(DYNAMO_COMPONENT_DEPLOYMENTS, "c", BY_NAME)
    # Also on one node: the status reports how many GPUs the pods claim.
    narrow = {name: value for name, value in BY_NAME.items() if name != "multinode"}
    single = stored(DYNAMO_GRAPH_DEPLOYMENTS, "single", {"components": [narrow]})
    other = stored(DYNAMO_GRAPH_DEPLOYMENTS, "other", {"components": [{"name": "Frontend"}]})
    cache = indexed(graph, alone, single, other)
    key, routes = ObjectKey("ns", "four"), claims.routes(cache)
    of_graph = Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "g"))
    of_component = Task.of(DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey("ns", "c"))
    of_single = Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "single"))
    assert tasks_of(routes, RESOURCE_CLAIM_TEMPLATES, key, None, TEMPLATE) == [of_graph]
    assert tasks_of(routes, RESOURCE_CLAIMS, key, CLAIM, None) == [of_single, of_component]
    fewer = {**CLAIM, "spec": four(count=2)}
    assert tasks_of(routes, RESOURCE_CLAIMS, key, CLAIM, fewer) == [of_single, of_component]
    allocated = {**CLAIM, "status": {"allocation": {}}}
    assert tasks_of(routes, RESOURCE_CLAIMS, key, CLAIM, allocated) == []
    owned = {"ownerReferences": [{"kind": "Pod", "name": "four", "uid": "p", "controller": True}]}
    of_pod = {**CLAIM, "metadata": {**CLAIM["metadata"], **owned}}
    assert tasks_of(routes, RESOURCE_CLAIMS, key, None, of_pod) == []


def test_a_changed_claim_reads_no_graph_that_does_not_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are packed in the cache: reading thousands for each claim of a tenant would block all others."""
    cache = indexed(*(stored(DYNAMO_GRAPH_DEPLOYMENTS, name, {"components": [BY_NAME]}) for name in "ab"))
    routes = claims.routes(cache)
    monkeypatch.setattr(cache, "get", lambda *_: pytest.fail("a graph is read"))
    assert len(tasks_of(routes, RESOURCE_CLAIMS, ObjectKey("ns", "four"), None, CLAIM)) == 2
    assert tasks_of(routes, RESOURCE_CLAIMS, ObjectKey("ns", "five"), None, CLAIM) == []


@pytest.mark.parametrize(
    "junk", ["x", [], {"resourceClaims": "x"}, {"resourceClaims": ["x", {"resourceClaimName": []}]}]
)
def test_malformed_pod_templates_name_no_claim(junk: Any) -> None:
    """Their schema does not restrict them, and the cache accepts no object that an index fails on."""
    graph = stored(
        DYNAMO_GRAPH_DEPLOYMENTS, "g", {"components": [None, {"name": "One", "podTemplate": {"spec": junk}}]}
    )
    assert indexed(graph).get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "g")) == graph
