"""/metrics with `secure: true`: its own TLS, and access only for users that the API server authorizes.

Probes stay plain.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from operator import itemgetter

import aiohttp
import pytest
from dynamo_devcluster import ControlPlane
from dynamo_shared.api.resources import CLUSTER_ROLES
from dynamo_shared.api.rights import SCRAPED
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.reviews import review_access
from dynamo_shared.runtime import Running, ServiceContext, running

from tools.generate.charts.rights import rules

from .dynadmin import CLUSTER_ROLE_BINDINGS, account, cluster_wide
from .platform import eventually, settings

MAY_SCRAPE = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
PLATFORM = "metrics-platform"


class Nothing:
    """A service that does nothing."""

    name = "nothing"
    api_server_alone = True

    async def run(self, context: ServiceContext) -> None:
        context.health.ok(self.name)
        await asyncio.Event().wait()


@pytest.fixture
async def platform(control_plane: ControlPlane, kube: KubeClient) -> AsyncIterator[Running]:
    """A process with the default settings, as a user with the declared rights and no others."""
    for resource, more in (
        (CLUSTER_ROLES, {"rules": [*rules(SCRAPED), {"nonResourceURLs": ["/healthz"], "verbs": ["get"]}]}),
        (
            CLUSTER_ROLE_BINDINGS,
            {
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": PLATFORM},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": PLATFORM}],
            },
        ),
    ):
        await kube.apply(resource, {**resource.type_meta, "metadata": {"name": PLATFORM}, **more})
    await known(kube, PLATFORM, {"path": "/healthz", "verb": "get"})
    configured = settings(control_plane.user_kubeconfig(PLATFORM), "nats://127.0.0.1:1", SERVER__METRICS__SECURE="true")
    async with running([Nothing()], configured) as up:
        await up.ready()
        yield up


async def known(kube: KubeClient, user: str, act: dict[str, str]) -> None:
    """Return when the API server's RBAC knows a new right: this takes a moment."""
    review = {"user": user, "nonResourceAttributes": act}
    await eventually(lambda: review_access(kube, review), "the API server grants the right", where=itemgetter(0))


async def scrape(up: Running, token: str | None, scheme: str = "Bearer") -> tuple[int, str]:
    """Status and text of the answer to a scraper that does not verify certificates."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"{scheme} {token}"} if token is not None else {}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"https://127.0.0.1:{up.metrics_port}/metrics", ssl=tls, headers=headers) as answer,
    ):
        return answer.status, await answer.text()


async def test_only_authorized_users_read_metrics(platform: Running, kube: KubeClient, namespace: str) -> None:
    stranger = await account(kube, namespace, "stranger")
    scraper = await account(kube, namespace, "scraper")
    await cluster_wide(kube, namespace, "scraper", MAY_SCRAPE)
    await known(kube, f"system:serviceaccount:{namespace}:scraper", {"path": "/metrics", "verb": "get"})

    assert (await scrape(platform, None))[0] == 401
    assert (await scrape(platform, "made-up"))[0] == 401
    assert (await scrape(platform, scraper, "Basic"))[0] == 401
    status, text = await scrape(platform, stranger)
    assert (status, "nonResourceURLs" in text) == (403, True)
    result = await scrape(platform, scraper)
    assert result[0] == 200
    assert "dynamo_platform_kube_requests_total" in result[1]
    assert scraper not in result[1]


async def test_metrics_are_served_only_over_tls_and_probes_without_tls(platform: Running) -> None:
    async with aiohttp.ClientSession() as session:
        for path in ("healthz", "readyz"):
            async with session.get(f"http://127.0.0.1:{platform.health_port}/{path}") as answer:
                assert answer.status == 200
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"http://127.0.0.1:{platform.metrics_port}/metrics")
