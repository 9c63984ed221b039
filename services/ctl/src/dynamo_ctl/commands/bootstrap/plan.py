"""Which Secrets to write. Pure: observed and desired Secrets in, steps out; clock and randomness are passed in."""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from dynamo_admission.tls import pki
from dynamo_admission.tls.pki import Unusable
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.bus import server_config
from dynamo_shared.x509 import make_authority, make_leaf, subject

from dynamo_ctl.commands.bootstrap.specification import Certificate, NamespaceCredentials
from dynamo_ctl.errors import CtlError

ROTATION = "nvidia.com/credentials-rotation"
CREATED_BY = "app.kubernetes.io/managed-by"
MANAGER = "dynamoctl-bootstrap"
#: A certificate that expires sooner is recreated. Seconds.
RENEW_BEFORE = 30 * 86400.0
#: The NATS users of this many releases stay: for a rollback, and for members that restart during an upgrade.
RELEASES = 5
#: The annotation with the names of their entries, the newest last.
ENTRIES = "nvidia.com/nats-authorization-entries"
_USES = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}
_TLS, _OPAQUE = "kubernetes.io/tls", "Opaque"


@dataclass(frozen=True, slots=True)
class SecretStep:
    """One Secret: the content to write, and the observed Secret (None: missing). `content` None: the Secret is correct."""

    name: str
    kind: str
    content: dict[str, bytes] | None
    observed: KubeObject | None
    #: Entries to remove.
    removed: frozenset[str] = frozenset()
    annotations: Mapping[str, str] = field(default_factory=dict)


def plan(
    desired: NamespaceCredentials,
    existing: Mapping[str, KubeObject],
    now: float,
    password: Callable[[], str],
    key: Callable[[], bytes],
) -> Iterator[SecretStep]:
    """Return a step for each Secret. `existing`: the Secrets of the namespace by name.

    `password` and `key` (32 bytes) return a new value at each call. Raises CtlError for a password that is not text.
    """
    authorities: dict[str, tuple[x509.Certificate, bytes]] = {}
    for name in desired.authorities:
        usable = _authority(_data(existing.get(name)), now)
        authorities[name] = usable or make_authority(now, desired.authority_validity, name)
        yield SecretStep(
            name, _TLS, None if usable else _pair(*authorities[name], authorities[name][0]), existing.get(name)
        )
    for certificate in desired.certificates:
        observed = existing.get(certificate.secret)
        authority, authority_key = authorities[certificate.authority]
        is_usable = _is_current(observed, desired.rotation) and _serves(_data(observed), certificate, authority, now)
        content = (
            None if is_usable else _issue(certificate, authority, authority_key, now, desired.certificate_validity)
        )
        yield SecretStep(certificate.secret, _TLS, content, observed)
    for name in desired.keys:
        observed = existing.get(name)
        held_key = _data(observed).get("key") if _is_current(observed, desired.rotation) else None
        yield SecretStep(name, _OPAQUE, None if held_key else {"key": base64.b64encode(key())}, observed)
    passwords: dict[str, str] = {}
    for user in desired.users:
        observed = existing.get(user.secret)
        stored = _data(observed).get("password", b"") if _is_current(observed, desired.rotation) else b""
        try:
            # Services read it like this: the line break at the end of a file is not part of the password.
            held_password = stored.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise CtlError(f"Secret {user.secret}: password is not UTF-8 text; write another one") from error
        passwords[user.service] = held_password or password()
        content = {"user": user.service.encode(), "password": passwords[user.service].encode()}
        yield SecretStep(user.secret, _OPAQUE, None if held_password else content, observed)
    if desired.nats_authorization:
        observed = existing.get(desired.nats_authorization)
        authorization = server_config.authorization(desired.cluster_name, passwords)
        yield _authorization(desired, observed, server_config.text({"authorization": authorization}).encode())


