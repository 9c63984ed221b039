"""In whatever order the status of a component and of its workload arrive, a graph's status never stays outdated."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dynamo_pod_builder.children import workload_of
from dynamo_pod_builder.status.component import failure_of, is_observed
from dynamo_pod_builder.status.graph import Generation, GraphOutcome, graph_status
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.cache import ObjectCache
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.routed import tasks_of

from .indexed import indexed, routes_of

KEY = ObjectKey("ns", "o")
GRAPH = Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "g"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)

COUNTS = st.integers(0, 2)
SERVING = {
    "observedGeneration": 2,
    **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2),
    "conditions": [{"type": "Available", "status": "True"}],
}
WORKLOAD_STATUS = st.just(SERVING) | st.fixed_dictionaries(
    {"observedGeneration": st.integers(0, 2)},
    optional={
        **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), COUNTS),
        "conditions": st.sampled_from([[], [{"type": "Available", "status": "True"}]]),
    },
)
REASONS = st.sampled_from(["DeploymentNotReady", "DeploymentReady", "NameTaken", "CrashLoopBackOff"])
COMPONENT_STATUS = st.builds(
    lambda generation, status, reason: {
        "observedGeneration": generation,
        "conditions": [{"type": "Available", "status": status, "reason": reason, "message": ""}],
    },
    st.integers(0, 2),
    st.sampled_from(["True", "False"]),
    REASONS,
)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just(DEPLOYMENTS), WORKLOAD_STATUS),
        st.tuples(st.just(DYNAMO_COMPONENT_DEPLOYMENTS), COMPONENT_STATUS),
    ),
    max_size=8,
)


def owned(resource: Resource, owner: Resource, owner_uid: str, spec: KubeObject, **more: Any) -> KubeObject:
    reference = {"kind": owner.kind, "name": owner_uid, "uid": owner_uid, "controller": True}
    metadata = {"name": "o", "namespace": "ns", "uid": resource.plural, "generation": 2, "resourceVersion": "1"}
    metadata |= {"ownerReferences": [reference], **more}
    return {"kind": resource.kind, "metadata": metadata, "spec": spec, "status": {}}


def concluded(cache: ObjectCache) -> KubeObject:
    component = cache.get(DYNAMO_COMPONENT_DEPLOYMENTS, KEY)
    assert component is not None
    part = Generation(
        "o", workload_of(cache, component), failure=failure_of(component), observed=is_observed(component)
    )
    return graph_status({"metadata": {"generation": 1}}, GraphOutcome({"A": [part]}), NOW)


@examples(300)
@given(CHANGES)
def test_a_graph_is_reconciled_whenever_its_status_would_change(
    changes: list[tuple[Resource, Mapping[str, Any]]],
) -> None:
    cache = indexed()
    cache.put(
        DYNAMO_COMPONENT_DEPLOYMENTS, owned(DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, "g", {"a": 1})
    )
    of_component = owned(
        DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS.plural, {"replicas": 2}
    )
    of_component["metadata"]["labels"] = {labels.GRAPH_DEPLOYMENT_NAME: "g"}
    cache.put(DEPLOYMENTS, of_component)
    routes, last = routes_of(cache), concluded(cache)
    for version, (resource, status) in enumerate(changes, 2):
        old = cache.get(resource, KEY)
        assert old is not None
        new = {**old, "metadata": {**old["metadata"], "resourceVersion": str(version)}, "status": status}
        cache.put(resource, new)
        if GRAPH in tasks_of(routes, resource, KEY, old, new):
            last = concluded(cache)
        assert last == concluded(cache)
