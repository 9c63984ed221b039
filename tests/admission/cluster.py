"""The cluster for the cases: what it serves next to the platform's kinds, and requests like those of kubectl."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import AlreadyExists, KubeClient, NotServed
from dynamo_shared.kube.config import load

from tests.building.definitions import definition_of
from tests.integration.platform import eventually

from .case import TOPOLOGIES

TOPOLOGY = Resource("grove.io", "v1alpha1", "clustertopologies", "ClusterTopology", namespaced=False)
POOL = Resource("inference.networking.k8s.io", "v1", "inferencepools", "InferencePool")


class ApiServer:
    """Sends requests as kubectl does, as any user; returns status code and body, whatever they are."""

    def __init__(self, session: aiohttp.ClientSession, server: str) -> None:
        self._session = session
        self._server = server

    async def ask(
        self, method: str, path: str, body: KubeObject | None = None, user: str = ""
    ) -> tuple[int, KubeObject]:
        """Send a request; unknown fields of the body are rejected, as kubectl demands."""
        return await self.send(method, path, None if body is None else msgspec.json.encode(body).decode(), user)

    async def send(self, method: str, path: str, text: str | None, user: str = "") -> tuple[int, KubeObject]:
        """The same with a text as body, which need not be valid."""
        async with self._session.request(
            method,
            f"{self._server}{path}",
            params={"fieldValidation": "Strict"} if text is not None else None,
            data=text.encode() if text is not None else None,
            headers={"Content-Type": "application/json", **({"Impersonate-User": user} if user else {})},
        ) as answer:
            return answer.status, msgspec.json.decode(await answer.read(), type=dict[str, Any])


@asynccontextmanager
async def api_server(kubeconfig: Path) -> AsyncIterator[ApiServer]:
    """The API server of a kubeconfig."""
    connection = await load(kubeconfig)
    connector = aiohttp.TCPConnector(ssl=connection.tls or False)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session:
        yield ApiServer(session, connection.server)


async def install_optional_kinds(kube: KubeClient) -> None:
    """Install what the rules need in a cluster: Grove with a ClusterTopology, and InferencePools."""
    for resource in (TOPOLOGY, POOL):
        with contextlib.suppress(AlreadyExists):
            await kube.create(CUSTOM_RESOURCE_DEFINITIONS, definition_of(resource))
    for name, domains in TOPOLOGIES.items():
        spec = {"levels": [{"domain": domain, "key": f"example.com/{domain}"} for domain in domains]}
        topology = {**TOPOLOGY.type_meta, "metadata": {"name": name}, "spec": spec}
        await eventually(partial(_created, kube, topology), "ClusterTopologies are served")


async def delete_webhook_configurations(kube: KubeClient) -> None:
    """Delete the webhook configurations that a stopped replica leaves behind."""
    for resource in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS):
        for each in await kube.list(resource):
            await kube.delete(resource, ObjectKey("", each["metadata"]["name"]))


async def _created(kube: KubeClient, topology: KubeObject) -> bool:
    try:
        await kube.create(TOPOLOGY, topology)
    except AlreadyExists:
        return True
    except NotServed:
        return False
    return True
