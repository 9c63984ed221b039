"""Keeping the registration true: written when the authorities change, looked at now and then, set right where it is not."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import structlog
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, ObjectKey, Resource
from dynamo_shared.kube import KubeClient, NotFound

from dynamo_admission.metrics import AdmissionMetrics
from dynamo_admission.registration import Registration, bundles_in, configurations, conversions, holds, is_ours, turned

#: Of a CRD only the version is of interest, and not its 200 KB, as long as that has not changed.
_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

log = structlog.get_logger("dynamo.admission")


class NotInstalled(Exception):
    """A CRD is missing."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """An object that was found right: its resourceVersion, what was desired, and the authorities that it trusts."""

    version: str
    desired: KubeObject
    bundles: tuple[bytes, ...]


class Registrar:
    """Writes and reads back what `registration` describes, under the field manager of its client."""

    def __init__(self, kube: KubeClient, metrics: AdmissionMetrics) -> None:
        self._kube = kube
        self._metrics = metrics
        self._seen: dict[tuple[str, str], _Seen] = {}

    @property
    def bundles(self) -> list[bytes]:
        """The authorities that are registered, as they were read last."""
        return [bundle for seen in self._seen.values() for bundle in seen.bundles]

    async def write(self, registration: Registration) -> None:
        """Register, exactly so. KubeError where that fails, NotInstalled where there is nothing to register for."""
        for resource, wanted in _all(registration):
            await self._write(resource, wanted, registration)

    async def check(self, registration: Registration) -> None:
        """Set right what somebody removed or changed. KubeError, NotInstalled as in `write`."""
        for resource, wanted in _all(registration):
            name = wanted["metadata"]["name"]
            seen = self._seen.get((resource.plural, name))
            version = await self._version(resource, name)
            if seen is not None and (version, wanted) == (seen.version, seen.desired):
                continue
            found = await self._read(resource, name) if version else None
            if found is not None and (holds(found, wanted) or _is_left(resource, found, registration)):
                self._note(resource, found, wanted, registration)
                continue
            if seen is not None and version != seen.version:
                log.warning(
                    "registration set right", object=f"{resource.kind} {name}", was="changed" if found else "gone"
                )
                self._metrics.repaired(name)
            await self._write(resource, wanted, registration)

    async def _write(self, resource: Resource, wanted: KubeObject, registration: Registration) -> None:
        name = wanted["metadata"]["name"]
        if resource == CUSTOM_RESOURCE_DEFINITIONS:
            found = await self._read(resource, name)
            if found is None:
                raise NotInstalled(f"{name} is not installed; `dynamoctl crds --install` does it")
            if _is_left(resource, found, registration):
                self._note(resource, found, wanted, registration)
                return
            if (patch := turned(found, registration)) is not None:
                await self._kube.merge_patch(resource, ObjectKey("", name), patch)
        self._note(resource, await self._kube.apply(resource, wanted), wanted, registration)

    def _note(self, resource: Resource, found: KubeObject, desired: KubeObject, registration: Registration) -> None:
        trusted = () if _is_left(resource, found, registration) else tuple(bundles_in(found))
        metadata = found["metadata"]
        self._seen[resource.plural, metadata["name"]] = _Seen(metadata["resourceVersion"], desired, trusted)

    async def _read(self, resource: Resource, name: str) -> KubeObject | None:
        try:
            return await self._kube.get(resource, ObjectKey("", name))
        except NotFound:
            return None

    async def _version(self, resource: Resource, name: str) -> str:
        """Which version of an object there is; empty where there is none."""
        try:
            content = await self._kube.raw_get(resource.path(name=name), accept=_METADATA_ONLY)
        except NotFound:
            return ""
        found: KubeObject = msgspec.json.decode(content)
        return str(found["metadata"]["resourceVersion"])


def _all(registration: Registration) -> list[tuple[Resource, KubeObject]]:
    # Conversion first: objects that a webhook lets in must be readable.
    return [*conversions(registration), *configurations(registration)]


def _is_left(resource: Resource, found: KubeObject, registration: Registration) -> bool:
    """Whether somebody else converts for the whole cluster: a platform of one namespace leaves that as it is."""
    return (
        resource == CUSTOM_RESOURCE_DEFINITIONS
        and bool(registration.restricted)
        and any(bundles_in(found))
        and not is_ours(found, registration)
    )