def _authorization(desired: NamespaceCredentials, observed: KubeObject | None, users: bytes) -> SecretStep:
    """The NATS users of this release and of the last releases."""
    entry, data = desired.nats_authorization_entry, _data(observed)
    before = _annotations(observed).get(ENTRIES, "")
    known = [each for each in before.split() if each in data]
    others = [each for each in (*sorted(data.keys() - set(known)), *known) if each != entry][1 - RELEASES :]
    if not _is_current(observed, desired.rotation):
        # No one has these users' passwords any longer. A rollback creates new passwords, and NATS has to wait for them.
        others = []
    content, order = {**{each: data[each] for each in others}, entry: users}, " ".join((*others, entry))
    is_own = observed is not None and not is_created_here(observed)
    is_right = data.get(entry) == users if is_own else content == data and order == before
    removed = frozenset(data.keys() - content.keys())
    return SecretStep(
        desired.nats_authorization, _OPAQUE, None if is_right else content, observed, removed, {ENTRIES: order}
    )


def manifest(step: SecretStep, namespace: str, desired: NamespaceCredentials) -> KubeObject:
    """The Secret of a step that has content."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": step.kind,
        "metadata": {
            "name": step.name,
            "namespace": namespace,
            "labels": {**desired.labels, CREATED_BY: MANAGER},
            "annotations": {ROTATION: desired.rotation, **step.annotations},
        },
        "data": {key: base64.b64encode(value).decode() for key, value in (step.content or {}).items()},
    }


def is_created_here(observed: KubeObject) -> bool:
    """Whether this command created a Secret."""
    return (observed["metadata"].get("labels") or {}).get(CREATED_BY) == MANAGER


def _is_current(observed: KubeObject | None, rotation: str) -> bool:
    """Whether a Secret was written for this rotation. A Secret that the user created is never rotated."""
    if observed is None:
        return False
    return not is_created_here(observed) or _annotations(observed).get(ROTATION) == rotation


def _annotations(observed: KubeObject | None) -> Mapping[str, str]:
    return objects.annotations(observed) if observed is not None else {}


def _authority(data: Mapping[str, bytes], now: float) -> tuple[x509.Certificate, bytes] | None:
    try:
        certificate = pki.certificates_of(data["tls.crt"], "tls.crt")[0]
        key = data["tls.key"]
        if not pki.is_key_of(certificate, pki.signing_key_of(key, "tls.key")):
            return None
    except (KeyError, Unusable):
        return None
    return (certificate, key) if pki.ends(certificate) > now + RENEW_BEFORE else None


def _serves(data: Mapping[str, bytes], desired: Certificate, authority: x509.Certificate, now: float) -> bool:
    """Whether a Secret's certificate is usable: this authority, these names, valid for long enough, with its key."""
    try:
        certificate = pki.certificates_of(data["tls.crt"], "tls.crt")[0]
        key = pki.key_of(data["tls.key"], "tls.key")
    except (KeyError, Unusable):
        return False
    return (
        pki.is_key_of(certificate, key)
        and pki.signed_by(certificate, authority)
        and {pki.normal(name) for name in desired.names} <= {pki.normal(name) for name in pki.names_of(certificate)}
        and pki.ends(certificate) > now + RENEW_BEFORE
    )


def _issue(
    desired: Certificate, authority: x509.Certificate, key: bytes, now: float, validity: float
) -> dict[str, bytes]:
    uses = [_USES[use] for use in desired.uses]
    leaf, leaf_key = make_leaf(
        authority,
        pki.signing_key_of(key, "the authority's key"),
        subject(desired.common_name),
        names=desired.names or (desired.common_name,),
        now=now,
        validity=validity,
        uses=uses,
    )
    return _pair(leaf, leaf_key, authority)


def _pair(certificate: x509.Certificate, key: bytes, authority: x509.Certificate) -> dict[str, bytes]:
    return {"ca.crt": pki.pem_of(authority), "tls.crt": pki.pem_of(certificate), "tls.key": key}


def _data(observed: KubeObject | None) -> dict[str, bytes]:
    data = (observed or {}).get("data") or {}
    try:
        return {key: base64.b64decode(value, validate=True) for key, value in data.items()}
    except (binascii.Error, ValueError):
        return {}
