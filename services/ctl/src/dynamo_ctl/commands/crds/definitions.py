"""Installs the resource definitions in a cluster."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from dynamo_shared.aio import Backoff
from dynamo_shared.api.crds import crd_manifests
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.owned_fields import managers_of
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, ObjectKey
from dynamo_shared.kube import KubeClient, get_if_present
from dynamo_shared.kube.discovery import install_crds
from dynamo_shared.kube.errors import KubeError, Unavailable

from dynamo_ctl.targets import report_first_retry

#: Field manager of the definitions. The reference uses the same name (operator behaviour, section 12).
DEFINITIONS_MANAGER = "dynamo-crd-apply"
#: Field manager under which the admission service writes the conversion webhook (dynamo_admission.app).
CONVERSION_MANAGER = "dynamo-admission"
#: Interval between two attempts if the API server does not answer yet. Seconds.
FIRST_RETRY, LAST_RETRY = 0.5, 5.0


async def install_definitions(
    kubeconfig: Path | None = None, context: str | None = None, *, wait: float = 0.0
) -> list[str]:
    """Install or update the resource definitions, and wait until the API server serves them. Returns their names.

    Waits up to `wait` seconds for an API server that does not answer yet, then raises Unavailable.
    """
    backoff, deadline, say = Backoff(FIRST_RETRY, LAST_RETRY), time.monotonic() + wait, report_first_retry()
    while True:
        try:
            return await _install(kubeconfig, context, say)
        except Unavailable as error:
            if time.monotonic() >= deadline:
                raise
            say(error)
            await asyncio.sleep(backoff.next())


async def _install(kubeconfig: Path | None, context: str | None, on_retry: Callable[[KubeError], None]) -> list[str]:
    manifests = crd_manifests()
    async with await KubeClient.open(
        kubeconfig=kubeconfig, context=context, field_manager=DEFINITIONS_MANAGER, on_retry=on_retry
    ) as client:
        await install_crds(client, [await _with_its_converter(client, manifest) for manifest in manifests])
    return [manifest["metadata"]["name"] for manifest in manifests]


async def _with_its_converter(client: KubeClient, manifest: KubeObject) -> KubeObject:
    """The definition without its placeholder for a converter, if the admission service has already written its address."""
    if "conversion" not in manifest["spec"]:
        return manifest
    key = ObjectKey("", manifest["metadata"]["name"])
    definition = await get_if_present(client, CUSTOM_RESOURCE_DEFINITIONS, key)
    if definition is None:
        return manifest
    if CONVERSION_MANAGER not in managers_of(definition, "spec", "conversion"):
        return manifest
    return {**manifest, "spec": {name: value for name, value in manifest["spec"].items() if name != "conversion"}}
