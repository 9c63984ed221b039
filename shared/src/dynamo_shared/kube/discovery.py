"""What the API server offers, and making it offer our own types."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, ObjectKey, Resource
from dynamo_shared.kube import errors
from dynamo_shared.kube.client import KubeClient
from dynamo_shared.kube.objects import KubeObject

_POLL_SECONDS = 0.1

Sleep = Callable[[float], Awaitable[None]]


async def served(client: KubeClient, resource: Resource) -> bool:
    """Whether the API server serves the resource now: its group, version and plural. Raises KubeError otherwise."""
    path = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    try:
        content = await client.raw_get(path)
    except errors.NotFound:
        return False
    found: dict[str, Any] = msgspec.json.decode(content)
    return any(entry.get("name") == resource.plural for entry in found.get("resources") or ())


async def groups(client: KubeClient) -> dict[str, list[str]]:
    """API groups other than the core one, each with its versions, the preferred one first."""
    found: dict[str, Any] = msgspec.json.decode(await client.raw_get("/apis"))
    return {group["name"]: [entry["version"] for entry in group["versions"]] for group in found.get("groups") or ()}


async def install_crds(
    client: KubeClient, manifests: Iterable[KubeObject], *, timeout: float = 30.0, sleep: Sleep = asyncio.sleep
) -> None:
    """Apply CustomResourceDefinitions, and wait until each is served. Applying what is there already changes nothing.

    Raises KubeError: Invalid where a manifest or the change of one is refused, Unavailable after `timeout` seconds.
    """
    wanted = list(manifests)
    for manifest in wanted:
        await client.apply(CUSTOM_RESOURCE_DEFINITIONS, manifest)
    await wait_established(client, [manifest["metadata"]["name"] for manifest in wanted], timeout=timeout, sleep=sleep)


async def wait_established(
    client: KubeClient, names: Iterable[str], *, timeout: float = 30.0, sleep: Sleep = asyncio.sleep
) -> None:
    """Wait until CRDs are Established and all their served versions answer.

    The API server says Established a moment before it serves, so both are waited for. Raises Unavailable after
    `timeout` seconds, with what each CRD that is left lacks; Invalid at once where its names are taken.
    """
    deadline = time.monotonic() + timeout
    waiting = dict.fromkeys(names, "not there")
    while True:
        for name in list(waiting):
            lacking = await _lacking(client, name)
            if lacking:
                waiting[name] = lacking
            else:
                del waiting[name]
        if not waiting:
            return
        if time.monotonic() >= deadline:
            left = "; ".join(f"{name}: {lacking}" for name, lacking in sorted(waiting.items()))
            raise errors.Unavailable(0, "NotEstablished", f"after {timeout:g} s: {left}")
        await sleep(_POLL_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, no secret


async def _lacking(client: KubeClient, name: str) -> str:
    """What a CRD lacks until it can be used; empty where it lacks nothing."""
    try:
        crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", name))
    except errors.NotFound:
        return "not there"
    conditions = {entry["type"]: entry for entry in crd.get("status", {}).get("conditions") or ()}
    names = conditions.get("NamesAccepted", {})
    if names.get("status") == "False":
        raise errors.Invalid(422, names.get("reason", ""), f"{name}: {names.get('message', '')}")
    if conditions.get("Established", {}).get("status") != "True":
        return "not established"
    for resource in _resources(crd):
        if not await served(client, resource):
            return f"{resource.api_version} is not served"
    return ""


def _resources(crd: KubeObject) -> list[Resource]:
    spec = crd["spec"]
    names = spec["names"]
    return [
        Resource(spec["group"], version["name"], names["plural"], names["kind"], spec["scope"] == "Namespaced")
        for version in spec["versions"]
        if version["served"]
    ]
