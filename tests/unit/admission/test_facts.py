"""The facts about the cluster that the rules use: from settings, environment and lists of the API server."""

from datetime import UTC, datetime
from typing import Any

import pytest
from dynamo_admission.address import address_of, namespace_of
from dynamo_admission.facts import domains, first_world, read
from dynamo_admission.review import Webhook, review
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS
from dynamo_shared.kube import Forbidden, NotServed
from dynamo_shared.kube.client import KubeObjects
from dynamo_shared.runtime import InvalidSettings, load_settings

from tests.building.objects import object_of

from .reviewing import NO_TYPES, question

HERE = {"metadata": {"name": "here"}, "spec": {"levels": [{"domain": "zone"}]}}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def settings(**variables: str):
    return load_settings(None, {f"DYNAMO_{name}": value for name, value in variables.items()})


class Cluster:
    """The API server's lists; a list that is an error is raised."""

    def __init__(self, groups: dict[str, str], lists: dict[str, Any]) -> None:
        self._groups = groups
        self._lists = lists
        self.asked: list[str] = []

    async def read(self, path: str, *, accept: str = "") -> dict[str, Any]:
        self.asked.append(path)
        groups = [{"name": name, "versions": [{"version": version}]} for name, version in self._groups.items()]
        return {"groups": groups}

    async def list(self, resource: Any, namespace: str = "", **_: Any) -> KubeObjects:
        self.asked.append(resource.plural)
        observed = self._lists.get(resource.plural, [])
        if isinstance(observed, Exception):
            raise observed
        return observed


def lease(namespace: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "dynamo-operator-namespace-scope", "namespace": namespace}, "spec": spec}


def test_domains_go_from_broad_to_narrow_and_junk_is_ignored():
    assert domains({"spec": {"levels": [{"domain": "zone"}, {"domain": "rack"}]}}) == ("zone", "rack")
    assert domains({"spec": {"levels": ["junk"]}}) == domains({"spec": None}) == domains({}) == ()


def test_the_platform_knows_its_own_users():
    world = first_world(
        settings(PLATFORM__ADMISSION__OPERATORS="admin,scaler"),
        {"POD_NAMESPACE": "system", "POD_SERVICE_ACCOUNT": "dynamo"},
    )
    assert world.facts.operators == {"admin", "scaler", "system:serviceaccount:system:dynamo"}
    assert first_world(settings(), {"POD_NAMESPACE": "system"}).facts.operators == frozenset()


@pytest.mark.parametrize(
    ("version", "spec", "path"),
    [
        ("v1alpha1", {"profilingConfig": {"profilerImage": ""}}, "/spec/profilingConfig/profilerImage"),
        ("v1beta1", {}, "/spec/image"),
    ],
)
def test_the_image_of_a_request_is_in_the_repository_of_the_settings(version: str, spec: Any, path: str) -> None:
    """Engines get the repository of this image: with another one, a cluster without the internet could not pull them."""
    world = first_world(settings(PLATFORM__PLANNER__IMAGE_REPOSITORY="mirror.example.com/ai/"), {})
    spec = {"model": "m", "backend": "vllm", **spec}
    request = object_of(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.at(version), "qwen", "team", spec=spec)
    (operation,) = review(question(request), Webhook.MUTATE, world, NO_TYPES).patch
    assert (operation["path"], operation["value"]) == (path, "mirror.example.com/ai/dynamo-planner:1.2.0")


async def test_only_served_resources_are_requested():
    leases = [lease("team", leaseDurationSeconds=30, renewTime="2026-01-01T00:00:00Z"), lease("other")]
    obj = {"clustertopologies": [HERE], "clustertopologybindings": NotServed(404, "NotFound", "no"), "leases": leases}
    cluster = Cluster({"grove.io": "v1alpha1", "inference.networking.k8s.io": "v1"}, obj)
    trusting = settings(NAMESPACE__SCOPE__TRUSTED_NAMESPACES="team,other")
    world = await read(first_world(trusting, {}), cluster, trusting, NOW)  # type: ignore[arg-type]
    assert (world.facts.grove, world.facts.inference_pools, world.facts.leader_worker_sets) == (True, True, False)
    assert (world.facts.topologies, world.facts.topology_kind) == ({"here": ("zone",)}, "ClusterTopology")
    assert world.held == {"team"}


