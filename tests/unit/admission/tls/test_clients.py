"""The CAs of client certificates change while admission runs, because a cluster replaces those of its API server."""

import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dynamo_admission.tls import pki
from dynamo_admission.tls.certificates import Certificates
from dynamo_admission.tls.clients import ClientAuthorities
from dynamo_admission.tls.file_certificates import FileCertificates
from dynamo_admission.tls.own_ca import OwnCertificates
from dynamo_admission.tls.timing import Timing
from dynamo_devcluster.certs import CertificateAuthority
from dynamo_shared.x509 import make_authority

from .certificates import NAMES, MemoryStore, served_to

Opening = Callable[[Path, ClientAuthorities], Certificates]


def own(_: Path, clients: ClientAuthorities) -> Certificates:
    return OwnCertificates(MemoryStore(), NAMES, time.time, Timing(), clients)


def given(folder: Path, clients: ClientAuthorities) -> Certificates:
    authority, key = make_authority(time.time(), 86400.0, name="ca")
    leaf, leaf_key = pki.make_serving(authority, key, NAMES, time.time(), 3600.0)
    for name, content in (("tls.crt", pki.pem_of(leaf)), ("tls.key", leaf_key), ("ca.crt", pki.pem_of(authority))):
        (folder / name).write_bytes(content)
    return FileCertificates(folder, NAMES[0], time.time, Timing(), clients=clients)


@pytest.mark.parametrize("opening", [own, given])
async def test_an_api_server_with_a_certificate_of_a_new_ca_is_accepted_without_a_restart(
    tmp_path: Path, opening: Opening
) -> None:
    before, after = CertificateAuthority(tmp_path / "before"), CertificateAuthority(tmp_path / "after")
    file = tmp_path / "clients.pem"
    file.write_bytes(before.certificate.read_bytes())
    certificates = opening(tmp_path, ClientAuthorities(file))
    await certificates.refresh()
    context = certificates.context

    def handshake(authority: CertificateAuthority) -> None:
        pair = authority.client("api-server", "kube-apiserver")
        served_to(context, certificates.bundle, NAMES[0], (pair.certificate, pair.key))

    handshake(before)
    with pytest.raises(ssl.SSLError):
        handshake(after)
    file.write_bytes(after.certificate.read_bytes())
    await certificates.refresh()
    handshake(after)
    with pytest.raises(ssl.SSLError):
        handshake(before)
    file.write_text("half a certif")
    await certificates.refresh()
    handshake(after)
