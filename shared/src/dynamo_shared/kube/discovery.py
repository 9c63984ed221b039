"""Discovers the APIs of the API server, and installs the platform's CRDs."""

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
    """Whether the API server currently serves the resource: its group, version and plural. Raises KubeError."""
    path = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    try:
        group = await client.read(path)
    except errors.NotServed:
        return False
    return any(entry.get("name") == resource.plural for entry in group.get("resources") or ())


async def groups(client: KubeClient) -> dict[str, list[str]]:
    """API groups other than the core group, each with its versions, the preferred version first."""
    groups = (await client.read("/apis")).get("groups") or ()
    return {group["name"]: [entry["version"] for entry in group["versions"]] for group in groups}


async def install_crds(
    client: KubeClient, manifests: Iterable[KubeObject], *, timeout: float = 30.0, sleep: Sleep = asyncio.sleep
) -> None:
    """Apply CustomResourceDefinitions, and wait until each is served. A repetition changes nothing.

    An existing conversion stays. Raises KubeError: Invalid if the server refuses a manifest or a change, Conflict if
    another client keeps writing at the same time, Unavailable after `timeout` seconds.
    """
    crds, deadline = list(manifests), time.monotonic() + timeout
    for manifest in crds:
        await _install(client, manifest, deadline, sleep)
    await wait_established(client, [manifest["metadata"]["name"] for manifest in crds], timeout=timeout, sleep=sleep)


async def _install(client: KubeClient, manifest: KubeObject, deadline: float, sleep: Sleep) -> None:
    """Apply one CRD. This sets the conversion only once; later the converting service owns it.

    An apply removes fields that it lacks and this manager applied before. So this manager disowns the conversion at
    once.
    """
    if "conversion" not in manifest["spec"]:
        await _apply(client, manifest, deadline, sleep)
        return
    present = await get_if_present(client, CUSTOM_RESOURCE_DEFINITIONS, key_of(manifest)) or {}
    if present.get("spec", {}).get("conversion", {}).get("strategy") != "Webhook":
        # Apply the conversion in the same step: versions without a conversion would lose each other's fields.
        await _disown_conversion(client, await _apply(client, manifest, deadline, sleep))
        return
    await _disown_conversion(client, present)
    spec = {name: value for name, value in manifest["spec"].items() if name != "conversion"}
    await _apply(client, {**manifest, "spec": spec}, deadline, sleep)


async def _disown_conversion(client: KubeClient, crd: KubeObject) -> None:
    """Give up this manager's ownership of a CRD's conversion; writes nothing if it does not own it."""
    for attempt in range(1, _ATTEMPTS + 1):
        metadata = crd["metadata"]
        entries = [_without_conversion(entry, client.field_manager) for entry in metadata.get("managedFields", [])]
        if entries == metadata.get("managedFields", []):
            return
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "managedFields": entries}}
        try:
            await client.merge_patch(CUSTOM_RESOURCE_DEFINITIONS, key_of(crd), patch)
        except errors.Conflict:
            # The API server writes the status of a new CRD several times.
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
    """Apply one CRD, and return it. The server's controllers write its status at the same time, which may conflict repeatedly."""
    while True:
        try:
            return await client.apply(CUSTOM_RESOURCE_DEFINITIONS, manifest)
        except errors.Conflict as error:
            # An error with causes is about a field of another manager: a repetition would fail, too.
            if error.causes or time.monotonic() >= deadline:
                raise
        await sleep(spread(_POLL_SECONDS, most=1.5))


async def wait_established(
    client: KubeClient, names: Iterable[str], *, timeout: float = 30.0, sleep: Sleep = asyncio.sleep
) -> None:
    """Wait until CRDs are Established and all their served versions answer.

    The API server reports Established a moment before it serves, so this waits for both. Raises Unavailable after
    `timeout` seconds, with the missing parts of each CRD; Invalid at once if a CRD's names are in use.
    """
    deadline = time.monotonic() + timeout
    waiting = dict.fromkeys(names, "does not exist")
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
    """What a CRD lacks before it can be used; empty if nothing."""
    crd = await get_if_present(client, CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", name))
    if crd is None:
        return "does not exist"
    conditions = {entry["type"]: entry for entry in crd.get("status", {}).get("conditions") or ()}
    names = conditions.get("NamesAccepted", {})
    if names.get("status") == "False":
        raise errors.Invalid(422, names.get("reason", ""), f"{name}: {names.get('message', '')}")
    if conditions.get("Established", {}).get("status") != "True":
        return "is not established"
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
