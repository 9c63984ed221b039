"""Keeps the registration correct: writes it when the CAs change, checks it periodically, and repairs differences."""

from dataclasses import dataclass

import structlog
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    ObjectKey,
    Resource,
    owner_reference,
)
from dynamo_shared.kube import KubeClient, NotFound, get_if_present

from dynamo_admission.metrics import AdmissionMetrics
from dynamo_admission.registration import (
    Registration,
    bundles_in,
    configurations,
    conversion_patch,
    conversions,
    holds,
    is_own,
    is_written,
)

log = structlog.get_logger("dynamo.admission")


class NotInstalled(Exception):
    """A CRD is missing."""


@dataclass(frozen=True, slots=True)
class _Checked:
    """An object that was correct at the last read: its resourceVersion, the desired content, and the CAs that it
    trusts.
    """

    version: str
    desired: KubeObject
    bundles: tuple[bytes, ...]


class Registrar:
    """Writes and reads back the objects of `registration`, under the field manager of its client."""

    def __init__(self, kube: KubeClient, metrics: AdmissionMetrics) -> None:
        self._kube = kube
        self._metrics = metrics
        self._checked: dict[tuple[str, str], _Checked] = {}

    @property
    def bundles(self) -> list[bytes]:
        """The registered CAs at the last read."""
        return [bundle for last in self._checked.values() for bundle in last.bundles]

    async def write(self, registration: Registration) -> None:
        """Write all objects of the registration that differ.

        KubeError if that fails, NotInstalled if a CRD is missing.
        """
        for resource, desired in _all(registration):
            await self._write(resource, desired, registration)

    async def check(self, registration: Registration) -> None:
        """Repair removed or changed objects. KubeError, NotInstalled as in `write`."""
        for resource, desired in _all(registration):
            name = desired["metadata"]["name"]
            last = self._checked.get((resource.plural, name))
            version = await self._version(resource, name)
            if last is not None and (version, desired) == (last.version, last.desired):
                continue
            observed = await get_if_present(self._kube, resource, ObjectKey("", name)) if version else None
            if observed is not None and (
                holds(observed, desired) or _converts_elsewhere(resource, observed, registration)
            ):
                self._note(resource, observed, desired, registration)
                continue
            if last is not None and version != last.version:
                log.warning(
                    "registration repaired", object=f"{resource.kind} {name}", was="changed" if observed else "gone"
                )
                self._metrics.repairs.labels(name).inc()
            await self._write(resource, desired, registration)

    async def _write(self, resource: Resource, desired: KubeObject, registration: Registration) -> None:
        name = desired["metadata"]["name"]
        observed = await get_if_present(self._kube, resource, ObjectKey("", name))
        if observed is not None and is_written(observed, desired, self._kube.field_manager):
            # A restart writes nothing.
            self._note(resource, observed, desired, registration)
            return
        if resource == CUSTOM_RESOURCE_DEFINITIONS:
            if observed is None:
                raise NotInstalled(f"{name} is not installed; run `dynamoctl crds --install`")
            if _converts_elsewhere(resource, observed, registration):
                self._note(resource, observed, desired, registration)
                return
            if (patch := conversion_patch(observed, registration)) is not None:
                await self._kube.merge_patch(resource, ObjectKey("", name), patch)
        self._note(resource, await self._kube.apply(resource, desired), desired, registration)

    def _note(self, resource: Resource, observed: KubeObject, desired: KubeObject, registration: Registration) -> None:
        trusted = () if _converts_elsewhere(resource, observed, registration) else tuple(bundles_in(observed))
        metadata = observed["metadata"]
        self._checked[resource.plural, metadata["name"]] = _Checked(metadata["resourceVersion"], desired, trusted)

    async def _version(self, resource: Resource, name: str) -> str:
        """The resourceVersion of an object; empty if the object does not exist. Only the metadata is read: a CRD has
        200 KB more.
        """
        try:
            metadata = await self._kube.get_metadata(resource, ObjectKey("", name))
        except NotFound:
            return ""
        return str(metadata["resourceVersion"])


def _all(registration: Registration) -> list[tuple[Resource, KubeObject]]:
    # Conversion first: objects that a webhook admits must be readable.
    return [*conversions(registration), *configurations(registration)]


def _converts_elsewhere(resource: Resource, observed: KubeObject, registration: Registration) -> bool:
    """Whether another platform converts for the whole cluster: a platform for one namespace does not change that."""
    return (
        resource == CUSTOM_RESOURCE_DEFINITIONS
        and bool(registration.restricted)
        and any(bundles_in(observed))
        and not is_own(observed, registration)
    )


async def owner_of(kube: KubeClient, cluster_role: str) -> KubeObject | None:
    """The owner of the webhook configurations, with which the garbage collector deletes them: an uninstallation never
    leaves them. An owner reference to a ClusterRole; None without a name, or if it does not exist. Raises KubeError.

    The ClusterRole is read each time: a recreated ClusterRole has another uid, and Kubernetes deletes objects whose
    owner does not exist.
    """
    if not cluster_role:
        return None
    role = await get_if_present(kube, CLUSTER_ROLES, ObjectKey("", cluster_role))
    if role is None:
        log.warning("the owner of the webhook configurations does not exist", cluster_role=cluster_role)
        return None
    # The deletion of the owner does not wait for this object: `blockOwnerDeletion` would require a right on the owner's
    # finalizers.
    return owner_reference(CLUSTER_ROLES, cluster_role, role["metadata"]["uid"])
