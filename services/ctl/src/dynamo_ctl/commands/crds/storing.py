"""Stores all objects in one version of the API: `dynamoctl crds --store`.

An operator before 1.5 needs this: it stores v1alpha1, and lists its objects before its own conversion webhook serves.
"""

import asyncio
import base64
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

from dynamo_shared.aio import Backoff
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, GROUP, ObjectKey, Resource, key_of
from dynamo_shared.kube import Conflict, KubeClient, KubeError, NotFound, Unavailable, get_if_present

from dynamo_ctl.errors import CtlError
from dynamo_ctl.output import Print

#: Seconds until every API server stores the new version: each watches the definitions separately. Kubernetes waits as
#: long before it reports a new definition as established.
SETTLING = 5.0
#: Limit until one API server stores the new version, and the interval of the polls. Seconds.
_WITHIN, _POLL_SECONDS = 30.0, 0.2
_ATTEMPTS = 8
_FIRST_RETRY, _LAST_RETRY = 0.1, 2.0


async def store(client: KubeClient, version: str, say: Print, *, dry_run: bool = False) -> None:
    """Store all objects of the kinds that a webhook converts in this version, now and at later writes.

    Kinds that are finished are skipped, so a repetition continues an interrupted run. Raises CtlError or KubeError.
    """
    resources = []
    for resource in (each.resource.at(version) for each in DEFINITIONS if each.is_converted):
        definition = await _definition(client, resource)
        stored = definition["status"]["storedVersions"]
        if stored == [version]:
            # The list always has the storage version of the definition, and every run ends with this change of it.
            say(f"{resource.kind}: already stored in {version}")
        elif dry_run:
            count = len(await _keys(client, resource))
            say(f"{resource.kind}: stored in {' and '.join(stored)}, would be stored in {version} (objects: {count})")
        else:
            await _set_storage(client, resource, definition)
            resources.append(resource)
    for resource in resources:
        await _wait_until_stored(client, resource)
    if resources:
        say(f"waiting {SETTLING:g} s, until every API server stores {version}")
        await asyncio.sleep(SETTLING)
    for resource in resources:
        count = await _rewrite(client, resource)
        only = {"status": {"storedVersions": [version]}}
        patch = partial(client.merge_patch, CUSTOM_RESOURCE_DEFINITIONS, _definition_key(resource))
        await _retried(partial(patch, only, subresource="status"))
        say(f"{resource.kind}: stored in {version} (objects: {count})")


def _definition_key(resource: Resource) -> ObjectKey:
    return ObjectKey("", f"{resource.plural}.{GROUP}")


async def _definition(client: KubeClient, resource: Resource) -> KubeObject:
    key = _definition_key(resource)
    definition = await get_if_present(client, CUSTOM_RESOURCE_DEFINITIONS, key)
    if definition is None:
        raise CtlError(f"{key.name} is not installed: run dynamoctl crds --install first")
    if not any(each["name"] == resource.version and each["served"] for each in definition["spec"]["versions"]):
        raise CtlError(
            f"{key.name} does not serve {resource.version}: install definitions with conversion.enabled=true"
        )
    return definition


async def _set_storage(client: KubeClient, resource: Resource, definition: KubeObject) -> None:
    operations = [
        operation
        for place, each in enumerate(definition["spec"]["versions"])
        for operation in (
            {"op": "test", "path": f"/spec/versions/{place}/name", "value": each["name"]},
            {"op": "replace", "path": f"/spec/versions/{place}/storage", "value": each["name"] == resource.version},
        )
    ]
    key = _definition_key(resource)
    await _retried(partial(client.json_patch, CUSTOM_RESOURCE_DEFINITIONS, key, operations))


async def _wait_until_stored(client: KubeClient, resource: Resource) -> None:
    """Return when the API server stores this version, which its discovery shows as a hash."""
    named = f"{resource.group}/{resource.version}/{resource.kind}".encode()
    expected = base64.b64encode(hashlib.sha256(named).digest()[:8]).decode()
    deadline = time.monotonic() + _WITHIN
    while True:
        served = (await client.read(f"/apis/{resource.group}/{resource.version}"))["resources"]
        if any(each["name"] == resource.plural and each.get("storageVersionHash") == expected for each in served):
            return
        if time.monotonic() >= deadline:
            raise Unavailable(
                0, "NotStored", f"{resource.kind} is not stored in {resource.version} after {_WITHIN:g} s"
            )
        await asyncio.sleep(_POLL_SECONDS)


async def _rewrite(client: KubeClient, resource: Resource) -> int:
    """Write each object unchanged, one at a time. Returns their number."""
    keys = await _keys(client, resource)
    for key in keys:
        with _explained(f"{resource.kind} {key}"):
            # Of the status, because admission validates no status: no rule refuses an object that was stored before it.
            await _retried(partial(client.merge_patch, resource, key, {}, subresource="status"))
    return len(keys)


async def _keys(client: KubeClient, resource: Resource) -> list[ObjectKey]:
    with _explained(resource.kind):
        return [key_of(each) for each in await client.list(resource)]


@contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except KubeError as error:
        raise CtlError(
            f"{what}: {error}; the platform must run, because it converts the objects, and you need the rights to list "
            "them and to patch their status; then repeat the command"
        ) from error


async def _retried(write: Callable[[], Awaitable[KubeObject]]) -> None:
    """Repeat a write after a conflict. An object that was deleted meanwhile needs none."""
    backoff = Backoff(_FIRST_RETRY, _LAST_RETRY)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            await write()
        except NotFound:
            return
        except Conflict:
            if attempt == _ATTEMPTS:
                raise
            await asyncio.sleep(backoff.next())
        else:
            return
