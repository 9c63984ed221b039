"""If another client scales a workload of the platform, the platform restores the number and reports who it was."""

from typing import Any

import pytest
from dynamo_pod_builder import events
from dynamo_pod_builder.applier import Applier, ChildChange, Ensured, SetBack
from dynamo_pod_builder.render import MANAGED_BY
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DEPLOYMENTS, POD_CLIQUES, ObjectKey, Resource
from dynamo_shared.state import ObjectCache

from tests.unit.announced import Announced

KEY = ObjectKey("ns", "graph-one")


class Server:
    """An API server with one Deployment that records who set its replicas."""

    field_manager = "dynamo-pod-builder"

    def __init__(self) -> None:
        self.obj: KubeObject = {}
        self.reads = 0

    async def create(self, _resource: Resource, obj: KubeObject) -> KubeObject:
        self.obj = {**obj, "metadata": {**obj["metadata"], "uid": "u", "resourceVersion": "1", "generation": 1}}
        return self._written(obj["spec"]["replicas"], self.field_manager)

    async def get(self, _resource: Resource, _key: ObjectKey) -> KubeObject:
        self.reads += 1
        return self.obj

    async def merge_patch(self, _resource: Resource, _key: ObjectKey, patch: Any, subresource: str) -> KubeObject:
        assert subresource == "scale"
        return self._written(patch["spec"]["replicas"], self.field_manager)

    def scaled_by(self, writer: str, replicas: int) -> KubeObject:
        return self._written(replicas, writer)

    def _written(self, replicas: int, writer: str) -> KubeObject:
        metadata = self.obj["metadata"]
        version = str(int(metadata["resourceVersion"]) + 1)
        entry = {"manager": writer, "time": version, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
        self.obj = {
            **self.obj,
            "metadata": {**metadata, "resourceVersion": version, "managedFields": [entry]},
            "spec": {**self.obj["spec"], "replicas": replicas},
        }
        return self.obj


def deployment(replicas: int) -> KubeObject:
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "labels": {labels.APP_MANAGED_BY: MANAGED_BY}}
    spec = {"replicas": replicas, "selector": {}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def cache() -> ObjectCache:
    return ObjectCache()


@pytest.fixture
def applier(server: Server, cache: ObjectCache) -> Applier:
    return Applier(server, cache)  # type: ignore[arg-type]


async def test_replicas_of_another_client_are_restored_and_reported_each_time(applier, server, cache):
    await applier.ensure(deployment(1))
    assert (await applier.ensure(deployment(1))).change is ChildChange.UNCHANGED
    for _ in range(2):
        cache.put(DEPLOYMENTS, server.scaled_by("kube-controller-manager", 3))
        ensured = await applier.ensure(deployment(1))
        assert ensured.set_back == SetBack("kube-controller-manager", 3)
        assert server.obj["spec"]["replicas"] == 1


async def test_replicas_that_are_desired_now_are_not_reported_and_cost_no_read(applier, server, cache):
    await applier.ensure(deployment(1))
    for number in (1, 4, 4, 1):
        assert (await applier.ensure(deployment(number))).set_back is None
    assert server.reads == 0
    cache.put(DEPLOYMENTS, server.scaled_by("keda-operator", 3))
    assert (await applier.ensure(deployment(1))).set_back == SetBack("keda-operator", 3)


async def test_replicas_that_the_platform_patched_directly_are_its_own(applier, server, cache):
    await applier.ensure(deployment(1))
    await applier.ensure(deployment(1))
    await applier.patch_replicas(DEPLOYMENTS, cache.get(DEPLOYMENTS, KEY), 2)
    assert (await applier.ensure(deployment(1))).set_back is None


async def test_replicas_of_cliques_are_restored_and_reported_too(applier, server, cache):
    """Grove copies the replicas of a set once, and then leaves them to others."""
    made = await server.create(POD_CLIQUES, {**deployment(1), **POD_CLIQUES.type_meta})
    cache.put(POD_CLIQUES, made)
    assert await applier.scale(POD_CLIQUES, made, 1) == Ensured(ChildChange.UNCHANGED, made)
    ensured = await applier.scale(POD_CLIQUES, server.scaled_by("keda-operator", 3), 1)
    assert ensured.set_back == SetBack("keda-operator", 3)
    assert server.obj["spec"]["replicas"] == 1
    assert (await applier.scale(POD_CLIQUES, server.obj, 2)).set_back is None, "desired now"


def of(kind: str, name: str) -> KubeObject:
    return {"kind": kind, "metadata": {"name": name, "namespace": "ns", "uid": "o", "generation": 1}, "spec": {}}


@pytest.mark.parametrize(
    ("owner", "writer", "message"),
    [
        pytest.param(
            of("DynamoGraphDeployment", "graph"),
            "kube-controller-manager-1.35.4",
            "kube-controller-manager-1.35.4 (a HorizontalPodAutoscaler) scaled Deployment graph-one to 3 replicas; "
            "the platform reset it to 1, the number in DynamoGraphDeployment graph. Instead, set `scalingAdapter: {}` for "
            "component One, and scale DynamoGraphDeploymentScalingAdapter graph-one",
            id="of a graph",
        ),
        pytest.param(
            of("DynamoComponentDeployment", "alone"),
            "kubectl",
            "kubectl scaled Deployment graph-one to 3 replicas; the platform reset it to 1, the number in "
            "DynamoComponentDeployment alone. Instead, scale DynamoComponentDeployment alone",
            id="of a component without a graph",
        ),
    ],
)
def test_the_event_names_the_writer_and_the_right_way(owner, writer, message):
    announced = Announced()
    announced.announce(owner, events.replicas_set_back(owner, "One", deployment(1), SetBack(writer, 3)))
    assert announced.lines == [f"Warning ReplicasSetBack Scale: {message}"]
