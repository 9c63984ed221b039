"""The TLS settings of a listening socket, and how it loads certificates and keys."""

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from dynamo_devcluster import CertificateAuthority, KeyPair
from dynamo_shared.runtime.endpoints import server_tls
from dynamo_shared.runtime.tls import ServingTls, context_of, context_of_files
from structlog.testing import capture_logs


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def pair(authority: CertificateAuthority) -> KeyPair:
    return authority.server("one")


@contextmanager
def listening(context: ssl.SSLContext, connections: int = 1) -> Iterator[int]:
    """A server that accepts that many handshakes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(connections):
                plain, _ = server.accept()
                try:
                    with context.wrap_socket(plain, server_side=True) as connection:
                        connection.sendall(b"hello")
                except OSError:
                    plain.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


def hello(port: int, context: ssl.SSLContext, name: str = "localhost") -> object:
    """Shake hands and read; returns the serial number of the served certificate."""
    plain = socket.create_connection(("127.0.0.1", port), timeout=10)
    with plain, context.wrap_socket(plain, server_hostname=name) as connection:
        assert connection.recv(5) == b"hello"
        return (connection.getpeercert() or {})["serialNumber"]


def client(authority: CertificateAuthority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.certificate))


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"], ids=["by name", "by address, which sends none"])
def test_a_changed_certificate_is_served(authority: CertificateAuthority, pair: KeyPair, name: str) -> None:
    other = authority.server("other")
    tls = ServingTls(context_of_files(pair.certificate, pair.key))
    with listening(tls.context, 2) as port:
        before = hello(port, client(authority), name)
        tls.exchange(context_of(other.certificate.read_bytes(), other.key.read_bytes()))
        assert hello(port, client(authority), name) != before


def test_a_certificate_that_cannot_be_reloaded_is_logged_once(
    authority: CertificateAuthority, pair: KeyPair, tmp_path: Path
) -> None:
    """Each handshake logged it."""
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(pair.certificate.read_bytes())
    key.write_bytes(pair.key.read_bytes())
    context = server_tls(tmp_path)
    with listening(context, 6) as port, capture_logs() as logged:
        before = hello(port, client(authority))
        key.unlink()
        assert [hello(port, client(authority)) for _ in range(2)] == [before] * 2
        key.write_text("half of it")
        assert [hello(port, client(authority)) for _ in range(2)] == [before] * 2
        other = authority.server("fourth")
        certificate.write_bytes(other.certificate.read_bytes())
        key.write_bytes(other.key.read_bytes())
        assert hello(port, client(authority)) != before
    assert [each["event"] for each in logged] == ["cannot reload certificate"] * 2


def test_old_protocols_and_weak_ciphers_are_rejected(authority: CertificateAuthority, pair: KeyPair) -> None:
    tls = ServingTls(context_of_files(pair.certificate, pair.key))
    twelve = client(authority)
    twelve.maximum_version = ssl.TLSVersion.TLSv1_2
    weak = client(authority)
    weak.maximum_version = ssl.TLSVersion.TLSv1_2
    weak.set_ciphers("ECDHE-ECDSA-AES128-SHA:AES128-SHA")
    with listening(tls.context, 3) as port:
        assert hello(port, client(authority)) == hello(port, twelve)
        with pytest.raises(ssl.SSLError):
            hello(port, weak)
    assert tls.context.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("in_memory", [True, False])
def test_loading_a_key_pair_leaves_no_file(
    authority: CertificateAuthority, pair: KeyPair, in_memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_memory and not hasattr(os, "memfd_create"):
        pytest.skip("this system has no files in memory")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    tls = ServingTls(context_of(pair.certificate.read_bytes(), pair.key.read_bytes()))
    with listening(tls.context) as port:
        hello(port, client(authority))
    assert list(tmp_path.iterdir()) == []


def test_a_certificate_without_its_key_is_rejected(authority: CertificateAuthority, pair: KeyPair) -> None:
    other = authority.server("third")
    with pytest.raises(ssl.SSLError):
        context_of(pair.certificate.read_bytes(), other.key.read_bytes())
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    )
    with pytest.raises(ssl.SSLError, match="encrypted"):
        context_of(pair.certificate.read_bytes(), encrypted)
