"""cert-manager on the tests' control plane: its kinds, and its controllers and cainjector as one process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dynamo_devcluster import ManagedProcess
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, ObjectKey, Resource
from dynamo_shared.kube import KubeClient, KubeObject

from tests.building.definitions import definition_of
from tests.building.objects import object_of

from .platform import eventually

#: Time to build it, if it was not built before the tests. Seconds.
BUILT_WITHIN = 900
GROUP = "cert-manager.io"
CERTIFICATES = Resource(GROUP, "v1", "certificates", "Certificate")
ISSUERS = Resource(GROUP, "v1", "issuers", "Issuer")
KINDS = (
    CERTIFICATES,
    ISSUERS,
    Resource(GROUP, "v1", "certificaterequests", "CertificateRequest"),
    Resource(GROUP, "v1", "clusterissuers", "ClusterIssuer", namespaced=False),
)


@asynccontextmanager
async def cert_manager(program: Path, kubeconfig: Path, kube: KubeClient, log: Path) -> AsyncIterator[None]:
    """cert-manager, which runs during the block."""
    for kind in KINDS:
        await kube.create(CUSTOM_RESOURCE_DEFINITIONS, definition_of(kind))
    await eventually(lambda: _established(kube), "cert-manager's kinds are served")
    process = ManagedProcess("cert-manager", [program, f"--kubeconfig={kubeconfig}"], log)
    try:
        await process.start()
        yield
    finally:
        await process.stop()
        for kind in KINDS:
            await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", kind.id))


def issuer(namespace: str, name: str, **spec: Any) -> KubeObject:
    """An Issuer."""
    return object_of(ISSUERS, name, namespace, spec=spec)


def certificate(namespace: str, name: str, issued_by: str, **spec: Any) -> KubeObject:
    """A Certificate whose Secret has the same name."""
    issuer_ref = {"name": issued_by, "kind": ISSUERS.kind, "group": GROUP}
    key = {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"}
    spec = {"secretName": name, "issuerRef": issuer_ref, "privateKey": key, **spec}
    return object_of(CERTIFICATES, name, namespace, spec=spec)


async def renew(kube: KubeClient, key: ObjectKey) -> None:
    """Renew like `cmctl renew`."""
    now = "2026-01-01T00:00:00Z"
    issuing = {"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "lastTransitionTime": now}
    observed = await kube.get(CERTIFICATES, key)
    conditions = [
        *observed["status"]["conditions"],
        {**issuing, "message": "Certificate re-issuance manually triggered"},
    ]
    await kube.merge_patch(CERTIFICATES, key, {"status": {"conditions": conditions}}, subresource="status")


async def _established(kube: KubeClient) -> bool:
    for kind in KINDS:
        observed = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", kind.id))
        conditions = {each["type"]: each["status"] for each in (observed.get("status") or {}).get("conditions") or ()}
        if conditions.get("Established") != "True":
            return False
    return True
