"""What the API server offers, and making it offer our own types."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from dynamo_shared.aio import spread
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, ObjectKey, Resource, key_of
from dynamo_shared.kube import errors
from dynamo_shared.kube.client import KubeClient, get_if_present

_POLL_SECONDS = 0.1
_ATTEMPTS = 10

Sleep = Callable[[float], Awaitable[None]]


async def served(client: KubeClient, resource: Resource) -> bool:
    """Whether the API server serves the resource now: its group, version and plural. Raises KubeError otherwise."""
    path = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    try:
        group = await client.read(path)
    except errors.NotServed:
        return False
    return any(entry.get("name") == resource.plural for entry in group.get("resources") or ())


async def groups(client: KubeClient) -> dict[str, list[str]]:
    """API groups other than the core one, each with its versions, the preferred one first."""
    groups = (await client.read("/apis")).get("groups") or ()
    return {group["name"]: [entry["version"] for entry in group["versions"]] for group in groups}


async def install_crds(
    client: KubeClient, manifests: Iterable[KubeObject], *, timeout: float = 30.0, sleep: Sleep = asyncio.sleep
) -> None:
    """Apply CustomResourceDefinitions, and wait until each is served. Applying what is there already changes nothing.

    A conversion that is there already stays as it is. Raises KubeError: Invalid where a manifest or the change of one is
    refused, Conflict where another client keeps writing at the same time, Unavailable after `timeout` seconds.
    """
    crds, deadline = list(manifests), time.monotonic() + timeout
    for manifest in crds:
        await _install(client, manifest, deadline, sleep)
    await wait_established(client, [manifest["metadata"]["name"] for manifest in crds], timeout=timeout, sleep=sleep)


async def _install(client: KubeClient, manifest: KubeObject, deadline: float, sleep: Sleep) -> None:
    """Apply one CRD. It sets the conversion once; the service that converts keeps it from then on.

    An apply without fields that we applied before removes them, so we give up the conversion as soon as it is there.
    """
    if "conversion" not in manifest["spec"]:
        await _apply(client, manifest, deadline, sleep)
        return
    present = await get_if_present(client, CUSTOM_RESOURCE_DEFINITIONS, key_of(manifest)) or {}
    if present.get("spec", {}).get("conversion", {}).get("strategy") != "Webhook":
        # Without a step in between: versions without a conversion lose each other's fields.
        await _disown_conversion(client, await _apply(client, manifest, deadline, sleep))
        return
    await _disown_conversion(client, present)
    spec = {name: value for name, value in manifest["spec"].items() if name != "conversion"}
    await _apply(client, {**manifest, "spec": spec}, deadline, sleep)


async def _disown_conversion(client: KubeClient, crd: KubeObject) -> None:
    """Give up our ownership of a CRD's conversion; writes nothing where we do not own it."""
    for attempt in range(1, _ATTEMPTS + 1):
        metadata = crd["metadata"]
        entries = [_without_conversion(entry, client.field_manager) for entry in metadata.get("managedFields", [])]
        if entries == metadata.get("managedFields", []):
            return
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "managedFields": entries}}
        try:
            await client.merge_patch(CUSTOM_RESOURCE_DEFINITIONS, key_of(crd), patch)
        except errors.Conflict:
            # The API server writes the status of a new one several times.
            if attempt == _ATTEMPTS:
                raise
            crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, key_of(crd))
        else:
            return


def _without_conversion(entry: dict[str, Any], manager: str) -> dict[str, Any]:
    spec = entry.get("fieldsV1", {}).get("f:spec", {})
    if entry.get("manager") != manager or "f:conversion" not in spec:
        return entry
    left = {name: value for name, value in spec.items() if name != "f:conversion"}
    return {**entry, "fieldsV1": {**entry["fieldsV1"], "f:spec": left}}


async def _apply(client: KubeClient, manifest: KubeObject, deadline: float, sleep: Sleep) -> KubeObject:
    """Apply one, and return it. The server's own controllers write its status at the same time, and may win again and again."""
    while True:
        try:
            return await client.apply(CUSTOM_RESOURCE_DEFINITIONS, manifest)
        except errors.Conflict as error:
            # With causes it is a field of another manager, which no repetition wins.
            if error.causes or time.monotonic() >= deadline:
                raise
        await sleep(spread(_POLL_SECONDS, most=1.5))


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
        await sleep(spread(_POLL_SECONDS, most=1.5))


async def _lacking(client: KubeClient, name: str) -> str:
    """What a CRD lacks until it can be used; empty where it lacks nothing."""
    crd = await get_if_present(client, CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", name))
    if crd is None:
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
