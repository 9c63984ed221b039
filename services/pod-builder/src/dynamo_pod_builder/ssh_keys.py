"""The key pair with which the nodes of a TensorRT-LLM replica reach each other.

Each namespace with a graph that needs one gets its own pair: a user who may read Secrets or run pods in one namespace
must not get into the pods of another. If an administrator puts a pair into the platform's namespace, that pair is
copied instead. All graphs, and components without a graph, own the Secret together: it is deleted with the last of
them. It is never renewed: running pods hold it, and the old pods would refuse a new one. If the platform may not read
Secrets, an administrator creates them, and pods wait for the Secret.
"""

import asyncio
import base64
import contextlib
from dataclasses import dataclass

import structlog
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import SECRETS, ObjectKey
from dynamo_shared.kube import KubeClient, create_or_get, get_if_present
from dynamo_shared.kube.errors import Conflict, Forbidden

from dynamo_pod_builder.render import MANAGED_BY

_BITS = 2048

log = structlog.get_logger("dynamo.pod-builder.ssh-keys")


@dataclass(frozen=True, slots=True)
class SshKeys:
    """Secret `name`. An administrator's pair for all namespaces may be in namespace `home`; "" if there is none."""

    kube: KubeClient
    name: str
    home: str

    async def ensure(self, owner: KubeObject) -> None:
        """Create the Secret in the namespace of a graph or a standalone component, which becomes an owner. Raises
        KubeError.
        """
        namespace = owner["metadata"]["namespace"]
        if namespace == self.home:
            await self._complete()
            return
        try:
            secret = await self._read(namespace)
        except Forbidden as error:
            log.info(
                "no right to SSH key Secrets: an administrator creates them", namespace=namespace, error=str(error)
            )
            return
        if secret is None:
            secret = await self._create(namespace, await self._pair(), owner)
        await self._own(secret, owner)

    async def _pair(self) -> dict[str, str]:
        """The pair that an administrator made for all namespaces, otherwise a new one."""
        original = await self._read(self.home) if self.home else None
        if original is None or _is_managed(original) or not original.get("data"):
            return await asyncio.to_thread(_key_pair)
        pair: dict[str, str] = original["data"]
        return pair

    async def _complete(self) -> None:
        """Create a pair in `home`, for graphs there: if an administrator made a Secret without content, it gets one."""
        secret = await self._read(self.home)
        if secret is None:
            await self._create(self.home, await asyncio.to_thread(_key_pair))
        elif not secret.get("data"):
            await self.kube.replace(SECRETS, {**secret, "data": await asyncio.to_thread(_key_pair)})

    async def _own(self, secret: KubeObject, owner: KubeObject) -> None:
        metadata = secret["metadata"]
        owners = metadata.get("ownerReferences", [])
        # A Secret of another owner gets no owner reference, so it outlives the graphs.
        if not _is_managed(secret) or any(each["uid"] == owner["metadata"]["uid"] for each in owners):
            return
        changed = {**metadata, "ownerReferences": [*owners, _reference(owner)]}
        # Another graph of the namespace may do the same at this moment: the next reconcile retries.
        with contextlib.suppress(Conflict):
            await self.kube.replace(SECRETS, {**secret, "metadata": changed})

    async def _read(self, namespace: str) -> KubeObject | None:
        return await get_if_present(self.kube, SECRETS, ObjectKey(namespace, self.name))

    async def _create(self, namespace: str, data: dict[str, str], owner: KubeObject | None = None) -> KubeObject:
        """A new Secret, or the one that another replica created at the same time."""
        metadata: KubeObject = {
            "name": self.name,
            "namespace": namespace,
            "labels": {labels.APP_MANAGED_BY: MANAGED_BY},
        }
        if owner is not None:
            metadata["ownerReferences"] = [_reference(owner)]
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
        return await create_or_get(self.kube, SECRETS, secret)


def _is_managed(secret: KubeObject) -> bool:
    return objects.labels(secret).get(labels.APP_MANAGED_BY) == MANAGED_BY


def _reference(owner: KubeObject) -> KubeObject:
    return resources.owner_reference(resources.of(owner), owner["metadata"]["name"], owner["metadata"]["uid"])


def _key_pair() -> dict[str, str]:
    """Private and public key under the names that pods expect, base64-encoded as in Secrets."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    pair = {"private.key": private, "private.key.pub": public + b"\n"}
    return {name: base64.b64encode(content).decode() for name, content in pair.items()}
