"""The key pair with which the nodes of a TensorRT-LLM replica reach each other.

One pair an installation, made once and kept in its own namespace; each namespace with a graph that needs it gets a copy. The
graphs own it together, and components that stand alone: it goes with the last of them. It is never renewed: pods that run
hold it, and a new pod would not be let in by the old ones.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import SECRETS, ObjectKey
from dynamo_shared.kube import KubeClient, get_if_present
from dynamo_shared.kube.errors import AlreadyExists, Conflict

from dynamo_pod_builder.render import MANAGED_BY

_BITS = 2048


@dataclass(frozen=True, slots=True)
class SshKeys:
    """Secret `name`, whose original is in `home`; both are "" where none is configured."""

    kube: KubeClient
    name: str
    home: str

    async def ensure(self, owner: KubeObject) -> None:
        """Have the Secret in the namespace of a graph, or of a component alone, and that among its owners. Raises KubeError."""
        if not (self.name and self.home):
            return
        namespace = owner["metadata"]["namespace"]
        if namespace == self.home:
            await self._original()
            return
        secret = await self._read(namespace)
        if secret is None:
            secret = await self._create(namespace, (await self._original())["data"], owner)
        await self._own(secret, owner)

    async def _original(self) -> KubeObject:
        """The original, with a pair: one that an administrator made without content is given one."""
        secret = await self._read(self.home)
        if secret is not None and secret.get("data"):
            return secret
        pair = await asyncio.to_thread(_key_pair)
        if secret is None:
            return await self._create(self.home, pair)
        return await self.kube.replace(SECRETS, {**secret, "data": pair})

    async def _own(self, secret: KubeObject, owner: KubeObject) -> None:
        metadata = secret["metadata"]
        owners = metadata.get("ownerReferences", [])
        managed = metadata.get("labels", {}).get(labels.APP_MANAGED_BY) == MANAGED_BY
        # A Secret of another owner stays theirs, whatever happens to our graphs.
        if not managed or any(each["uid"] == owner["metadata"]["uid"] for each in owners):
            return
        changed = {**metadata, "ownerReferences": [*owners, _reference(owner)]}
        # Another graph of the namespace may do the same at this moment: the next reconcile retries.
        with contextlib.suppress(Conflict):
            await self.kube.replace(SECRETS, {**secret, "metadata": changed})

    async def _read(self, namespace: str) -> KubeObject | None:
        return await get_if_present(self.kube, SECRETS, ObjectKey(namespace, self.name))

    async def _create(self, namespace: str, data: dict[str, str], owner: KubeObject | None = None) -> KubeObject:
        """A new Secret, or the one that another replica made at the same time."""
        metadata: KubeObject = {
            "name": self.name,
            "namespace": namespace,
            "labels": {labels.APP_MANAGED_BY: MANAGED_BY},
        }
        if owner is not None:
            metadata["ownerReferences"] = [_reference(owner)]
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
        try:
            return await self.kube.create(SECRETS, secret)
        except AlreadyExists:
            return await self.kube.get(SECRETS, ObjectKey(namespace, self.name))


def _reference(owner: KubeObject) -> KubeObject:
    return resources.owner_reference(resources.of(owner), owner["metadata"]["name"], owner["metadata"]["uid"])


def _key_pair() -> dict[str, str]:
    """Private and public key under the names that pods look for, base64 as Secrets hold them."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    pair = {"private.key": private, "private.key.pub": public + b"\n"}
    return {name: base64.b64encode(content).decode() for name, content in pair.items()}
