"""Certificates of the local cluster, also after an earlier start that was interrupted while it wrote them."""

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from dynamo_devcluster.certs import CertificateAuthority, signing_key


def cut(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])


@pytest.mark.parametrize("size", [0, 100])
@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "etcd.crt", "etcd.key"])
def test_an_incomplete_file_is_written_again(tmp_path: Path, name: str, size: int) -> None:
    CertificateAuthority(tmp_path).server("etcd")
    cut(tmp_path / name, size)
    authority = CertificateAuthority(tmp_path)
    pair = authority.server("etcd")
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate.read_bytes()))
    key = serialization.load_pem_private_key(pair.key.read_bytes(), password=None)
    assert certificate.public_key() == key.public_key()


def test_complete_files_are_reused(tmp_path: Path) -> None:
    CertificateAuthority(tmp_path).server("etcd")
    signing_key(tmp_path)
    before = {each: each.read_bytes() for each in tmp_path.iterdir()}
    CertificateAuthority(tmp_path).server("etcd")
    signing_key(tmp_path)
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_key_without_its_certificate_is_replaced(tmp_path: Path) -> None:
    """The key is written before the certificate."""
    pair = CertificateAuthority(tmp_path).server("etcd")
    key = CertificateAuthority(tmp_path).server("other").key
    pair.key.write_bytes(key.read_bytes())
    certificate = x509.load_pem_x509_certificate(CertificateAuthority(tmp_path).server("etcd").certificate.read_bytes())
    stored = serialization.load_pem_private_key(pair.key.read_bytes(), password=None)
    assert certificate.public_key() == stored.public_key()


@pytest.mark.parametrize("name", ["service-account.key", "service-account.pub"])
def test_the_token_key_is_complete(tmp_path: Path, name: str) -> None:
    signing_key(tmp_path)
    cut(tmp_path / name, 50)
    private, public = signing_key(tmp_path)
    key = serialization.load_pem_private_key(private.read_bytes(), password=None)
    assert serialization.load_pem_public_key(public.read_bytes()) == key.public_key()
