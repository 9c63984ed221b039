"""The Secret that the replicas share: it is written only if it has not changed since it was read."""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from dynamo_shared.api.registry import OPERATOR, labels
from dynamo_shared.api.registry.annotations import ROTATE_AUTHORITY
from dynamo_shared.api.resources import SECRETS, ObjectKey
from dynamo_shared.api.untrusted.times import moment
from dynamo_shared.kube import KubeClient, get_if_present

from dynamo_admission.tls import pki
from dynamo_admission.tls.pki import Unusable
from dynamo_admission.tls.rotation import SecretState

# These are the names that kubernetes.io/tls Secrets, cert-manager and the reference use.
AUTHORITIES, AUTHORITY_KEY, SERVING, SERVING_KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
_CERT_MANAGERS = "cert-manager.io/certificate-name"

log = structlog.get_logger("dynamo.admission")


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of the Secret: `state` omits unusable parts. `forced`: the user requests a rotation.

    `written`: the time of the last write, by the API server's clock, in seconds since 1970; 0 if unknown.
    """

    state: SecretState
    version: str
    written: float
    forced: bool


class SecretStore:
    """A Secret. The platform writes only the four entries; others, its type and its metadata stay as they are."""

    def __init__(self, kube: KubeClient, key: ObjectKey) -> None:
        self._kube = kube
        self._key = key

    async def read(self) -> Stored | None:
        """The current content; None if the Secret does not exist. Unusable if the content belongs to another owner."""
        secret = await get_if_present(self._kube, SECRETS, self._key)
        if secret is None:
            return None
        metadata, data = secret["metadata"], secret.get("data") or {}
        _require_replaceable(f"Secret {self._key}", metadata, data)
        times = (moment(entry.get("time")) for entry in metadata.get("managedFields") or ())
        return Stored(
            parsed({name: _decoded(text) for name, text in data.items()}, str(self._key)),
            metadata["resourceVersion"],
            max((each.timestamp() for each in times if each is not None), default=0.0),
            ROTATE_AUTHORITY in (metadata.get("annotations") or {}),
        )

    async def write(self, state: SecretState, stored: Stored | None) -> None:
        """Create the Secret, or replace the content that was read, which also ends a requested rotation.

        AlreadyExists or Conflict if the Secret has changed since.
        """
        content = {
            AUTHORITIES: state.bundle,
            AUTHORITY_KEY: state.authority_key,
            SERVING: pki.pem_of(*state.serving),
            SERVING_KEY: state.serving_key,
        }
        data = {name: base64.b64encode(value).decode() for name, value in content.items()}
        metadata: dict[str, Any] = {"labels": {labels.APP_MANAGED_BY: OPERATOR}}
        if stored is None:
            metadata |= {"namespace": self._key.namespace, "name": self._key.name}
            await self._kube.create(
                SECRETS,
                {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "data": data},
            )
            return
        metadata |= {"resourceVersion": stored.version, "annotations": {ROTATE_AUTHORITY: None}}
        await self._kube.merge_patch(SECRETS, self._key, {"metadata": metadata, "data": data})


def parsed(data: dict[str, bytes], where: str) -> SecretState:
    """The usable parts of a Secret's data: a key without certificate, or a certificate without key, is ignored."""
    authorities, authority_key = _pair(data, (AUTHORITIES, AUTHORITY_KEY), where, -1, pki.signing_key_of)
    serving, serving_key = _pair(data, (SERVING, SERVING_KEY), where, 0, pki.key_of)
    # CAs verify the served certificate even without a key to sign with.
    return SecretState(authorities, authority_key, serving if serving_key else (), serving_key)


def _pair(
    data: dict[str, bytes],
    entries: tuple[str, str],
    where: str,
    owner: int,
    load: Callable[[bytes, str], PrivateKeyTypes],
) -> tuple[tuple[x509.Certificate, ...], bytes]:
    """The certificates of one entry, and the key of another entry if it belongs to the certificate at `owner`."""
    certificates, key = entries
    if not (data.get(certificates) or data.get(key)):
        return (), b""
    read: tuple[x509.Certificate, ...] = ()
    try:
        read = pki.certificates_of(data.get(certificates, b""), certificates)
        if not pki.is_key_of(read[owner], load(data.get(key, b""), key)):
            raise Unusable(f"{key} is not the key of {certificates}")
    except Unusable as error:
        log.warning("part of the Secret is not usable and is replaced", secret=where, error=str(error))
        return read, b""
    return read, data[key]


def _require_replaceable(what: str, metadata: dict[str, Any], data: dict[str, Any]) -> None:
    """Unusable if a write would destroy content of another owner."""
    if _CERT_MANAGERS in (metadata.get("annotations") or {}):
        raise Unusable(
            f"cert-manager writes {what}: set server.webhook.certProvisionMode to cert-manager, "
            "or server.webhook.secretName to another name"
        )
    made_here = (metadata.get("labels") or {}).get(labels.APP_MANAGED_BY) == OPERATOR or AUTHORITY_KEY in data
    if not made_here and any(data.get(name) for name in (SERVING, SERVING_KEY, AUTHORITIES)):
        raise Unusable(
            f"{what} has a certificate that this service did not create: set server.webhook.certProvisionMode to manual and "
            "mount it, set server.webhook.secretName to another name, or delete the Secret"
        )


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