@pytest.mark.parametrize("left_behind", [[], NotServed(404, "NotFound", "no")])
async def test_bindings_are_the_topologies_of_a_grove_that_serves_them(left_behind: Any) -> None:
    cluster = Cluster({"grove.io": "v1alpha1"}, {"clustertopologybindings": [HERE], "clustertopologies": left_behind})
    world = await read(first_world(settings(), {}), cluster, settings(), NOW)  # type: ignore[arg-type]
    assert (world.facts.topologies, world.facts.topology_kind) == ({"here": ("zone",)}, "ClusterTopologyBinding")


async def test_a_lease_disables_no_webhook_unless_the_configuration_trusts_its_namespace():
    leases = [lease("team", leaseDurationSeconds=30, renewTime="2026-01-01T00:00:00Z")]
    for trusted in (settings(NAMESPACE__SCOPE__TRUSTED_NAMESPACES="other-*"), settings()):
        cluster = Cluster({}, {"leases": leases})
        world = await read(first_world(trusted, {}), cluster, trusted, NOW)  # type: ignore[arg-type]
        assert world.held == frozenset()


async def test_facts_that_cannot_be_read_stay_unknown():
    refused, absent = Forbidden(403, "Forbidden", "no"), NotServed(404, "NotFound", "no")
    for bindings, topologies in ((refused, []), (absent, refused), (absent, absent)):
        cluster = Cluster(
            {"grove.io": "v1alpha1"}, {"clustertopologybindings": bindings, "clustertopologies": topologies}
        )
        world = await read(first_world(settings(), {}), cluster, settings(), NOW)  # type: ignore[arg-type]
        assert world.facts.topologies is None
        assert world.facts.inference_pools is False


@pytest.mark.parametrize(("enabled", "known"), [(None, True), (True, True), (False, False)])
async def test_leader_worker_sets_are_available_if_the_cluster_serves_them_and_the_settings_use_them(enabled, known):
    given = settings() if enabled is None else settings(ORCHESTRATORS__LWS__ENABLED=str(enabled).lower())
    cluster = Cluster({"leaderworkerset.x-k8s.io": "v1"}, {})
    world = await read(first_world(given, {}), cluster, given, NOW)  # type: ignore[arg-type]
    assert world.facts.leader_worker_sets is known


async def test_a_platform_of_one_namespace_requests_no_leases():
    restricted, cluster = settings(NAMESPACE__RESTRICTED="team"), Cluster({}, {})
    world = await read(first_world(restricted, {}), cluster, restricted, NOW)  # type: ignore[arg-type]
    assert (world.facts.cluster_wide, world.facts.grove, world.held) == (False, False, frozenset())
    assert cluster.asked == ["/apis"]


async def test_grove_can_be_disabled_if_it_is_served():
    off = settings(ORCHESTRATORS__GROVE__ENABLED="false")
    world = await read(first_world(off, {}), Cluster({"grove.io": "v1"}, {}), off, NOW)  # type: ignore[arg-type]
    assert world.facts.grove is False


def test_the_address_is_a_service_or_a_url_and_one_of_them_is_required():
    assert address_of(settings(SERVER__WEBHOOK__SERVICE_NAME="hooks"), {"POD_NAMESPACE": "a"}).host == "hooks.a.svc"
    assert address_of(settings(PLATFORM__ADMISSION__URL="https://10.0.0.1:9443"), {}).host == "10.0.0.1"
    assert namespace_of(settings(), {}) == "dynamo-system"
    assert namespace_of(settings(PLATFORM__ADMISSION__NAMESPACE="b"), {"POD_NAMESPACE": "a"}) == "b"
    with pytest.raises(InvalidSettings, match=r"server\.webhook\.serviceName"):
        address_of(settings(), {})
