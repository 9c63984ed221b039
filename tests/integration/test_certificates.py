"""The webhooks' certificates in a Secret of a real API server: which ones replicas use, and which they leave alone."""

import asyncio
import base64
import datetime
import time
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from dynamo_admission.tls import Unusable, open_certificates, pki
from dynamo_admission.tls.own_ca import OwnCertificates
from dynamo_admission.tls.secret import SecretStore
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import SECRETS, ObjectKey
from dynamo_shared.kube import AlreadyExists, Conflict, KubeClient, KubeObject

from .certificates import NAMES, SECRET, settings, webhook
from .platform import eventually


async def put(kube: KubeClient, namespace: str, data: dict[str, bytes], **metadata: Any) -> None:
    encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
    about = {"namespace": namespace, "name": SECRET, **metadata}
    await kube.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": encoded})


async def secret(kube: KubeClient, namespace: str) -> KubeObject:
    return await kube.get(SECRETS, ObjectKey(namespace, SECRET))


async def annotate(kube: KubeClient, namespace: str) -> None:
    patch = {"metadata": {"annotations": {"nvidia.com/rotate-authority": "now"}}}
    await kube.merge_patch(SECRETS, ObjectKey(namespace, SECRET), patch)


async def test_replicas_share_one_secret(kube: KubeClient, namespace: str) -> None:
    replicas = await asyncio.gather(*(open_certificates(settings(namespace), kube, NAMES) for _ in range(4)))
    stored = await secret(kube, namespace)
    assert stored["type"] == "kubernetes.io/tls"
    assert stored["metadata"]["labels"][labels.APP_MANAGED_BY] == "dynamo-operator"
    assert set(stored["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert {replica.bundle for replica in replicas} == {base64.b64decode(stored["data"]["ca.crt"])}
    assert replicas[0].expires == pytest.approx(time.time() + 90 * 86400, abs=60)
    await open_certificates(settings(namespace), kube, NAMES)
    assert await secret(kube, namespace) == stored, "a restart changes nothing"


async def test_a_secret_is_replaced_only_in_the_version_that_was_read(kube: KubeClient, namespace: str) -> None:
    certificates = await open_certificates(settings(namespace), kube, NAMES)
    store = SecretStore(kube, ObjectKey(namespace, SECRET))
    result = await store.read()
    assert result is not None
    assert result.written == pytest.approx(time.time(), abs=60), "the API server's clock is this machine's"
    with pytest.raises(AlreadyExists):
        await store.write(result.state, None)
    await annotate(kube, namespace)
    with pytest.raises(Conflict):
        await store.write(result.state, result)
    forced = await store.read()
    assert forced is not None
    assert (forced.forced, forced.state) == (True, result.state)
    await store.write(forced.state, forced)
    done = await store.read()
    assert done is not None
    assert not done.forced, "what was asked for is done"
    assert certificates.bundle == done.state.bundle


async def test_a_placeholder_secret_is_filled_and_its_other_fields_stay(kube: KubeClient, namespace: str) -> None:
    await put(kube, namespace, {"readme": b"made by a chart", "tls.crt": b"", "tls.key": b""}, labels={"team": "a"})
    certificates = await open_certificates(settings(namespace), kube, NAMES)
    stored = await secret(kube, namespace)
    assert base64.b64decode(stored["data"]["readme"]) == b"made by a chart"
    assert base64.b64decode(stored["data"]["ca.crt"]) == certificates.bundle
    assert stored["metadata"]["labels"]["team"] == "a"


async def test_certificates_of_the_reference_stay_in_use(kube: KubeClient, namespace: str) -> None:
    """Its keys are RSA, its key names differ, and its Secret has no type and no label of this platform."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Dynamo-Webhook-CA")])
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    begin, end = now - datetime.timedelta(hours=1), now + datetime.timedelta(days=3650)
    authority = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, begin, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier(b"its own name of the key"), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    pem = key.private_bytes(*form)
    leaf, leaf_key = pki.make_serving(authority, pem, NAMES, time.time(), 365 * 86400)
    data = {"ca.crt": pki.pem_of(authority), "ca.key": pem, "tls.crt": pki.pem_of(leaf), "tls.key": leaf_key}
    await put(kube, namespace, data)
    certificates = await open_certificates(settings(namespace), kube, NAMES)
    assert isinstance(certificates, OwnCertificates)
    assert (certificates.bundle, certificates.serving) == (pki.pem_of(authority), leaf)
    # Another DNS name is desired: the same authority issues the next certificate.
    more = await open_certificates(settings(namespace), kube, (*NAMES, "more.example.org"))
    assert isinstance(more, OwnCertificates)
    assert more.bundle == certificates.bundle
    assert pki.valid_for(more.serving, "more.example.org")
    async with webhook(kube, namespace, more) as hook:
        await hook.register(more)
        await eventually(hook.asked, "the API server trusts it")


@pytest.mark.parametrize(
    ("metadata", "data", "message"),
    [
        ({"annotations": {"cert-manager.io/certificate-name": "webhook"}}, {}, "cert-manager writes .*: set server"),
        ({}, {"tls.crt": b"user's", "tls.key": b"user's"}, "has a certificate that this service did not create"),
        ({}, {"ca.crt": b"user's"}, "has a certificate that this service did not create"),
    ],
)
async def test_a_secret_of_another_owner_is_not_changed(
    kube: KubeClient, namespace: str, metadata: dict[str, Any], data: dict[str, bytes], message: str
) -> None:
    await put(kube, namespace, data, **metadata)
    before = await secret(kube, namespace)
    with pytest.raises(Unusable, match=message):
        await open_certificates(settings(namespace), kube, NAMES)
    assert await secret(kube, namespace) == before
